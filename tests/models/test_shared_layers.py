"""Layers that share one module: each has an entry of its own, as if each had a module with the same weights."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.errors import InputError
from sightline.methods import METHODS
from sightline.models.loaded import LoadedModel

SMALL = {"integrated_gradients": {"steps": 3, "baseline": "zero"}, "perturbation_mask": {"steps": 2}}
WITH_LAYERS = ("attention", "norms", "value_zeroing")


def albert() -> tuple[LoadedModel, LoadedModel]:
    """Build an ALBERT whose layers share a module, and the same with a module for each layer."""
    torch.manual_seed(0)
    shared, tokenizer = zoo.albert()
    apart, _ = zoo.albert(groups=zoo.LAYERS)
    states = {}
    for name, tensor in shared.state_dict().items():
        for group in range(zoo.LAYERS):
            states[name.replace("groups.0", f"groups.{group}")] = tensor
    apart.load_state_dict(states)
    return sightline.load(shared.eval(), tokenizer), sightline.load(apart.eval(), tokenizer)


def marian() -> tuple[LoadedModel, LoadedModel]:
    """Build a translation model whose decoder runs one layer twice, and the same with a copy of that layer."""
    shared, apart = zoo.fresh("marian"), zoo.fresh("marian")
    for model, second in ((shared, lambda layer: layer), (apart, copy.deepcopy)):
        layers = model.module.get_decoder().layers
        layers[1] = second(layers[0])
    return shared, apart


REFUSED = ("lexical_probe", "best_attention", "hidden_gradient", "hidden_erasure", "perturbation_mask", "adapter")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("build", [albert, marian])
def test_every_call_is_a_layer(build, method: str) -> None:
    shared, apart = build()
    pair = ("The [MASK] sleeps.",) if build is albert else (zoo.SOURCES[0], zoo.TARGETS[0])
    settings = SMALL.get(method, {})
    try:
        expected = sightline.explain(apart, *pair, method=method, **settings)
    except InputError as error:
        with pytest.raises(InputError, match=str(error)[:20]):
            sightline.explain(shared, *pair, method=method, **settings)
        assert method in REFUSED
        return
    found = sightline.explain(shared, *pair, method=method, **settings)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6 * np.abs(expected.scores).max())
    if method in WITH_LAYERS:
        assert found.scores.shape[0] == zoo.LAYERS
        assert not np.allclose(found.scores[0], found.scores[1], atol=1e-3)
        last = sightline.explain(shared, *pair, method=method, layer=-1, **settings)
        np.testing.assert_allclose(last.scores, expected.scores[-1], atol=1e-6 * np.abs(expected.scores).max())


def test_the_kinds_of_layers_alternate() -> None:
    shared, _ = marian()
    layers = [(layer.kind, layer.index, layer.call) for layer in shared.attention_layers if layer.kind != "encoder"]
    assert layers == [("decoder", 0, 0), ("cross", 0, 0), ("decoder", 1, 1), ("cross", 1, 1)]


def test_calibration_needs_layers_of_their_own() -> None:
    shared, apart = marian()
    assert len(sightline.calibrate(apart).calibration.shapes) == zoo.LAYERS
    with pytest.raises(InputError, match="shares its cross-attention between layers"):
        sightline.calibrate(shared)
