"""Running LSTMs: with gradients wherever they are wanted, and over padded texts as if padding were not there."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

Memory = tuple[Float[Tensor, "layer batch memory"], Float[Tensor, "layer batch memory"]]
"""The hidden states and the cells, those of a layer's directions one after the other."""

SHUT = 1e4
"""A gate's input that shuts it completely, or opens it, in every data type."""


def new_lstm(inputs: int, width: int, layers: int, dropout: float, bidirectional: bool = False) -> nn.LSTM:
    """Make an LSTM that reads (batch, position, width)."""
    between_layers = dropout if layers > 1 else 0.0  # torch warns of dropout that has no effect
    return nn.LSTM(inputs, width, layers, batch_first=True, dropout=between_layers, bidirectional=bidirectional)


def run_lstm(
    lstm: nn.LSTM, inputs: Float[Tensor, "batch position width"], memory: Memory | None = None
) -> tuple[Float[Tensor, "batch position state"], Memory]:
    """Run an LSTM over all positions."""
    with _differentiable(lstm):
        return lstm(inputs, memory)


def run_between_padding(
    lstm: nn.LSTM, inputs: Float[Tensor, "batch position width"], real: Int[Tensor, "batch position"]
) -> tuple[Float[Tensor, "batch position state"], Memory]:
    """Run an LSTM from no memory as if padding, on whichever side it is, were not there; its states are 0.

    A further input, which is 1 at padding, shuts the input gates and opens the forget gates, so that memory passes
    unchanged. Packed sequences would do the same, but on a CPU their gradients take time by the square of the length:
    10 times as long for 32 texts of 200 words.
    """
    padding = (1 - real)[..., None].to(inputs.dtype)
    first, last = real.argmax(1), real.shape[1] - 1 - real.flip(1).argmax(1)
    directions = {"": last, "_reverse": first} if lstm.bidirectional else {"": last}  # where each arrives
    hidden, cells = [], []
    for layer in range(lstm.num_layers):
        if layer:
            inputs = F.dropout(inputs, lstm.dropout, lstm.training)
        weights = [weight for suffix in directions for weight in _weights_with_padding(lstm, f"_l{layer}{suffix}")]
        inputs, (_, cell) = run_layer(lstm, weights, torch.cat([inputs, padding], -1))
        cells.append(cell)
        for states, end in zip(inputs.chunk(len(directions), -1), directions.values(), strict=True):
            hidden.append(states[torch.arange(len(states), device=states.device), end])
    return inputs * (1 - padding), (torch.stack(hidden), torch.cat(cells))


def run_layer(
    lstm: nn.LSTM,
    weights: list[Tensor],
    inputs: Float[Tensor, "batch position width"],
    memory: Memory | None = None,
) -> tuple[Float[Tensor, "batch position state"], Memory]:
    """Run one layer of an LSTM's form, in all its directions, with other weights in torch's order."""
    nothing = inputs.new_zeros(2 if lstm.bidirectional else 1, len(inputs), lstm.hidden_size)
    with _differentiable(lstm):
        states, hidden, cell = torch.lstm(
            inputs,
            memory or (nothing, nothing),
            weights,
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=lstm.training,
            bidirectional=lstm.bidirectional,
            batch_first=True,
        )
    return states, (hidden, cell)


def _weights_with_padding(lstm: nn.LSTM, suffix: str) -> list[Tensor]:
    """Return the weights of a layer and direction, with what padding does to its gates: input, forget, cell, output."""
    inputs, *others = (getattr(lstm, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    at_padding = inputs.new_tensor([-SHUT, SHUT, 0.0, 0.0]).repeat_interleave(lstm.hidden_size)
    return [torch.cat([inputs, at_padding[:, None]], 1), *others]


def _differentiable(lstm: nn.LSTM) -> AbstractContextManager[None]:
    """Leave cuDNN aside where gradients are wanted of an LSTM that is not being trained: it has none."""
    if lstm.training or not torch.is_grad_enabled():
        return nullcontext()
    return torch.backends.cudnn.flags(enabled=False)
