"""Probabilities and ranks of outputs are the model's own, and are there only where a method saw the input as it is."""

import json

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.attribution import Attribution
from sightline.errors import InputError

WITH = ("gradient", "word_saliency", "erasure", "hidden_gradient", "hidden_erasure")
WITHOUT = (("attention", {}), ("norms", {}), ("integrated_gradients", {"steps": 2}), ("gradient", {"smoothgrad": 2}))


def explain(name, method, **settings):
    targets = zoo.targets(name)
    return sightline.explain(
        zoo.model(name), zoo.texts(name)[:2], None if targets is None else targets[:2], method=method, **settings
    )


@pytest.mark.parametrize("name", ["marian", "lstm", "gpt2", "bert-classifier", "bert-filler"])
@pytest.mark.parametrize("method", ["gradient", "erasure"])
def test_odds_are_those_of_the_models_own_softmax(name, method):
    model = zoo.model(name)
    for why, source in zip(explain(name, method), zoo.texts(name), strict=False):
        target = None if zoo.targets(name) is None else zoo.targets(name)[zoo.texts(name).index(source)]
        example = model.encode(source, target)
        if not example.labels:
            example = model.with_output(example, model.answer([example])[0])
        with torch.no_grad(), model.evaluating():
            logits = model.logits(model.batch([example]))[0].double()
        expected = logits.softmax(-1)[range(len(example.labels)), list(example.labels)]
        np.testing.assert_allclose(why.probabilities, expected, rtol=1e-4)
        order = logits.argsort(-1, descending=True).tolist()
        assert list(why.ranks) == [row.index(label) + 1 for row, label in zip(order, example.labels, strict=True)]


@pytest.mark.parametrize("method", WITH)
def test_methods_that_run_the_vocabulary_layer_tell_odds(method):
    assert all(len(why.ranks) == len(why.target) for why in explain("marian", method))


@pytest.mark.parametrize(("method", "settings"), WITHOUT)
def test_other_methods_tell_none(method, settings):
    assert all(why.ranks == why.probabilities == () for why in explain("marian", method, **settings))


def test_only_the_positions_asked_for():
    whole = explain("marian", "erasure")[0]
    part = sightline.explain(zoo.model("marian"), zoo.SOURCES[0], zoo.TARGETS[0], method="erasure", positions=[2, 4])
    np.testing.assert_allclose(part.probabilities, [whole.probabilities[i] for i in (2, 4)], rtol=1e-4)
    assert part.ranks == (whole.ranks[2], whole.ranks[4])


def test_words_have_the_probability_of_all_their_pieces_and_special_positions_go():
    why = explain("marian", "gradient")[0]
    words = why.words()
    for position, group in enumerate(why.target.groups()):
        assert words.probabilities[position] == pytest.approx(np.prod([why.probabilities[i] for i in group]))
        assert words.ranks[position] == why.ranks[group[0]]
    assert len(words.without_special().ranks) == len(words.without_special().target)


def test_odds_and_defaults_are_saved_and_read(tmp_path):
    why = explain("marian", "erasure", signed=True)[0]
    assert why.defaults["signed"] is False
    why.save(tmp_path / "why.parquet")
    assert Attribution.load(tmp_path / "why.parquet") == why
    assert Attribution.from_dict(json.loads(json.dumps(why.to_dict()))) == why


@pytest.mark.parametrize("wrong", [{"ranks": [1]}, {"ranks": [0] * 3}, {"probabilities": [2.0] * 3}, {"defaults": 1}])
def test_odds_that_cannot_be_are_refused(wrong):
    side = {"tokens": ["a", "b", "c"], "words": ["a", "b", "c"], "word_ids": [0, 1, 2]}
    plain = {
        "method": "m", "settings": {}, "axes": [], "source": side, "target": side,
        "prefix": {"tokens": [], "words": [], "word_ids": []}, "scores": np.ones((3, 3)).tolist(),
        "probabilities": [0.5] * 3, "ranks": [1] * 3,
    }  # fmt: skip
    Attribution.from_dict(plain)
    with pytest.raises(InputError, match="not the plain data"):
        Attribution.from_dict(plain | wrong)
