"""The convolutional model against its equations, one sentence and one position at a time."""

from __future__ import annotations

from math import sqrt

import pytest
import torch
import zoo
from torch import Tensor

from sightline.attend.watch import watch
from sightline.models.conv import ConvConfig, ConvForConditionalGeneration, ConvSettings, build_conv

ROOT_HALF = sqrt(0.5)


def gated(layer, window: list[Tensor]) -> Tensor:
    """Apply one gated convolution to the positions that it sees."""
    kernel = layer.weight.chunk(len(window), 1)
    convolved = layer.bias + sum(weight @ state for weight, state in zip(kernel, window, strict=True))
    values, gates = convolved.chunk(2)
    return values * gates.sigmoid()


def literal(model: ConvForConditionalGeneration, ids: list[int], decoder_ids: list[int]) -> tuple[Tensor, list[Tensor]]:
    """Return the logits (target, vocabulary) and of each layer the weights (target, source) of one pair."""
    encoder, decoder, kernel = model.model.encoder, model.model.decoder, model.config.kernel
    zero = torch.zeros(model.config.width)
    before = (kernel - 1) // 2

    sources = [encoder.embed_tokens.weight[t] + encoder.embed_positions.weight[i] for i, t in enumerate(ids)]
    states = [encoder.enter(source) for source in sources]
    for layer in encoder.layers:
        padded = [zero] * before + states + [zero] * (kernel - 1 - before)
        states = [(gated(layer, padded[i : i + kernel]) + state) * ROOT_HALF for i, state in enumerate(states)]
    keys = [encoder.leave(state) for state in states]
    values = [(key + source) * ROOT_HALF for key, source in zip(keys, sources, strict=True)]

    targets = [decoder.embed_tokens.weight[t] + decoder.embed_positions.weight[i] for i, t in enumerate(decoder_ids)]
    states = [decoder.enter(target) for target in targets]
    weights = []
    for layer in decoder.layers:
        padded = [zero] * (kernel - 1) + states
        given, rows = [], []
        for i, (state, target) in enumerate(zip(states, targets, strict=True)):
            hidden = gated(layer.convolution, padded[i : i + kernel])
            query = (layer.attention.query(hidden) + target) * ROOT_HALF
            alpha = torch.stack([query @ key for key in keys]).softmax(0)
            context = sum(weight * value for weight, value in zip(alpha, values, strict=True)) * sqrt(len(ids))
            attended = (layer.attention.out_proj(context) + hidden) * ROOT_HALF
            given.append((attended + state) * ROOT_HALF)
            rows.append(alpha)
        states = given
        weights.append(torch.stack(rows))
    return torch.stack([model.lm_head(decoder.leave(state)) for state in states]), weights


@pytest.mark.parametrize("kernel", [1, 3, 4])
@torch.no_grad()
def test_logits_and_weights_by_the_equations(kernel: int) -> None:
    torch.manual_seed(0)
    config = ConvConfig(vocab_size=30, width=8, kernel=kernel, encoder_layers=3, decoder_layers=2)
    model = ConvForConditionalGeneration(config).eval()
    for parameter in model.parameters():  # biases begin at zero, and embeddings so small that attention is uniform
        parameter.normal_(std=0.5)
    ids = torch.tensor([[4, 9, 4, 17, 2, 1], [8, 3, 1, 0, 0, 0]])
    mask = (ids != 0).long()
    decoder_ids = torch.tensor([[0, 5, 6, 7, 7], [0, 9, 9, 20, 3]])
    with watch(model) as seen:
        logits = model(ids, mask, decoder_ids).logits
    for row, length in enumerate(mask.sum(1).tolist()):
        expected, weights = literal(model, ids[row, :length].tolist(), decoder_ids[row].tolist())
        torch.testing.assert_close(logits[row], expected, atol=1e-4, rtol=1e-4)
        for layer, by_layer in zip(model.model.decoder.layers, weights, strict=True):
            recorded = seen[layer.attention].weights[row, 0]
            torch.testing.assert_close(recorded[:, :length], by_layer, atol=1e-5, rtol=1e-4)
            assert (recorded[:, length:] == 0).all()


@torch.no_grad()
def test_the_variance_is_kept_from_layer_to_layer() -> None:
    """Gehring et al. (2017), section 3.5: initial weights neither blow signals up nor let them vanish."""
    torch.manual_seed(0)
    model = ConvForConditionalGeneration(ConvConfig(vocab_size=500, encoder_layers=12, decoder_layers=12, dropout=0.0))
    model.eval()
    ids, decoder_ids = torch.randint(2, 500, (8, 20)), torch.randint(2, 500, (8, 20))
    encoded = model.get_encoder()(ids)
    decoded = model.get_decoder()(decoder_ids, encoded[0], encoded.embeddings)[0]
    embedded = encoded.embeddings.std()
    assert 0.2 < encoded[0].std() / embedded < 5
    assert 0.2 < decoded.std() / embedded < 5


def test_built_for_a_tokenizer() -> None:
    tokenizer = zoo.marian_tokenizer()
    model = build_conv(ConvSettings(width=8, max_positions=50), tokenizer)
    assert model.config.max_position_embeddings == 50
    generated = model.generate(torch.tensor([[5, 6, 0]]))
    assert generated.shape[1] <= 50
    assert tokenizer.pad_token_id not in generated[0, 1:].tolist()
