"""An alignment adapter: a small module that reads word alignments off the states of a frozen translation model.

A target piece is known to two steps of the decoder: the one that gives it and the next, which is given it. From the
states of both, in every layer, a query is made; from every layer's states of the encoder, a key. Their products are
read twice: over the source, which says what a target piece came from, and over the target, which says what became of a
source piece. Either may also choose NULL, for what has no counterpart.

Chen et al. 2020 (Shift-AET) train such a module on a frozen model's own links; Zenkel et al. 2020 let two directions
agree; Chen et al. 2021 (Mask-Align) have a NULL position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

UNREAL = -1e4
"""The score of a position that is no part of a word: its probability is 0 in every floating-point type."""


@dataclass(frozen=True)
class AdapterShape:
    """What an adapter reads, and the width of its queries and keys."""

    encoder: tuple[int, ...]
    """The widths of the encoder's states, layer by layer."""
    decoder: tuple[int, ...]
    """The widths of the decoder's."""
    width: int = 128


class Posteriors(NamedTuple):
    """What an adapter gives: probabilities over the positions of the other side and, last, NULL."""

    forward: Float[Tensor, "batch target source_or_null"]
    """Which source position each target position came from."""
    backward: Float[Tensor, "batch source target_or_null"]
    """Which target position each source position became."""


class AlignmentAdapter(nn.Module):
    """Queries from the decoder's states, keys from the encoder's, both of all layers."""

    def __init__(self, shape: AdapterShape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder_norms = nn.ModuleList([nn.LayerNorm(width) for width in shape.encoder])
        self.decoder_norms = nn.ModuleList([nn.LayerNorm(width) for width in shape.decoder])
        # Twice the width: the first half is compared over the source, the second over the target.
        self.key = nn.Linear(sum(shape.encoder), 2 * shape.width)
        self.query = nn.Linear(2 * sum(shape.decoder), 2 * shape.width)
        self.no_source = nn.Linear(shape.width, 1)
        self.no_target = nn.Linear(shape.width, 1)

    def forward(
        self,
        encoder: Sequence[Float[Tensor, "batch source _"]],
        decoder: Sequence[Float[Tensor, "batch step _"]],
        rows: Int[Tensor, "batch target"],
        source_words: Bool[Tensor, "batch source"],
        target_words: Bool[Tensor, "batch target"],
    ) -> Posteriors:
        """Align the positions that belong to words.

        `rows` has the decoder step that gives each target position. With q = W_Q [s_t; s_(t+1)] and k = W_K e_j:
        forward(t, j) = softmax over j and NULL of q_t . k_j / sqrt(d);  backward(j, t) the same over t, with halves of
        their own.
        """
        key = self.key(_normalized(encoder, self.encoder_norms))  # (batch, source, 2 width)
        steps = _normalized(decoder, self.decoder_norms)
        next_rows = (rows + 1).clamp(max=steps.shape[1] - 1)  # the last label is the end, and no word
        query = self.query(torch.cat([_take_steps(steps, rows), _take_steps(steps, next_rows)], -1))
        query_ahead, query_back = query.chunk(2, -1)
        key_ahead, key_back = key.chunk(2, -1)
        scale = 1 / math.sqrt(self.shape.width)
        ahead = (query_ahead @ key_ahead.transpose(1, 2) * scale).masked_fill(~source_words[:, None], UNREAL)
        back = (key_back @ query_back.transpose(1, 2) * scale).masked_fill(~target_words[:, None], UNREAL)
        return Posteriors(
            torch.cat([ahead, self.no_source(query_ahead)], -1).softmax(-1),
            torch.cat([back, self.no_target(key_back)], -1).softmax(-1),
        )


def _normalized(states: Sequence[Tensor], norms: nn.ModuleList) -> Tensor:
    precision = next(norms.parameters()).dtype
    return torch.cat([norm(layer.to(precision)) for norm, layer in zip(norms, states, strict=True)], -1)


def _take_steps(steps: Tensor, rows: Int[Tensor, "batch target"]) -> Tensor:
    return steps.gather(1, rows[..., None].expand(-1, -1, steps.shape[-1]))
