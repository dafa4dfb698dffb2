"""Calibration against its equations written out, on every encoder-decoder of the zoo, saved, loaded and generating."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import sightline
from sightline.attend.calibration import Masks, perturb
from sightline.attend.settings import CalibrationSettings
from sightline.attend.watch import Call, Change, watch
from sightline.models.loaded import LoadedModel

FUSIONS = ("fixed", "anneal", "gate")


def twin_of(name: str, base=zoo.model, **options) -> LoadedModel:
    """Return a calibrated copy of a model of the zoo, whose calibration is not near its beginning."""
    twin = sightline.calibrate(base(name), **options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in twin.calibration.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return twin


def batch_of(model: LoadedModel, count: int | None = None):
    pairs = list(zip(zoo.SOURCES, zoo.TARGETS, strict=True))[:count]
    return model.batch([model.encode(source, target) for source, target in pairs])


def logits_of(model: LoadedModel, batch) -> Tensor:
    with torch.no_grad():
        return model.logits(batch)


def literal_mask(layer, states: Tensor, encoded: Tensor, real: Tensor, head: int, t: int, i: int) -> float:
    """Compute eq. 4 for one weight."""
    if not real[i]:
        return 1.0
    width = layer.query.out_features // layer.heads
    rows = slice(head * width, (head + 1) * width)
    query = layer.query.weight[rows] @ states[t] + layer.query.bias[rows]
    key = layer.key.weight[rows] @ encoded[i] + layer.key.bias[rows]
    logit = float((query @ key).detach()) / math.sqrt(width)
    if layer.bound is not None:
        logit = layer.bound * math.tanh(logit / layer.bound)
    return 1 / (1 + math.exp(-logit))


def literal_fusion(twin: LoadedModel, number: int, a: float, m: float, query: Tensor, head: int) -> float:
    """Compute eq. 7 to 10 for one weight."""
    chosen, layer = twin.calibration.settings, twin.calibration.layers[number]
    calibrated = a * math.exp(1 - m)
    if chosen.fusion == "fixed":
        return a + chosen.ratio * calibrated
    if chosen.fusion == "anneal":
        share = float(np.float32(math.exp(-1.5)))  # it is kept in single precision
    else:
        row = head if chosen.gate == "head" else 0
        scaled = query / math.sqrt(len(query))
        share = 1 / (1 + math.exp(-float((layer.gate_weight[row] @ scaled + layer.gate_bias[row]).detach())))
    return share * a + (1 - share) * calibrated


@pytest.mark.parametrize(
    "options",
    [
        {"fusion": "fixed", "ratio": 0.3},
        {"fusion": "anneal", "renormalize": "sum"},
        {"fusion": "gate", "bound": 0.7},
        {"fusion": "gate", "gate": "layer", "renormalize": "softmax", "bound": None},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_every_weight_is_what_the_equations_say(options: dict) -> None:
    twin = twin_of("marian", zoo.precise, **options)
    batch = batch_of(twin, 3)
    layers = [layer.module for layer in twin.layers("cross")]
    states: dict = {}
    hooks = [layer.register_forward_pre_hook(lambda m, args: states.setdefault(m, args[0])) for layer in layers]
    with torch.no_grad(), watch(twin.module, layers, ("weights", "original", "queries")) as seen:
        twin.run(batch)
        encoded = twin.run_encoder(batch).states
    for hook in hooks:
        hook.remove()
    for number, layer in enumerate(layers):
        record, calibration = seen[layer], twin.calibration.layers[number]
        for b, h, t in ((0, 0, 0), (1, 1, 2), (2, 3, 1)):
            expected = []
            for i in range(batch.ids.shape[1]):
                m = literal_mask(calibration, states[layer][b], encoded[b], batch.mask[b], h, t, i)
                a = float(record.original[b, h, t, i])
                expected.append(literal_fusion(twin, number, a, m, record.queries[b, h, t], h))
            row = torch.tensor(expected, dtype=torch.float64)
            if options.get("renormalize") == "sum":
                row = row / row.sum()
            if options.get("renormalize") == "softmax":
                row = row.masked_fill(~batch.mask[b], -math.inf).softmax(-1)
            torch.testing.assert_close(record.weights[b, h, t], row, atol=1e-11, rtol=1e-11)


def test_only_the_last_layer_is_calibrated_where_that_is_asked_for() -> None:
    twin = twin_of("marian", zoo.precise, fusion="fixed", layers="last")

    def read(method: str, **options) -> np.ndarray:
        return sightline.explain(twin, zoo.SOURCES[0], zoo.TARGETS[0], method=method, **options).scores

    before, after = (read("attention", head="all", original=original) for original in (True, False))
    masks = read("perturbation_mask")
    np.testing.assert_array_equal(after[:-1], before[:-1])
    np.testing.assert_array_equal(masks[:-1], 0)
    assert masks.shape == before.shape
    np.testing.assert_allclose(after[-1], before[-1] * (1 + 0.1 * np.exp(masks[-1])), rtol=1e-6)  # kept in float32
    assert (masks[-1] > 0).any()


@pytest.mark.parametrize("name", zoo.TRANSLATORS)
def test_every_family_is_calibrated_and_only_within(name: str) -> None:
    base, twin = zoo.precise(name), twin_of(name, zoo.precise)
    batch = batch_of(twin)
    expected = logits_of(base, batch)
    assert not torch.allclose(logits_of(twin, batch), expected, atol=1e-4)
    with twin.uncalibrated():
        torch.testing.assert_close(logits_of(twin, batch), expected, atol=1e-11, rtol=1e-11)
    assert base.calibration is None
    torch.testing.assert_close(logits_of(base, batch), expected, atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("name", ["marian", "t5", "lstm-input-feeding", "conv"])
def test_a_mask_of_one_leaves_attention_unchanged(name: str) -> None:
    twin = twin_of(name, zoo.precise, fusion="anneal")
    batch = batch_of(twin)
    expected = logits_of(zoo.precise(name), batch)
    for way in ("calibrated", "perturbed"):
        with twin.calibration.running(way, change=torch.ones_like):
            torch.testing.assert_close(logits_of(twin, batch), expected, atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("name", ["marian", "m2m100", "lstm", "lstm-input-feeding", "conv"])
def test_a_mask_of_zero_makes_attention_uniform_over_real_tokens(name: str) -> None:
    twin = twin_of(name)
    batch = batch_of(twin)
    layers = [layer.module for layer in twin.layers("cross")]
    real = batch.mask[:, None, None].float()
    with (
        torch.no_grad(),
        twin.calibration.running("perturbed", lambda mask: torch.zeros_like(mask)),
        watch(twin.module, layers) as seen,
    ):
        twin.run(batch)
    for layer in layers:
        uniform = (real / real.sum(-1, keepdim=True)).expand_as(seen[layer].weights)
        torch.testing.assert_close(seen[layer].weights, uniform)


@given(st.integers(0, 10_000), st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_perturbed_weights_stay_between_attention_and_uniform(seed: int, length: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(1, 2, 3, length + 1, generator=generator)
    real = torch.ones(1, 1, 1, length + 1, dtype=torch.bool)
    real[..., -1] = False
    weights = (weights * real) / (weights * real).sum(-1, keepdim=True)
    mask = torch.rand(weights.shape, generator=generator).masked_fill(~real, 1.0)
    perturbed = perturb(weights, mask, real)
    low, high = weights.clamp(max=1 / length), weights.clamp(min=1 / length)
    inside = (perturbed >= low - 1e-6) & (perturbed <= high + 1e-6)
    assert bool(inside[..., :-1].all())
    assert bool((perturbed[..., -1] == 0).all())


@pytest.mark.parametrize("name", ["marian", "t5", "lstm-input-feeding", "conv"])
def test_padding_changes_nothing(name: str) -> None:
    twin = twin_of(name, zoo.precise)
    together = sightline.explain(twin, zoo.SOURCES, zoo.TARGETS, method="perturbation_mask", progress=False)
    for source, target, why in list(zip(zoo.SOURCES, zoo.TARGETS, together, strict=True))[:2]:
        alone = sightline.explain(twin, source, target, method="perturbation_mask")
        np.testing.assert_allclose(why.scores, alone.scores, atol=1e-6)
        assert why.axes == ("layer", "head")


@pytest.mark.parametrize("name", ["marian", "m2m100", "t5", "lstm", "lstm-input-feeding", "conv"])
def test_greedy_generation_is_the_argmax_of_the_teacher_forced_pass(name: str) -> None:
    twin = twin_of(name)
    examples = [twin.encode(source, None) for source in zoo.SOURCES]
    with twin.evaluating():
        answers = twin.answer(examples, max_new_tokens=6)
        for example, ids in zip(examples[:2], answers, strict=False):
            assert twin.answer([example], max_new_tokens=6) == [ids]
        batch = twin.batch([twin.with_output(e, ids) for e, ids in zip(examples, answers, strict=True)])
        logits = logits_of(twin, batch)
    banned = {ids[0] for ids in twin.module.generation_config.bad_words_ids or ()}
    for row in range(len(batch)):
        for step in batch.row_mask[row].nonzero()[:, 0].tolist():
            if step == 0 and name in zoo.LANGUAGES:  # the language's token is forced
                continue
            scores = logits[row, step].clone()
            scores[list(banned)] = -math.inf
            chosen = int(batch.outputs[row, step])
            assert scores[chosen] >= scores.max() - 1e-4


def test_beams_are_those_of_the_uncached_model() -> None:
    twin = twin_of("marian")
    options = {"num_beams": 3, "max_new_tokens": 5}
    batch = batch_of(twin)
    inputs = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
    cached = twin.module.generate(**inputs, **options)
    assert torch.equal(cached, twin.module.generate(**inputs, **options, use_cache=False))


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("name", ["marian", "t5", "lstm-input-feeding", "conv"])
def test_saved_and_loaded_it_is_the_same(name: str, fusion: str, tmp_path: Path) -> None:
    twin = twin_of(name, fusion=fusion, renormalize="sum", alpha=0.5)
    twin.save(tmp_path)
    again = sightline.load(tmp_path)
    assert again.calibration.settings == twin.calibration.settings
    batch = batch_of(twin)
    torch.testing.assert_close(logits_of(again, batch), logits_of(twin, batch), atol=0, rtol=0)
    for file in ("calibration.json", "calibration.safetensors"):
        (tmp_path / file).unlink()
    base = sightline.load(tmp_path)  # the model itself is saved without
    assert base.calibration is None
    torch.testing.assert_close(logits_of(base, batch), logits_of(zoo.model(name), batch), atol=0, rtol=0)


def test_saved_again_it_is_the_same_file(tmp_path: Path) -> None:
    twin_of("marian").save(tmp_path / "one")
    sightline.load(tmp_path / "one").save(tmp_path / "other")
    for file in ("calibration.json", "calibration.safetensors", "model.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_a_damaged_calibration_is_refused(tmp_path: Path) -> None:
    twin_of("marian").save(tmp_path)
    description = json.loads((tmp_path / "calibration.json").read_text())
    description["layers"][0]["heads"] = 2
    (tmp_path / "calibration.json").write_text(json.dumps(description))
    with pytest.raises(sightline.InputError, match=r"calibration in .* cannot be loaded"):
        sightline.load(tmp_path)
    (tmp_path / "calibration.safetensors").unlink()
    with pytest.raises(sightline.InputError, match="cannot be loaded"):
        sightline.load(tmp_path)


def test_attention_is_calibrated_and_the_original_can_be_had() -> None:
    twin = twin_of("marian", zoo.precise, fusion="fixed", ratio=0.5)
    options = {"method": "attention", "head": "all", "progress": False}
    calibrated = sightline.explain(twin, zoo.SOURCES, zoo.TARGETS, **options)
    original = sightline.explain(twin, zoo.SOURCES, zoo.TARGETS, **options, original=True)
    masks = sightline.explain(twin, zoo.SOURCES, zoo.TARGETS, method="perturbation_mask", progress=False)
    for c, o, m in zip(calibrated, original, masks, strict=True):
        np.testing.assert_allclose(o.scores.sum(-1), 1, atol=1e-6)
        np.testing.assert_allclose(c.scores, o.scores + 0.5 * o.scores * np.exp(m.scores), atol=1e-6)


@pytest.mark.parametrize("method", ["norms", "gradient", "erasure", "hidden_gradient"])
def test_other_methods_explain_a_calibrated_model(method: str) -> None:
    twin = twin_of("marian", renormalize="sum")
    of_twin = sightline.explain(twin, zoo.SOURCES[0], zoo.TARGETS[0], method=method)
    of_base = sightline.explain(zoo.model("marian"), zoo.SOURCES[0], zoo.TARGETS[0], method=method)
    assert of_twin.scores.shape == of_base.scores.shape
    assert not np.allclose(of_twin.scores, of_base.scores, atol=1e-6)


def test_a_copy_is_calibrated_by_its_own_weights() -> None:
    twin = twin_of("marian")
    other = sightline.load(copy.deepcopy(twin.module), twin.tokenizer)
    batch = batch_of(twin)
    before = logits_of(twin, batch)
    torch.testing.assert_close(logits_of(other, batch), before)
    with torch.no_grad():
        for parameter in other.calibration.parameters():
            parameter.zero_()
    assert not torch.allclose(logits_of(other, batch), before, atol=1e-4)
    torch.testing.assert_close(logits_of(twin, batch), before)


def test_a_decoder_that_fails_leaves_nothing_behind() -> None:
    twin = twin_of("marian")
    batch = batch_of(twin)
    expected = logits_of(twin, batch)
    implementation = twin.module.config._attn_implementation

    def fail(call: Callable) -> Tensor:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"), twin.calibration.running("calibrated", change=fail):
        twin.run(batch)
    assert twin.module.config._attn_implementation == implementation
    torch.testing.assert_close(logits_of(twin, batch), expected)


def test_what_is_hidden_gets_no_weight_from_a_softmax() -> None:
    twin = twin_of("marian", renormalize="softmax")
    batch = batch_of(twin)
    layers = [layer.module for layer in twin.layers("cross")]
    seen_positions = batch.mask.clone()
    seen_positions[:, 1] = False
    hide = Change(mask=lambda call: seen_positions[:, None, None])
    with torch.no_grad(), watch(twin.module, layers, change=hide) as seen:
        twin.run(batch)
    for layer in layers:
        assert float(seen[layer].weights[..., 1].abs().max()) == 0
        torch.testing.assert_close(seen[layer].weights.sum(-1), torch.ones(seen[layer].weights.shape[:3]))


def test_recomputed_layers_are_refused() -> None:
    twin = twin_of("marian")
    twin.module.gradient_checkpointing_enable()
    with pytest.raises(sightline.InputError, match="gradient checkpointing"):
        twin.module.train()(**twin.inputs(batch_of(twin)))


def test_changed_weights_are_noticed_where_keys_are_remembered() -> None:
    twin = twin_of("marian")
    batch = batch_of(twin)
    with torch.no_grad():
        encoded = twin.run_encoder(batch)
        before = twin.logits_after(batch, encoded)
        twin.calibration.layers[0].key.weight.mul_(3)
        after = twin.logits_after(batch, encoded)
        torch.testing.assert_close(after, twin.logits_after(batch, twin.run_encoder(batch)))
    assert not torch.allclose(before, after, atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_masks_of_steps_are_joined(count: int) -> None:
    parts = [torch.rand(1, 2, 1, 3) for _ in range(count)]
    (joined,) = Masks({torch.nn.Identity(): parts}).by_layer()
    assert torch.equal(joined, torch.cat(parts, 2))


def test_annealing_ends_at_the_paper_s_share() -> None:
    calibration = twin_of("marian", fusion="anneal").calibration
    for share, gamma in ((0.0, 1.0), (0.5, math.exp(-0.75)), (1.0, math.exp(-1.5))):
        calibration.set_progress(share)
        assert float(calibration.gamma) == pytest.approx(gamma)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fusion": "mean"}, "gate"),
        ({"alpha": -1.0}, "alpha is -1.0"),
        ({"renormalise": "sum"}, "renormalize"),
        ({"layers": "first"}, "'first'"),
        ({"ratio": math.inf}, "ratio of a calibration is inf"),
    ],
)
def test_wrong_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(sightline.InputError, match=message):
        sightline.calibrate(zoo.model("marian"), **settings)


def test_models_without_cross_attention_and_calibrated_ones_are_refused() -> None:
    with pytest.raises(sightline.InputError, match="cross-attention"):
        sightline.calibrate(zoo.model("gpt2"))
    with pytest.raises(sightline.InputError, match="calibrated already"):
        sightline.calibrate(twin_of("marian"))


def test_frozen_attention_has_no_gate() -> None:
    layer = twin_of("lstm").calibration
    call = Call(layer, torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 1), None)
    ones = torch.ones(1, 1, 1, 2)
    with pytest.raises(sightline.InputError, match="no queries"):
        layer.fuse(0, ones, ones, call)


def test_at_the_start_nothing_is_added_to_queries_and_keys() -> None:
    """Weights are drawn as Glorot and Bengio's; biases would favour some positions before anything is learnt."""
    for layer in sightline.calibrate(zoo.model("marian")).calibration.layers:
        for projection in (layer.query, layer.key):
            assert not projection.bias.any()
            most = math.sqrt(6 / sum(projection.weight.shape))
            assert 0.8 * most < projection.weight.abs().max() <= most


def test_defaults_are_the_paper_s() -> None:
    chosen = CalibrationSettings()
    assert (chosen.fusion, chosen.ratio, chosen.renormalize, chosen.gate) == ("gate", 0.1, "none", "head")
