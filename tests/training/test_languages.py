"""Learning to tell the two sides of parallel text apart."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from training.tiny import recipe

import sightline
from sightline.data.gold import ALL_REGISTERS, read_gold
from sightline.text.languages import FILE_NAME, LIMIT, LanguageGuess
from sightline.training import train
from sightline.training.languages import PENALTY, PRIOR, _fit, learn_languages


@pytest.fixture(scope="module")
def learnt() -> LanguageGuess:
    pairs = [(pair.source, pair.target) for pair in read_gold(*ALL_REGISTERS)]
    return learn_languages([pair for number, pair in enumerate(pairs) if number % 3], ("en", "es"))


def test_held_out_sentences_are_recognised(learnt: LanguageGuess) -> None:
    held_out = read_gold(*ALL_REGISTERS)[::3]
    for language, texts in (("en", [pair.source for pair in held_out]), ("es", [pair.target for pair in held_out])):
        found = [learnt.language_of(text) for text in texts]
        assert found.count(language) >= 0.97 * len(texts)
        assert set(found) <= {language, None}
    assert all(learnt.source_language_of(pair.source, pair.target) == "en" for pair in held_out)


def test_what_both_sides_have_tells_nothing() -> None:
    pairs = [("Tom sees Bilbao", "Tom ve Bilbao"), ("tom has 3", "tom tiene 3"), ("a b c", "a b d")] * 20
    learnt = learn_languages(pairs, ("en", "es"))
    assert learnt.language_of("Tom") is None
    assert learnt.language_of("a b") is None
    assert learnt.language_of("tom has") == "en"
    assert learnt.language_of("tom tiene") == "es"


def test_a_listed_word_has_its_log_odds() -> None:
    pairs = [("no the", "no el no"), ("the no the", "el")]
    learnt = learn_languages(pairs, ("en", "es"))
    scale = 5 / 4  # the first side has five words, the second four
    assert learnt.words["no"] == pytest.approx(math.log((2 * scale + PRIOR) / (2 + PRIOR)), abs=0.005)
    assert learnt.words["the"] == pytest.approx(max(-LIMIT, math.log(PRIOR / (3 + PRIOR))), abs=0.005)
    assert learn_languages([("1", "2")], ("en", "es")).score("1") == 0


def test_weights_of_pieces_minimise_the_penalised_loss() -> None:
    """At the minimum the gradient of the loss, written out here, is zero; pieces that are not kept stay zero."""
    torch.manual_seed(0)
    incidence = (torch.rand(12, 5) < 0.5).double()
    rows, columns = incidence.nonzero(as_tuple=True)
    targets, weights = torch.rand(12, dtype=torch.float64), torch.rand(12, dtype=torch.float64) + 0.5
    kept = torch.tensor([1, 1, 0, 1, 1], dtype=torch.float64)
    found = _fit(kept, rows, columns, targets, weights)
    gradient = incidence.T @ (weights * ((incidence @ found).sigmoid() - targets)) + 2 * PENALTY * found
    assert found[2] == 0
    torch.testing.assert_close(gradient * kept, torch.zeros(5, dtype=torch.float64), atol=1e-4, rtol=0)


def test_a_run_both_ways_keeps_what_it_learnt(tmp_path: Path) -> None:
    data = recipe()["data"] | {"languages": ["en", "es"], "bidirectional": True}
    train(recipe(data=data, training={"steps": 1}), output=tmp_path / "both", quiet=True)
    model = sightline.load(tmp_path / "both")
    assert model.guess is not None
    assert model.guess.languages == ("en", "es")
    assert sightline.load(tmp_path / "both", source_lang="es").guess is None
    train(recipe(training={"steps": 1}), output=tmp_path / "one", quiet=True)
    assert not (tmp_path / "one" / FILE_NAME).exists()
