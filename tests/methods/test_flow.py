"""Rollout, ALTI and value zeroing against their definitions written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import zoo
from methods.literal import close, example_of

import sightline
from sightline.errors import InputError
from sightline.methods.flow import _linear_norm


def attentions(model, example):
    model.module.set_attn_implementation("eager")
    with torch.no_grad():
        output = model.module(**model.inputs(model.batch([example])), output_attentions=True, output_hidden_states=True)
    model.module.set_attn_implementation("sdpa")
    return output


@pytest.mark.parametrize("name", ["gpt2", "bert-filler"])
def test_rollout_is_the_product(name: str) -> None:
    model, example = example_of(name)
    product = torch.eye(len(example.ids), dtype=torch.float64)
    for weights in attentions(model, example).attentions:
        product = (0.3 * torch.eye(len(example.ids), dtype=torch.float64) + 0.7 * weights[0].mean(0)) @ product
    target = zoo.targets(name)
    why = sightline.explain(model, zoo.texts(name)[0], target and target[0], method="rollout", residual=0.3)
    close(why.scores, product[list(example.rows)][:, : why.scores.shape[1]])


def test_rollout_through_encoder_and_decoder() -> None:
    model, example = example_of("marian")
    output = attentions(model, example)
    source, steps = len(example.ids), len(example.decoder_ids)
    encoded = torch.eye(source, dtype=torch.float64)
    for weights in output.encoder_attentions:
        encoded = 0.5 * encoded + 0.5 * weights[0].mean(0) @ encoded
    from_source, from_prefix = encoded.new_zeros(steps, source), torch.eye(steps, dtype=torch.float64)
    for own, cross in zip(output.decoder_attentions, output.cross_attentions, strict=True):
        own, cross = own[0].mean(0), cross[0].mean(0)
        from_source = 0.5 * from_source + 0.5 * own @ from_source
        from_prefix = 0.5 * from_prefix + 0.5 * own @ from_prefix
        from_source = 0.5 * from_source + 0.5 * cross @ encoded
        from_prefix = 0.5 * from_prefix
    why = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="rollout")
    close(why.scores, torch.cat([from_source, from_prefix], -1))


def alti_matrix(given: torch.Tensor, weights: torch.Tensor, value, output, residual, norm) -> torch.Tensor:
    """ALTI of one self-attention layer, pair by pair: which inputs come near the layer's sum."""
    heads, length = weights.shape[0], weights.shape[1]
    values = value(given).view(length, heads, -1)
    width = values.shape[-1]
    none = output(given.new_zeros(1, heads * width))[0]
    summands = given.new_zeros(length, length, given.shape[-1])
    for t in range(length):
        for j in range(length):
            mixed = (weights[:, t, j, None] * values[j]).reshape(1, -1)
            summands[t, j] = output(mixed)[0] - none
        summands[t, t] += residual[t]
    matrix = given.new_zeros(length, length)
    for t in range(length):
        total = summands[t].sum(0) + none
        pieces = summands[t]
        if norm is not None:
            scale = norm.weight / (total.var(unbiased=False) + norm.eps).sqrt()
            pieces = (pieces - pieces.mean(-1, keepdim=True)) * scale
            total = (total - total.mean()) * scale
        near = (total.abs().sum() - (total - pieces).abs().sum(-1)).clamp(min=0)
        matrix[t] = near / near.sum()
    return matrix


@torch.no_grad()
def test_alti_of_a_post_norm_encoder() -> None:
    model, example = example_of("bert-filler")
    output = attentions(model, example)
    product = torch.eye(len(example.ids), dtype=torch.float64)
    for number, layer in enumerate(model.module.bert.encoder.layer):
        given = output.hidden_states[number][0]
        matrix = alti_matrix(
            given,
            output.attentions[number][0],
            layer.attention.self.value,
            layer.attention.output.dense,
            given,
            layer.attention.output.LayerNorm,
        )
        product = matrix @ product
    why = sightline.explain(model, zoo.texts("bert-filler")[0], method="alti")
    close(why.scores, product[list(example.rows)])


@torch.no_grad()
def test_alti_of_a_pre_norm_decoder() -> None:
    model, example = example_of("gpt2")
    output = attentions(model, example)
    product = torch.eye(len(example.ids), dtype=torch.float64)
    for number, layer in enumerate(model.module.transformer.h):
        stream = output.hidden_states[number][0]

        def value(x: torch.Tensor, layer=layer) -> torch.Tensor:
            return layer.attn.c_attn(x).chunk(3, -1)[2]

        matrix = alti_matrix(layer.ln_1(stream), output.attentions[number][0], value, layer.attn.c_proj, stream, None)
        product = matrix @ product
    why = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="alti")
    close(why.scores, product[list(example.rows)][:, : why.scores.shape[1]])


@pytest.mark.parametrize("name", zoo.ZOO)
def test_flows_share_out_one(name: str) -> None:
    model = zoo.precise(name)
    for method in ("rollout", "alti"):
        if name in zoo.OURS:
            with pytest.raises(InputError, match="does not mix its positions by self-attention alone"):
                sightline.explain(model, zoo.texts(name), zoo.targets(name), method=method)
            continue
        if method == "alti" and name == "gemma2":  # it norms the attention's output before it is added
            with pytest.raises(InputError, match="which ALTI needs: use rollout"):
                sightline.explain(model, zoo.texts(name), zoo.targets(name), method=method)
            continue
        several = sightline.explain(model, zoo.texts(name), zoo.targets(name), method=method)
        for why in several:
            assert (why.scores >= 0).all()
            if name != "gpt_oss" or method == "alti":  # a sink takes weight and gives nothing
                np.testing.assert_allclose(why.scores.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("name", ["bert-filler", "marian"])
@torch.no_grad()
def test_value_zeroing_by_zeroing_the_projection(name: str) -> None:
    """Zero what the value projection gives, rather than what the attention takes."""
    model, example = example_of(name)
    batch = model.batch([example])
    if name == "marian":
        blocks = list(model.module.model.decoder.layers)
        projections = [block.encoder_attn.v_proj for block in blocks]
    else:
        blocks = list(model.module.bert.encoder.layer)
        projections = [block.attention.self.value for block in blocks]
    why = sightline.explain(model, zoo.texts(name)[0], zoo.targets(name) and zoo.TARGETS[0], method="value_zeroing")

    def states_of(number: int, column: int | None) -> torch.Tensor:
        seen = []

        def zero(_module, _args, output):
            output = output.clone()
            output[:, column] = 0
            return output

        hooks = [
            blocks[number].register_forward_hook(lambda _m, _a, o: seen.append(o[0] if isinstance(o, tuple) else o))
        ]
        if column is not None:
            hooks.append(projections[number].register_forward_hook(zero))
        model.module(**model.inputs(batch))
        for hook in hooks:
            hook.remove()
        return seen[0][0]

    for number in range(len(blocks)):
        clean = states_of(number, None)
        distances = [
            1 - torch.cosine_similarity(states_of(number, column), clean, dim=-1)[list(example.rows)]
            for column in range(len(example.ids))
        ]
        close(why.scores[number], torch.stack(distances, -1))


@pytest.mark.parametrize("norm", [torch.nn.LayerNorm(6), torch.nn.RMSNorm(6, eps=1e-5)])
def test_the_linear_part_of_a_norm_adds_up_to_the_norm(norm: torch.nn.Module) -> None:
    norm = norm.double().requires_grad_(False)
    for parameter in norm.parameters():
        parameter.normal_()
    pieces = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    total = pieces.sum(2)
    parts = _linear_norm(norm, total, more=1)(pieces)
    torch.testing.assert_close(parts.sum(2), norm(total) - getattr(norm, "bias", torch.zeros(6)))
    torch.testing.assert_close(_linear_norm(norm, total)(total), parts.sum(2))
    assert torch.equal(_linear_norm(None, total)(pieces), pieces)
