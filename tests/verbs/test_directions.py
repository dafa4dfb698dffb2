"""A model that translates both ways goes the way that each text asks for; a language that is named decides."""

from __future__ import annotations

from pathlib import Path

import box
import pytest
import torch
import zoo

import sightline
from sightline.attend.alignment import AdapterShape, AlignmentAdapter
from sightline.errors import InputError
from sightline.faithfulness import measure_faithfulness
from sightline.models.loaded import LoadedModel
from sightline.text.languages import LanguageGuess, listed_words

ENGLISH, SPANISH = ({word for text in texts for word in listed_words(text)} for texts in (zoo.SOURCES, zoo.TARGETS))
GUESS = LanguageGuess(("en", "es"), {word: 4.0 if word in SPANISH else -4.0 for word in ENGLISH ^ SPANISH}, {})
WAY = {"method": "norms", "layer": 1, "reading": "input", "extraction": "argmax"}
SHORT = {"max_new_tokens": 6, "min_new_tokens": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = box.fill(tmp_path_factory.mktemp("box"))
    GUESS.save(folder)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> LoadedModel:
    return sightline.load(folder, dtype="float32")


@pytest.fixture(scope="module")
def named(folder: Path) -> dict[str, LoadedModel]:
    return {language: sightline.load(folder, dtype="float32", source_lang=language) for language in ("en", "es")}


def test_a_text_decides_unless_a_language_is_named(folder: Path, model: LoadedModel) -> None:
    assert model.facing(zoo.SOURCES[0]) is model
    assert model.facing(zoo.TARGETS[0]) is model.other_way
    assert model.facing("1987") is model
    assert model.facing(zoo.TARGETS[0], zoo.SOURCES[0]) is model.other_way
    assert model.facing(zoo.SOURCES[0], zoo.TARGETS[0]) is model
    for options in ({"source_lang": "en"}, {"target_lang": "es"}, {"prefix": ">>es<< "}):
        fixed = sightline.load(folder, **options)
        assert fixed.facing(zoo.TARGETS[0]) is fixed
    assert model.other_way is not None
    assert model.other_way.facing(zoo.SOURCES[0]) is model.other_way


def test_translations_of_mixed_text(model: LoadedModel, named: dict[str, LoadedModel]) -> None:
    mixed = [zoo.SOURCES[0], zoo.TARGETS[0], "", zoo.TARGETS[1], "1987"]
    found = sightline.translate(model, iter(mixed), align=WAY, **SHORT)
    languages = ["en", "es", "en", "es", "en"]
    expected = [
        sightline.translate(named[language], text, align=WAY, **SHORT)
        for language, text in zip(languages, mixed, strict=True)
    ]
    assert [one.text for one in found] == [one.text for one in expected]
    other = [sightline.translate(named["en"], text, **SHORT).text for text in mixed]
    assert other != [one.text for one in expected]


def test_alignments_of_mixed_pairs(model: LoadedModel, named: dict[str, LoadedModel]) -> None:
    sources = [zoo.SOURCES[0], zoo.TARGETS[0], zoo.TARGETS[1], "", zoo.SOURCES[1]]
    targets = [zoo.TARGETS[0], zoo.SOURCES[0], zoo.SOURCES[1], zoo.TARGETS[0], zoo.TARGETS[1]]
    languages = ["en", "es", "es", "en", "en"]
    for options in ({"symmetrize": "union"}, {"join": "links"}, {"reverse": False}):
        found = sightline.align(model, sources, targets, **WAY, **options)
        for links, language, source, target in zip(found, languages, sources, targets, strict=True):
            (expected,) = sightline.align(named[language], [source], [target], **WAY, **options)
            assert links.links == expected.links
            assert dict(links.confidences) == pytest.approx(dict(expected.confidences), abs=1e-6)
    turned = sightline.align(model, zoo.TARGETS, zoo.SOURCES, **WAY)
    assert turned == [one.flipped() for one in sightline.align(model, zoo.SOURCES, zoo.TARGETS, **WAY)]


def test_adapters_of_both_directions_read_mixed_pairs(folder: Path) -> None:
    model = sightline.load(folder, dtype="float32")
    torch.manual_seed(0)
    for direction in ("en-es", "es-en"):
        model.adapters[direction] = AlignmentAdapter(AdapterShape((16, 16), (16, 16, 16), 4)).eval()
    straight = sightline.align(model, zoo.SOURCES, zoo.TARGETS)
    sources = [zoo.TARGETS[0], zoo.SOURCES[1]]
    targets = [zoo.SOURCES[0], zoo.TARGETS[1]]
    mixed = sightline.align(model, sources, targets)
    assert [one.links for one in mixed] == [straight[0].flipped().links, straight[1].links]
    assert straight[0].links
    # Who names a layer does not mean the adapter.
    layer = {"layer": 1, "reading": "input"}
    named = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **layer)
    assert named == sightline.align(model, zoo.SOURCES, zoo.TARGETS, use_adapter=False, **layer)


def test_a_translation_is_aligned_the_way_that_it_was_made(
    model: LoadedModel, named: dict[str, LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the translation looks like: here the pair by itself would be taken for the other direction."""
    monkeypatch.setattr(LanguageGuess, "source_language_of", lambda *_: "en")
    for source, language in ((zoo.SOURCES[0], "en"), (zoo.TARGETS[0], "es")):
        for options in (WAY, WAY | {"reverse": False}):
            found = sightline.translate(model, source, align=options, **SHORT).alignment
            expected = sightline.translate(named[language], source, align=options, **SHORT).alignment
            assert found is not None
            assert expected is not None
            assert found.links == expected.links


def test_explanations_streams_and_measures(model: LoadedModel, named: dict[str, LoadedModel]) -> None:
    english, spanish = zoo.SOURCES[0], zoo.TARGETS[0]
    for text, target, language in ((english, spanish, "en"), (spanish, english, "es")):
        for given in (None, target):
            why = sightline.explain(model, text, given, generation=SHORT if given is None else None)
            other = sightline.explain(named[language], text, given, generation=SHORT if given is None else None)
            assert why == other
        options = {"layer": 0, "reading": "output", "method": "attention", "extraction": "argmax"}
        streams = [
            list(sightline.stream_translation(one, text, align=options, **SHORT)) for one in (model, named[language])
        ]
        assert streams[0] == streams[1]
        similar = [sightline.align(one, text, target, method="similarity") for one in (model, named[language])]
        assert similar[0] == similar[1]
        rates = [measure_faithfulness(one, [text], [target], methods=["attention"]) for one in (model, named[language])]
        assert rates[0][0].to_dict() == rates[1][0].to_dict()


def test_it_is_kept(model: LoadedModel, tmp_path: Path) -> None:
    model.save(tmp_path / "saved")
    assert sightline.load(tmp_path / "saved").guess == GUESS
    assert sightline.calibrate(model).guess == GUESS


def test_a_file_of_other_languages(tmp_path: Path) -> None:
    folder = box.fill(tmp_path)
    LanguageGuess(("en", "de"), {}, {}).save(folder)
    with pytest.raises(InputError, match="tells en from de, and the model there translates between en and es"):
        sightline.load(folder)
    assert sightline.load(folder, source_lang="es").guess is None
