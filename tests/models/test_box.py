"""The model in the box: found by its name, and by no name; both directions of it."""

from __future__ import annotations

from pathlib import Path

import box
import pytest
import torch
import zoo

import sightline
from sightline.alignment.symmetrization import DEFAULT_RULE, symmetrize
from sightline.errors import InputError
from sightline.models.box import FOLDER_VARIABLE
from sightline.models.loaded import LoadedModel
from sightline.verbs.saved_choice import FILE_NAME

WAY = {"method": "norms", "layer": 1, "reading": "input", "extraction": "argmax"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("box")
    box.fill(path)
    return path


@pytest.fixture
def in_box(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(filled))
    return filled


@pytest.fixture
def model(in_box: Path) -> LoadedModel:
    return sightline.load()


def test_an_installation_without_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    for load in (sightline.load, lambda: sightline.load("en-es")):
        with pytest.raises(InputError, match="This installation of Sightline lacks its own model en-es: name another"):
            load()


def test_it_is_single_precision_in_memory(model: LoadedModel) -> None:
    assert {parameter.dtype for parameter in model.module.parameters()} == {torch.float32}
    assert next(sightline.load("en-es", dtype="bfloat16").module.parameters()).dtype == torch.bfloat16


def test_a_folder_of_that_name_is_the_users(
    in_box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: LoadedModel
) -> None:
    mine, tokenizer = box.build()
    with torch.no_grad():
        mine.model.shared.weight.fill_(1.0)
    mine.save_pretrained(tmp_path / "en-es")
    tokenizer.save_pretrained(tmp_path / "en-es")
    monkeypatch.chdir(tmp_path)
    assert sightline.load("./en-es").module.model.shared.weight.eq(1).all()
    assert not sightline.load("en-es").module.model.shared.weight.eq(1).all()


# Directions


@pytest.mark.parametrize(
    ("options", "direction", "prefix"),
    [
        ({}, ("en", "es"), ">>es<< "),
        ({"source_lang": "es"}, ("es", "en"), ">>en<< "),
        ({"target_lang": "en"}, ("es", "en"), ">>en<< "),
        ({"source_lang": "en", "target_lang": "es"}, ("en", "es"), ">>es<< "),
        ({"prefix": ">>en<< "}, ("es", "en"), ">>en<< "),
        ({"prefix": "say: "}, ("en", "es"), ">>es<< say: "),
    ],
)
def test_directions(in_box: Path, options: dict[str, str], direction: tuple[str, str], prefix: str) -> None:
    model = sightline.load("en-es", **options)
    assert (model.prompt.source_lang, model.prompt.target_lang) == direction
    assert model.prompt.prefix == prefix
    assert model.encode("The cat", None).source.pieces[0] == f">>{direction[1]}<<"
    other = model.other_way
    assert other is not None
    assert other.module is model.module
    assert other.other_way is model
    assert (other.prompt.target_lang, other.prompt.source_lang) == direction
    assert other.prompt.prefix == prefix.replace(direction[1], direction[0], 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_lang": "fr"}, "translates between en and es; it does not know 'fr'"),
        ({"source_lang": "es", "target_lang": "es"}, "cannot both be es"),
    ],
)
def test_wrong_directions(in_box: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sightline.load("en-es", **options)


def test_models_of_one_direction_have_no_other_way() -> None:
    assert zoo.model("marian").other_way is None  # though its vocabulary has >>spa<< and >>fra<<
    assert zoo.model("m2m100").other_way is None


# Alignments


def test_alignments_use_both_directions(model: LoadedModel) -> None:
    spanish_first = sightline.load("en-es", source_lang="es")
    forward = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **WAY, reverse=False)
    backward = sightline.align(spanish_first, zoo.TARGETS, zoo.SOURCES, **WAY, reverse=False)
    joined = [
        symmetrize(one, other.flipped(), DEFAULT_RULE).links for one, other in zip(forward, backward, strict=True)
    ]
    assert joined != [one.links for one in forward]
    for reverse in (None, spanish_first, model, "en-es"):
        found = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **WAY, reverse=reverse, join="links")
        assert [one.links for one in found] == joined
    turned = sightline.align(spanish_first, zoo.TARGETS, zoo.SOURCES, **WAY, symmetrize="intersection")
    straight = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **WAY, symmetrize="intersection")
    assert [one.flipped().links for one in turned] == [one.links for one in straight]


def test_similarity_has_no_direction_to_join(model: LoadedModel) -> None:
    with pytest.raises(InputError, match="joins two directions"):
        sightline.align(model, zoo.SOURCES, zoo.TARGETS, method="similarity", symmetrize="union")


def test_translations_are_aligned_both_ways(model: LoadedModel) -> None:
    (translation,) = sightline.translate(model, zoo.SOURCES[:1], align=WAY, max_new_tokens=8, min_new_tokens=8)
    assert translation.text
    assert translation.alignment is not None
    expected = sightline.align(model, zoo.SOURCES[0], translation.text, **WAY)
    assert translation.alignment.links == expected.links
    one_way = sightline.align(model, zoo.SOURCES[0], translation.text, **WAY, reverse=False)
    assert translation.alignment.confidences != pytest.approx(one_way.confidences, abs=1e-2)


def test_a_choice_is_not_written_into_the_box(model: LoadedModel, in_box: Path) -> None:
    sightline.align(model, zoo.SOURCES * 5, zoo.TARGETS * 5)
    assert not (in_box / "en-es" / FILE_NAME).exists()
