"""Watching: with nothing changed nothing changes, what is recorded is what was there, and it all ends on exit."""

from __future__ import annotations

import copy
import threading

import pytest
import torch
import zoo
from torch import Tensor

from sightline.attend.watch import (
    Change,
    Record,
    _hugging_face_attention,
    _SharedTensors,
    attend,
    eager_attention,
    watch,
)
from sightline.models.loaded import LoadedModel

GENERATORS = [*zoo.TRANSLATORS, *zoo.DECODERS]


def batch_of(model: LoadedModel, name: str):
    sources, targets = zoo.texts(name), zoo.targets(name)
    if targets is None:
        examples = [model.encode(source, None) for source in sources]
        examples = [model.with_output(e, ids) for e, ids in zip(examples, model.answer(examples), strict=True)]
    else:
        examples = [model.encode(s, t) for s, t in zip(sources, targets, strict=True)]
    return model.batch(examples)


def implementations(model: LoadedModel) -> list[str]:
    return [m.config._attn_implementation for m in model.module.modules() if hasattr(m, "config")]


def compared(name: str) -> tuple[LoadedModel, dict[str, float]]:
    """Build a model in double precision, where its own eager attention has it, and say how near ours should be."""
    if name in ("llama", "qwen2", "gemma2"):
        return zoo.fresh(name), {"atol": 1e-5, "rtol": 1e-5}
    return zoo.fresh_precise(name), {"atol": 1e-11, "rtol": 1e-11}


@pytest.mark.parametrize("name", zoo.ZOO)
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@torch.no_grad()
def test_nothing_changed_and_weights_as_the_model_gives_them(name: str, kernel: str) -> None:
    model, tolerance = compared(name)
    if kernel == "eager":
        model.module.set_attn_implementation("eager")
    inputs = model.inputs(batch_of(model, name))
    with eager_attention(model.module) as eager:
        expected = eager(**inputs, output_attentions=name not in zoo.OURS)
    before = implementations(model)
    with watch(model.module) as seen:
        logits = model.module(**inputs).logits
    assert implementations(model) == before
    torch.testing.assert_close(logits, expected.logits, **tolerance)
    if name in zoo.OURS:  # their weights are compared with literal computations, beside the models
        return
    theirs = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    for layer in model.attention_layers:
        key = theirs[layer.kind] if model.has_encoder_and_decoder else "attentions"
        ours = layer.seen_by(seen).weights
        reference = expected[key][layer.index]
        real = real_rows(model, inputs, layer.kind, reference)
        torch.testing.assert_close(ours * real, reference * real, **tolerance, check_dtype=False)


def real_rows(model: LoadedModel, inputs: dict, kind: str, weights: Tensor) -> Tensor:
    """Padding rows are nobody's: some models average there, some do not."""
    if kind in ("cross", "decoder") and model.has_encoder_and_decoder:
        return torch.ones(len(weights), 1, weights.shape[2], 1)
    return inputs["attention_mask"][:, None, :, None].float()


@pytest.mark.parametrize("name", zoo.ZOO)
def test_the_eager_reference_is_a_copy_that_holds_the_same_weights(name: str) -> None:
    model = zoo.model(name).module
    with eager_attention(model) as reference:
        assert reference is not model
        assert all(one is other for one, other in zip(reference.parameters(), model.parameters(), strict=True))


@pytest.mark.parametrize("name", ["marian", "t5", "llama", "bert-classifier"])
@torch.no_grad()
def test_in_single_precision_it_differs_by_rounding_alone(name: str) -> None:
    model, exact = zoo.fresh(name), zoo.precise(name)
    inputs = model.inputs(batch_of(model, name))
    with eager_attention(model.module) as eager:
        expected = eager(**inputs).logits
    noise = (expected - exact.module(**inputs).logits).abs().max()
    with watch(model.module):
        logits = model.module(**inputs).logits
    assert 0 < noise < 1e-3
    assert (logits - expected).abs().max() < 4 * noise


@pytest.mark.parametrize("name", zoo.ZOO)
@torch.no_grad()
def test_left_padding(name: str) -> None:
    model, tolerance = compared(name)
    inputs = model.inputs(batch_of(model, name))
    mask = inputs["attention_mask"].flip(1)
    inputs |= {"input_ids": inputs["input_ids"].flip(1), "attention_mask": mask}
    with eager_attention(model.module) as eager:
        expected = eager(**inputs).logits
    with watch(model.module):
        logits = model.module(**inputs).logits
    if logits.ndim == 3 and not model.has_encoder_and_decoder:
        logits, expected = logits * mask[..., None], expected * mask[..., None]
    torch.testing.assert_close(logits, expected, **tolerance)


@pytest.mark.parametrize("name", GENERATORS)
@torch.no_grad()
def test_under_generate_every_step_is_seen(name: str) -> None:
    model = zoo.precise(name)
    example = model.encode(zoo.SOURCES[0], None)
    ids = torch.tensor([example.ids])
    options = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    expected = model.module.generate(ids, **options)
    kind = "cross" if model.has_encoder_and_decoder else "decoder"
    layers = [layer.module for layer in model.layers(kind)]
    with watch(model.module, layers) as seen:
        generated = model.module.generate(ids, **options)
    assert generated.tolist() == expected.tolist()
    for layer in layers:
        assert len(seen.calls[layer]) == 6
        assert all(record.weights.shape[2] == 1 for record in seen.calls[layer][1:])
    if kind == "cross":  # step by step is what teacher forcing gives
        with watch(model.module, layers) as forced:
            model.module(input_ids=ids, decoder_input_ids=generated[:, :-1])
        for layer in layers:
            steps = torch.cat([record.weights for record in seen.calls[layer]], 2)
            torch.testing.assert_close(steps, forced[layer].weights, atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["marian", "t5", "bert-classifier", "llama"])
@torch.no_grad()
def test_half_precision_records_in_float32(name: str, dtype: torch.dtype) -> None:
    model = zoo.fresh(name)
    model.module.to(dtype)
    inputs = model.inputs(batch_of(model, name))
    with eager_attention(model.module) as eager:
        expected = eager(**inputs).logits.float()
    with watch(model.module) as seen:
        logits = model.module(**inputs).logits
    assert logits.dtype == dtype
    for records in seen.calls.values():
        assert records[0].weights.dtype == torch.float32
    torch.testing.assert_close(logits.float(), expected, atol=0.06 * expected.abs().max().item(), rtol=0)


def test_training_takes_the_same_dropout_as_eager() -> None:
    model = zoo.fresh_precise("marian")
    inputs = model.inputs(batch_of(model, "marian"))
    model.module.train()
    torch.manual_seed(1)
    with eager_attention(model.module) as eager:
        expected = eager(**inputs).logits
    torch.manual_seed(1)
    with watch(model.module) as seen:
        logits = model.module(**inputs).logits
    torch.testing.assert_close(logits, expected, atol=1e-11, rtol=1e-11)
    for records in seen.calls.values():  # recorded before dropout
        torch.testing.assert_close(records[0].weights.sum(-1), torch.ones_like(records[0].weights[..., 0]))
    logits.sum().backward()
    assert all(p.grad is not None for p in model.module.model.decoder.layers.parameters())


def test_only_the_layers_asked_for_leave_the_fast_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    fast = []
    kernel = ALL_ATTENTION_FUNCTIONS["sdpa"]
    monkeypatch.setitem(
        ALL_ATTENTION_FUNCTIONS._global_mapping,
        "sdpa",
        lambda module, *a, **k: fast.append(module) or kernel(module, *a, **k),
    )
    model = zoo.fresh("marian")
    cross = [layer.module for layer in model.layers("cross")]
    fast.clear()
    with watch(model.module, cross[:1]):
        model.module(**model.inputs(batch_of(model, "marian")))
    assert len(fast) == len(model.attention_layers) - 1
    assert all(module is not cross[0] for module in fast)


class StopError(Exception):
    """Raised in the middle of a pass."""


def test_after_an_error_everything_is_as_before() -> None:
    model = zoo.fresh("t5")
    inputs = model.inputs(batch_of(model, "t5"))
    expected = model.module(**inputs).logits
    before = implementations(model)

    def stop(call, weights):
        raise StopError

    with pytest.raises(StopError), watch(model.module, change=Change(weights=stop)):
        model.module(**inputs)
    assert implementations(model) == before
    torch.testing.assert_close(model.module(**inputs).logits, expected, atol=0, rtol=0)


def test_nested_watches_each_see_their_own() -> None:
    model = zoo.fresh("marian")
    inputs = model.inputs(batch_of(model, "marian"))
    cross, encoder = (
        [layer.module for layer in model.attention_layers if layer.kind == kind] for kind in ("cross", "encoder")
    )
    before = implementations(model)
    with watch(model.module, cross) as outer:
        with watch(model.module, encoder, record=("keys",)) as inner:
            model.module(**inputs)
        assert implementations(model) != before
        model.module(**inputs)
    assert implementations(model) == before
    assert set(outer.calls) == set(cross)
    assert [len(outer.calls[layer]) for layer in cross] == [2, 2]
    assert [len(inner.calls[layer]) for layer in encoder] == [1, 1]
    assert inner[encoder[0]].weights is None
    assert inner[encoder[0]].keys is not None


def test_threads_do_not_see_each_other() -> None:
    model = zoo.fresh("marian")
    batch = batch_of(model, "marian")
    layer = model.layers("cross")[0].module
    before = implementations(model)
    counts: list[int] = []

    def run() -> None:
        for _ in range(5):
            with watch(model.module, [layer]) as seen, torch.no_grad():
                model.module(**model.inputs(batch))
            counts.append(len(seen.calls[layer]))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1] * 15
    assert implementations(model) == before


@torch.no_grad()
def test_changes_do_what_they_say() -> None:
    model = zoo.fresh("marian")
    batch = batch_of(model, "marian")
    inputs = model.inputs(batch)
    layer = model.layers("cross")[0].module

    def uniform(scores: Tensor, mask: Tensor | None) -> Tensor:
        real = torch.ones_like(scores) if mask is None else mask.expand_as(scores).float()
        return real / real.sum(-1, keepdim=True)

    with watch(model.module, [layer], change=Change(projection=uniform)) as seen:
        model.module(**inputs)
    lengths = batch.mask.sum(1)
    expected = batch.mask[:, None, None].float() / lengths[:, None, None, None]
    torch.testing.assert_close(seen[layer].weights, expected.expand_as(seen[layer].weights))

    keep_nothing = Change(weights=lambda call, weights: torch.zeros_like(weights))
    no_values = Change(values=lambda call: torch.zeros_like(call.values))
    with watch(model.module, [layer], change=keep_nothing):
        without_weights = model.module(**inputs).logits
    with watch(model.module, [layer], change=no_values):
        without_values = model.module(**inputs).logits
    torch.testing.assert_close(without_weights, without_values)
    assert not torch.allclose(without_values, model.module(**inputs).logits, atol=1e-3)


def test_the_seam_has_exact_gradients() -> None:
    """Our own mathematics: scores and values to the weighted sum, with a mask and a sink, in float64."""
    layer = torch.nn.Identity()
    scores = torch.randn(2, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    values = torch.randn(2, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    sinks = torch.randn(2, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, True], [True, True, True, True]])[:, None, None]

    def output(scores: Tensor, values: Tensor, sinks: Tensor) -> Tensor:
        def softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
            column = sinks.view(1, -1, 1, 1).expand(2, 2, 3, 1)
            return torch.cat([scores.masked_fill(~mask, -torch.inf), column], -1).softmax(-1)[..., :-1]

        return attend(layer, scores, values, mask, projection=softmax)[0]

    assert torch.autograd.gradcheck(output, (scores, values, sinks))
    given, _ = attend(layer, scores, values, mask, sinks=sinks)
    torch.testing.assert_close(given, output(scores, values, sinks), atol=1e-12, rtol=1e-12)


def test_the_steps_of_a_pass_make_one_record() -> None:
    weights, queries, keys = torch.randn(2, 2, 4, 6, 5), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 5, 8)
    first, second, third = (
        Record(weights=weights[0, :, :, some], original=weights[1, :, :, some], queries=queries[:, :, some], keys=keys)
        for some in (slice(0, 2), slice(2, 3), slice(3, 6))
    )
    joined = first.followed_by(second).followed_by(third)
    assert torch.equal(joined.weights, weights[0])
    assert torch.equal(joined.original, weights[1])
    assert torch.equal(joined.queries, queries)
    assert torch.equal(joined.keys, keys)
    assert joined.values is None


def test_scores_without_a_scale_of_their_own_are_divided_by_the_root_of_the_width() -> None:
    query, key, value = (torch.randn(2, heads, 3, 4, dtype=torch.float64) for heads in (4, 2, 2))
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    found, _ = _hugging_face_attention(torch.nn.Identity(), query, key, value, None, is_causal=False)
    torch.testing.assert_close(found, expected.transpose(1, 2))
    twice, _ = _hugging_face_attention(torch.nn.Identity(), 2 * query, key, value, None, scaling=0.25, is_causal=False)
    torch.testing.assert_close(twice, found)  # half of 2, which is one by the root of 4


def test_a_float_mask_hides_where_it_is_lowest_and_is_a_bias_elsewhere() -> None:
    layer = torch.nn.Identity()
    query, key, value = (torch.randn(1, 1, 3, 4, dtype=torch.float64) for _ in range(3))
    mask = torch.tensor([0.0, 0.5, torch.finfo(torch.float64).min], dtype=torch.float64).expand(1, 1, 3, 3)
    _, weights = _hugging_face_attention(layer, query, key, value, mask, scaling=1.0)
    shown = query @ key[:, :, :2].transpose(2, 3) + torch.tensor([0.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(weights, torch.nn.functional.pad(shown.softmax(-1), (0, 1)))
    evenly = Change(projection=lambda scores, real: real.to(scores).expand_as(scores) / real.sum(-1, keepdim=True))
    with watch(layer, change=evenly):
        _, weights = _hugging_face_attention(layer, query, key, value, mask, scaling=1.0)
    torch.testing.assert_close(weights, torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64).expand(1, 1, 3, 3))


def test_only_copies_of_tensors_are_shared() -> None:
    numbers = torch.ones(2)
    with _SharedTensors():
        assert copy.deepcopy([numbers])[0] is numbers
        assert torch.zeros(2, dtype=torch.float64).dtype == torch.float64
        assert torch.equal(numbers.sum(), torch.tensor(2.0))
