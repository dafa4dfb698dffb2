"""Alignment adapters: trained on a frozen model, kept beside it, and used by `align`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zoo
from training.tiny import LANGUAGE, recipe, same_weights

import sightline
from sightline.alignment.error_rate import score_alignments
from sightline.alignment.links import Alignment
from sightline.cli.adapt import adapt as adapt_command
from sightline.data.language import GeneratedLanguage, GeneratedPair, LanguageSettings
from sightline.errors import InputError
from sightline.training import adapting
from sightline.training.adapting import adapt

PAIRS = GeneratedLanguage(LanguageSettings(**LANGUAGE)).pairs(700)
TRAINED, TESTED = PAIRS[:600], PAIRS[600:]
FEW = TRAINED[:100]
"""Enough where it does not matter how much is learned."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Train a model that translates both ways, and one that goes one way; both hardly know the language."""
    place = tmp_path_factory.mktemp("models")
    both_ways = {"bidirectional": True, "languages": ["aa", "bb"]}
    sightline.train(recipe(data=both_ways), output=place / "both", quiet=True)
    sightline.train(recipe(), output=place / "one", quiet=True)
    return place / "both", place / "one"


@pytest.fixture
def gold_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first labels be gold: models that hardly know the language give none that teach."""

    def labels(_: Any, __: Any, corpus: Any, *___: Any) -> list[np.ndarray]:
        return [np.array(sorted(pair.links), dtype=np.int64).reshape(-1, 2) for pair in TRAINED[: len(corpus)]]

    monkeypatch.setattr(adapting, "_first_labels", labels)


def _texts(pairs: list[GeneratedPair]) -> tuple[list[str], list[str]]:
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _error_rate(model: Any, **options: Any) -> float:
    found = sightline.align(model, *_texts(TESTED), progress=False, **options)
    return score_alignments(found, [Alignment(pair.links) for pair in TESTED]).aer.value


@pytest.mark.usefixtures("gold_labels")
def test_an_adapter_learns_links_and_aligns_new_text(folders: tuple[Path, Path], tmp_path: Path) -> None:
    both, _ = folders
    before = _error_rate(both)
    result = adapt(both, *_texts(TRAINED), output=tmp_path / "adapted", rounds=2, quiet=True)
    assert result.pairs == 600
    assert result.rounds[1].agreement > 0.6
    assert same_weights(both, tmp_path / "adapted"), "the model stays"
    assert not (both / "alignment-adapter.json").exists(), "the original is untouched"
    after = _error_rate(tmp_path / "adapted")
    assert after < before - 20
    assert after < _error_rate(tmp_path / "adapted", reverse=False) + 5, "two directions are no worse than one"
    assert _error_rate(tmp_path / "adapted", use_adapter=False) == before
    assert _error_rate(tmp_path / "adapted", method="adapter") == after


def test_an_aligner_teaches_what_the_model_does_not_know(folders: tuple[Path, Path], tmp_path: Path) -> None:
    both = folders[0]
    rates = {}
    for aligner in (None, "hmm"):
        output = tmp_path / str(aligner)
        adapt(both, *_texts(TRAINED), output=output, with_aligner=aligner, rounds=1, quiet=True)
        rates[aligner] = _error_rate(output)
    assert rates["hmm"] < rates[None] / 2


def test_an_aligner_that_is_none_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapting, "_learn", lambda *_: pytest.fail("the work began"))
    with pytest.raises(InputError, match=r"hm is no file of a saved aligner, and none of .*hmm"):
        adapt(zoo.model("marian"), ["a"], ["b"], output=tmp_path / "adapted", with_aligner="hm", quiet=True)


@pytest.mark.usefixtures("gold_labels")
def test_two_models_are_adapted_together_and_kept_in_one_folder(folders: tuple[Path, Path], tmp_path: Path) -> None:
    _, one = folders
    adapt(one, *_texts(TRAINED), reverse=one, output=tmp_path / "adapted", rounds=1, quiet=True)
    loaded = sightline.load(tmp_path / "adapted")
    assert loaded.adapter is not None
    assert loaded.other_way is not None
    assert loaded.other_way.adapter is not None
    assert loaded.other_way.other_way is loaded
    assert _error_rate(loaded) < 60


@pytest.mark.usefixtures("gold_labels")
def test_the_callers_model_gets_no_adapter(folders: tuple[Path, Path], tmp_path: Path) -> None:
    loaded = sightline.load(folders[1])
    modes = [module.training for module in loaded.module.modules()]
    adapt(loaded, *_texts(FEW), output=tmp_path / "adapted", rounds=1, quiet=True)
    assert loaded.adapter is None
    assert [module.training for module in loaded.module.modules()] == modes
    assert all(parameter.requires_grad for parameter in loaded.module.parameters())


@pytest.mark.usefixtures("gold_labels")
def test_the_same_seed_gives_the_same_adapter(folders: tuple[Path, Path], tmp_path: Path) -> None:
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        adapt(folders[1], *_texts(FEW), output=tmp_path / name, rounds=1, seed=seed, quiet=True)
        weights.append(sightline.load(tmp_path / name).adapter.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not torch.equal(weights[0]["key.weight"], weights[2]["key.weight"])


@pytest.mark.parametrize("name", ["t5", "m2m100", "lstm", "conv"])
def test_any_encoder_decoder_can_be_adapted(name: str, tmp_path: Path) -> None:
    model = zoo.model(name)
    sources, targets = zoo.texts(name) * 40, zoo.targets(name) * 40
    adapt(model, sources, targets, output=tmp_path / "adapted", rounds=1, quiet=True)
    again = sightline.load(
        tmp_path / "adapted", source_lang=model.prompt.source_lang, target_lang=model.prompt.target_lang
    )
    assert again.adapter is not None
    why = sightline.explain(again, sources[0], targets[0], method="adapter")
    np.testing.assert_allclose(why.scores.sum(-1)[~why.target.special], 1, rtol=1e-5)


def test_pairs_that_cannot_be_used_are_counted(folders: tuple[Path, Path], tmp_path: Path) -> None:
    sources, targets = _texts(TRAINED[:120])
    sources += ["", "word " * 500]
    targets += ["x", "y"]
    result = adapt(folders[1], sources, targets, output=tmp_path / "adapted", rounds=1, quiet=True)
    assert (result.pairs, result.skipped) == (120, 2)


def _mistakes(folders: tuple[Path, Path], tmp_path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    sources, targets = _texts(TRAINED)
    usual: dict[str, Any] = {"model": folders[1], "sources": sources, "targets": targets, "output": tmp_path / "new"}
    yield usual | {"sources": sources[:9], "targets": targets[:9]}, "9 usable sentence pairs"
    yield usual | {"output": folders[0]}, "is not empty"
    yield usual | {"rounds": 0}, "rounds is 0"
    yield usual | {"model": zoo.model("llama")}, "has no encoder and decoder"


def test_mistakes_are_told_in_one_sentence(folders: tuple[Path, Path], tmp_path: Path) -> None:
    for arguments, sentence in _mistakes(folders, tmp_path):
        with pytest.raises(InputError, match=sentence):
            adapt(**arguments, quiet=True)
        assert not (tmp_path / "new").exists()


def test_a_model_without_an_adapter_says_how_to_get_one(folders: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="no alignment adapter for source-target: `sightline adapt`"):
        sightline.align(folders[1], *_texts(TESTED), method="adapter")


def test_an_empty_file_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with pytest.raises(InputError, match="0 usable sentence pairs"):
        adapt_command(tmp_path / "empty", output=tmp_path / "new", quiet=True)
    assert not (tmp_path / "new").exists()
