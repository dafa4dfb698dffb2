"""What holds for every method: no NaN, no dependence on the batch, an honest refusal where it cannot answer."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import zoo

import sightline
from sightline.attend.projections import PROJECTIONS
from sightline.attend.settings import PARAMETERS
from sightline.errors import InputError
from sightline.methods import METHODS
from sightline.methods.gradients import NORMS
from sightline.methods.settings import NORM_NAMES

SMALL = {"integrated_gradients": {"steps": 3, "baseline": "zero"}, "perturbation_mask": {"steps": 10}}
VARIANTS = [(name, SMALL.get(name, {})) for name in METHODS] + [
    ("word_saliency", {"smoothgrad": 2}),
    ("attention", {"smoothgrad": 2, "head": "all"}),
    ("norms", {"head": "all", "layer": -1}),
    ("erasure", {"how": "zero", "prefix": True}),
    ("gradient", {"prefix": True, "norm": "l2"}),
]
AWKWARD = ["marian", "t5", "llama", "gpt2", "bert-classifier", "gpt2-classifier", "distilbert-filler", *zoo.OURS]

TRANSFORMERS = ("marian", "bart", "mbart", "m2m100", "nllb", "pegasus", "t5", "mt5")
DECODERS = ("gpt2", "llama", "qwen2", "gemma2", "gpt_oss")
CLASSIFIERS = ("bert-classifier", "roberta-classifier", "distilbert-classifier")
FILLERS = ("bert-filler", "roberta-filler", "distilbert-filler", "albert-filler")
RECURRENT = ("lstm", "lstm-linear", "lstm-input-feeding")
OUR_CLASSIFIERS = ("lstm-classifier", "transformer-classifier")
# What each method refuses, and why; everything else it explains.
REFUSALS = {
    "norms": {"The output projection of LstmAttention is not known": ("lstm-input-feeding",)},
    "value_zeroing": {"attends step by step": ("lstm-input-feeding",)},
    "rollout": {"does not mix its positions by self-attention alone": (*RECURRENT, "conv", *OUR_CLASSIFIERS)},
    "alti": {
        "does not mix its positions by self-attention alone": (*RECURRENT, "conv", *OUR_CLASSIFIERS),
        "does not see what follows Gemma2Attention": ("gemma2",),
    },
    "hidden_gradient": {
        "has no encoder whose states its outputs are read from": (*DECODERS, *FILLERS),
        "does not read its label from its encoder's last states": ("bert-classifier",),
    },
    "hidden_erasure": {
        "has no cross attention; it has decoder": (*DECODERS, "gpt2-classifier"),
        "has no cross attention; it has encoder": (*CLASSIFIERS, *FILLERS),
    },
    "lexical_probe": {
        "has no lexical probe": (*TRANSFORMERS, "conv", *DECODERS, *CLASSIFIERS, "gpt2-classifier", *FILLERS)
    },
    "best_attention": {
        "has no lexical probe": (*TRANSFORMERS, "conv", *DECODERS, *CLASSIFIERS, "gpt2-classifier", *FILLERS),
        "has a hidden layer after its attention": ("lstm", "lstm-input-feeding"),
    },
    "perturbation_mask": {
        "has no cross attention; it has decoder": (*DECODERS, "gpt2-classifier"),
        "has no cross attention; it has encoder": (*CLASSIFIERS, *FILLERS),
        "has no decoder whose attention could be masked": OUR_CLASSIFIERS,
    },
    "adapter": {"has no alignment adapter": tuple(zoo.ZOO)},  # tests/training/test_adapting.py makes some
}
TABLE = {
    (model, method): next((why for why, models in REFUSALS.get(method, {}).items() if model in models), None)
    for model in zoo.ZOO
    for method in METHODS
}


def explained(model: str, sources: list[str], targets: list[str] | None, method: str, settings: dict):
    """Explain, or give None where the table says that the method refuses, and it does so in one sentence."""
    why = TABLE[model, method]
    if why is None:
        return sightline.explain(zoo.precise(model), sources, targets, method=method, **settings)
    with pytest.raises(InputError, match=why) as refusal:
        sightline.explain(zoo.precise(model), sources, targets, method=method, **settings)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).endswith(".")
    return None


@pytest.mark.parametrize("model", zoo.ZOO)
@pytest.mark.parametrize(("method", "settings"), VARIANTS)
def test_results_do_not_depend_on_the_batch(model: str, method: str, settings: dict) -> None:
    sources, targets = zoo.texts(model)[:2], zoo.targets(model)
    targets = targets and targets[:2]
    together = explained(model, sources, targets, method, settings)
    if together is None:
        return
    if method == "best_attention":
        return  # where two states serve alike, rounding decides between them: test_probes.py compares what it achieves
    backwards = explained(model, sources[::-1], targets and targets[::-1], method, settings)[::-1]
    for number, source in enumerate(sources):
        (alone,) = explained(model, [source], targets and [targets[number]], method, settings)
        for other in (together[number], backwards[number]):
            scale = max(1.0, float(np.abs(alone.scores).max()))
            np.testing.assert_allclose(other.scores / scale, alone.scores / scale, atol=1e-6)
            assert other.source == alone.source
            assert other.target == alone.target


@pytest.mark.parametrize("model", AWKWARD)
@pytest.mark.parametrize(("method", "settings"), VARIANTS)
def test_awkward_input_gives_numbers(model: str, method: str, settings: dict) -> None:
    gap = zoo.model(model).tokenizer.mask_token if zoo.model(model).task == "fill" else ""
    sources = [f"the the the the {gap}", gap or "cat", f"cat {gap}"]
    targets = ["gato", "gato gato gato", "el"] if zoo.targets(model) else None
    for why in explained(model, sources, targets, method, settings) or []:
        assert np.isfinite(why.scores).all()
        assert np.isfinite(why.words().normalized("clamp").scores).all()


@pytest.mark.parametrize("method", [name for name in METHODS if name != "adapter"])
def test_some_positions_are_rows_of_the_whole(method: str) -> None:
    if method == "perturbation_mask":
        pytest.skip("a mask fitted to hurt some outputs is another mask")
    settings = SMALL.get(method, {})
    model = zoo.precise({"lexical_probe": "lstm", "best_attention": "lstm-linear"}.get(method, "marian"))
    whole, part = (
        sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method=method, positions=positions, **settings)
        for positions in (None, [4, -1, 0])
    )
    rows = [4, len(whole.target) - 1, 0]
    scale = float(np.abs(whole.scores).max())
    np.testing.assert_allclose(part.scores / scale, whole.scores[..., rows, :] / scale, atol=1e-6)
    assert part.target.pieces == tuple(whole.target.pieces[i] for i in rows)


def test_settings_travel_with_the_result() -> None:
    why = sightline.explain(zoo.model("marian"), zoo.SOURCES[0], zoo.TARGETS[0], method="saliency", prefix=True)
    assert why.method == "saliency"
    assert why.settings["norm"] == "l2"
    assert why.settings["of"] == "probability"
    assert why.settings["prefix"] is True


def test_every_method_and_every_norm_that_settings_name_is_there() -> None:
    for method in METHODS.values():
        file, _, function = str(method.function).partition(".")
        assert callable(getattr(import_module(f"sightline.methods.{file}"), function))
    assert tuple(NORMS) == NORM_NAMES
    assert tuple(PROJECTIONS) == tuple(PARAMETERS)


@pytest.mark.parametrize("method", ["gradient", "word_saliency", "integrated_gradients", "erasure", "occlusion"])
def test_what_only_represents_text_has_no_output_to_explain(method: str) -> None:
    classifier = zoo.model("bert-classifier")
    model = sightline.load(classifier.module.bert, classifier.tokenizer)
    with pytest.raises(InputError, match="BertModel has no output to explain: use attention or norms"):
        sightline.explain(model, zoo.SOURCES[0], method=method)
