"""Embeddings: each position's own can be changed, on the side that was meant, and nothing stays behind."""

from __future__ import annotations

import math

import pytest
import torch
import zoo
from torch import Tensor

from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel

REPEATED = "the cat sees the cat and the bird"
# These normalise in float32 whatever the model's precision is, so that finite differences are coarse.
NORMALISED_IN_FLOAT32 = {"t5", "mt5", "llama", "qwen2", "gemma2", "gpt_oss"}
SIDES = [(name, "source") for name in zoo.ZOO] + [(name, "prefix") for name in zoo.TRANSLATORS]
SCALED_OUTSIDE, SCALED_INSIDE = ["marian", "pegasus"], ["mbart", "m2m100", "nllb"]


def batch_of(model: LoadedModel, source: str = REPEATED) -> Batch:
    if model.task == "fill":
        source = f"{source} {model.tokenizer.mask_token}"
    targets = {"translate": "el gato ve", "continue": "el gato ve"}
    example = model.encode(source, targets.get(model.task))
    if not example.labels:
        example = model.with_output(example, model.answer([example])[0])
    return model.batch([example])


def side_ids(batch: Batch, side: str) -> Tensor:
    ids = batch.ids if side == "source" else batch.decoder_ids
    assert ids is not None
    return ids


def scored(model: LoadedModel, batch: Batch, side: str, multiplier: Tensor) -> Tensor:
    """Return the outputs' log-probabilities as a function of a multiplier per position of one side."""
    with model.changed_embeddings(**{side: lambda embeddings: embeddings * multiplier[None, :, None]}):
        return model.log_probs(batch).sum()


@pytest.mark.parametrize(("name", "side"), SIDES)
@torch.no_grad()
def test_a_multiplier_of_one_changes_nothing(name: str, side: str) -> None:
    model = zoo.model(name)
    batch = batch_of(model)
    ones = torch.ones(side_ids(batch, side).shape[1])
    expected = model.log_probs(batch)
    with model.changed_embeddings(**{side: lambda embeddings: embeddings * ones[None, :, None]}):
        torch.testing.assert_close(model.log_probs(batch), expected, atol=1e-6, rtol=1e-6)
    assert not torch.allclose(scored(model, batch, side, ones * 0.5), expected.sum(), atol=1e-3)


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_gradients_are_those_of_finite_differences(name: str, side: str) -> None:
    model = zoo.fresh(name)
    if name == "gpt_oss":
        model.module.set_experts_implementation("eager")  # the grouped product takes no float64
    model.module.double()
    batch = batch_of(model)
    count = side_ids(batch, side).shape[1]
    ones = torch.ones(count, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(scored(model, batch, side, ones), ones)
    coarse = name in NORMALISED_IN_FLOAT32
    step = 1e-3 if coarse else 1e-5
    with torch.no_grad():
        unit = torch.eye(count, dtype=torch.float64) * step
        difference = torch.stack(
            [(scored(model, batch, side, 1 + u) - scored(model, batch, side, 1 - u)) / (2 * step) for u in unit]
        )
    tolerance = {"atol": 0.02, "rtol": 0.01} if coarse else {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(gradient, difference, **tolerance)


@pytest.mark.parametrize("name", zoo.ZOO)
def test_repeated_words_stay_apart(name: str) -> None:
    model = zoo.model(name)
    batch = batch_of(model)
    multiplier = torch.ones(batch.ids.shape[1], requires_grad=True)
    (gradient,) = torch.autograd.grad(scored(model, batch, "source", multiplier), multiplier)
    cat = max(batch.ids[0].tolist(), key=batch.ids[0].tolist().count)  # a token that occurs more than once
    places = (batch.ids[0] == cat).nonzero().flatten()
    assert len(places) >= 2
    assert len(set(gradient[places].tolist())) == len(places)


@pytest.mark.parametrize("name", SCALED_OUTSIDE + SCALED_INSIDE)
@pytest.mark.parametrize("side", ["source", "prefix"])
@torch.no_grad()
def test_a_change_sees_embeddings_as_the_layers_get_them(name: str, side: str) -> None:
    model = zoo.model(name)
    batch = batch_of(model)
    given: list[Tensor] = []
    with model.changed_embeddings(**{side: lambda embeddings: given.append(embeddings) or embeddings}):
        model.run(batch)
    site = model.embedding_sites[side]
    assert site.scale == (math.sqrt(zoo.WIDTH) if name in SCALED_OUTSIDE else 1.0)
    expected = site.module.weight[side_ids(batch, side)] * math.sqrt(zoo.WIDTH)
    torch.testing.assert_close(given[0], expected)
    assert len(given) == 1


@pytest.mark.parametrize("name", ["marian", "pegasus", "m2m100", "nllb", "t5", "mt5"])
@pytest.mark.parametrize("side", ["source", "prefix"])
@torch.no_grad()
def test_noise_arrives_in_the_size_that_was_added(name: str, side: str) -> None:
    model = zoo.model(name)
    batch = batch_of(model)
    noise = torch.randn(1, side_ids(batch, side).shape[1], zoo.WIDTH)
    states = "encoder_hidden_states" if side == "source" else "decoder_hidden_states"
    before = model.module(**model.inputs(batch), output_hidden_states=True)[states][0]
    with model.changed_embeddings(**{side: lambda embeddings: embeddings + noise}):
        after = model.module(**model.inputs(batch), output_hidden_states=True)[states][0]
    torch.testing.assert_close(after - before, noise, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", zoo.TRANSLATORS)
@torch.no_grad()
def test_each_side_is_changed_alone_even_where_they_share_a_module(name: str) -> None:
    model = zoo.model(name)
    batch = batch_of(model)
    seen: dict[str, list[int]] = {"source": [], "prefix": []}

    def note(side: str):
        return lambda embeddings: seen[side].append(embeddings.shape[1]) or embeddings

    with model.changed_embeddings(source=note("source"), prefix=note("prefix")):
        model.run(batch)
        model.run(batch)
    lengths = {side: side_ids(batch, side).shape[1] for side in seen}
    assert lengths["source"] != lengths["prefix"]
    assert seen == {side: [length] * 2 for side, length in lengths.items()}


def hooks(model: LoadedModel) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.module.modules())


@pytest.mark.parametrize("name", ["marian", "t5", "bert-classifier", "llama"])
def test_no_hook_stays_even_after_an_error(name: str) -> None:
    model = zoo.fresh(name)
    batch = batch_of(model)
    before = hooks(model)
    expected = model.log_probs(batch)

    def stop(_: Tensor) -> Tensor:
        assert hooks(model) > before
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"), model.changed_embeddings(source=stop):
        model.run(batch)
    assert hooks(model) == before
    with pytest.raises(KeyError), model.changed_embeddings(nowhere=lambda embeddings: embeddings):
        pass
    assert hooks(model) == before
    torch.testing.assert_close(model.log_probs(batch), expected, atol=0, rtol=0)
