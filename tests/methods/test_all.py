"""What holds for every method: no NaN, no dependence on the batch, an honest refusal where it cannot answer."""

from __future__ import annotations

import numpy as np
import pytest
import zoo

import sightline
from sightline.errors import InputError
from sightline.methods import METHODS

MODELS = ["marian", "t5", "llama", "gpt2", "bert-classifier", "gpt2-classifier", "distilbert-filler", *zoo.OURS]
SMALL = {"smoothgrad": {"smoothgrad": 2}, "integrated_gradients": {"steps": 3, "baseline": "zero"}}
VARIANTS = [(name, SMALL.get(name, {})) for name in METHODS] + [
    ("word_saliency", {"smoothgrad": 2}),
    ("attention", {"smoothgrad": 2, "head": "all"}),
    ("norms", {"head": "all", "layer": -1}),
    ("erasure", {"how": "zero", "prefix": True}),
    ("gradient", {"prefix": True, "norm": "l2"}),
]


def explained(model: str, sources: list[str], targets: list[str] | None, method: str, settings: dict):
    """Explain, or give None where the method says in one sentence that it cannot."""
    try:
        return sightline.explain(zoo.model(model), sources, targets, method=method, **settings)
    except InputError as error:
        sentence = str(error)
    assert sentence.count("\n") == 0
    assert sentence.endswith(".")
    return None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("method", "settings"), VARIANTS)
def test_results_do_not_depend_on_the_batch(model: str, method: str, settings: dict) -> None:
    if method == "best_attention":
        pytest.skip(
            "where two states serve alike, rounding decides between them: test_probes.py compares what it achieves"
        )
    sources, targets = zoo.texts(model), zoo.targets(model)
    together = explained(model, sources, targets, method, settings)
    if together is None:
        return
    backwards = explained(model, sources[::-1], targets and targets[::-1], method, settings)[::-1]
    for number, source in enumerate(sources):
        (alone,) = explained(model, [source], targets and [targets[number]], method, settings)
        for other in (together[number], backwards[number]):
            scale = max(1.0, float(np.abs(alone.scores).max()))
            # Thirty steps of fitting a mask let rounding grow.
            tolerance = 1e-3 if method == "perturbation_mask" else 1e-5
            np.testing.assert_allclose(other.scores / scale, alone.scores / scale, atol=tolerance)
            assert other.source == alone.source
            assert other.target == alone.target


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("method", "settings"), VARIANTS)
def test_awkward_input_gives_numbers(model: str, method: str, settings: dict) -> None:
    gap = zoo.model(model).tokenizer.mask_token if zoo.model(model).task == "fill" else ""
    sources = [f"the the the the {gap}", gap or "cat", f"cat {gap}"]
    targets = ["gato", "gato gato gato", "el"] if zoo.targets(model) else None
    for why in explained(model, sources, targets, method, settings) or []:
        assert np.isfinite(why.scores).all()
        assert np.isfinite(why.words().normalized("clamp").scores).all()


@pytest.mark.parametrize("method", METHODS)
def test_some_positions_are_rows_of_the_whole(method: str) -> None:
    if method == "perturbation_mask":
        pytest.skip("a mask fitted to hurt some outputs is another mask")
    settings = SMALL.get(method, {})
    model = zoo.model({"lexical_probe": "lstm", "best_attention": "lstm-linear"}.get(method, "marian"))
    whole, part = (
        sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method=method, positions=positions, **settings)
        for positions in (None, [4, -1, 0])
    )
    rows = [4, len(whole.target) - 1, 0]
    scale = float(np.abs(whole.scores).max())
    np.testing.assert_allclose(part.scores / scale, whole.scores[..., rows, :] / scale, atol=1e-5)
    assert part.target.pieces == tuple(whole.target.pieces[i] for i in rows)


def test_settings_travel_with_the_result() -> None:
    why = sightline.explain(zoo.model("marian"), zoo.SOURCES[0], zoo.TARGETS[0], method="saliency", prefix=True)
    assert why.method == "saliency"
    assert why.settings["norm"] == "l2"
    assert why.settings["of"] == "probability"
    assert why.settings["prefix"] is True
