"""One input with its output, as ids and words; and several of them as the tensors of one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sightline.attribution import NO_TOKENS, Tokens
from sightline.errors import InputError


@dataclass(frozen=True)
class Example:
    """One input with its output.

    `ids` is what the model reads (the source; for a decoder-only model, the source and the continuation), `decoder_ids`
    what a decoder reads. Output number i, a row of an attribution, is `outputs[i]`, predicted at position `rows[i]`.
    """

    ids: tuple[int, ...]
    source: Tokens
    target: Tokens = NO_TOKENS
    prefix: Tokens = NO_TOKENS
    outputs: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    decoder_ids: tuple[int, ...] = ()

    def __len__(self) -> int:
        return max(len(self.ids), len(self.decoder_ids))

    def at(self, positions: Sequence[int]) -> Example:
        """Keep only some outputs, by their number among the target's tokens."""
        count = len(self.outputs)
        for position in positions:
            if not -count <= position < count:
                raise InputError(
                    f"There is no output {position}: the target has {count} tokens, numbered 0 to {count - 1}."
                )
        chosen = [position % count for position in positions]
        return replace(
            self,
            target=self.target.take(chosen),
            outputs=tuple(self.outputs[i] for i in chosen),
            rows=tuple(self.rows[i] for i in chosen),
        )


@dataclass(frozen=True)
class Batch:
    """Examples as tensors, padded on the right (which a causal model never sees)."""

    examples: tuple[Example, ...]
    ids: Int[Tensor, "batch source"]
    mask: Bool[Tensor, "batch source"]
    rows: Int[Tensor, "batch target"]
    outputs: Int[Tensor, "batch target"]
    row_mask: Bool[Tensor, "batch target"]
    decoder_ids: Int[Tensor, "batch prefix"] | None = None

    @property
    def device(self) -> torch.device:
        return self.ids.device

    def __len__(self) -> int:
        return len(self.examples)


def build_batch(examples: Sequence[Example], pad_id: int, device: torch.device) -> Batch:
    """Pad examples into one batch."""
    decoder_ids = [example.decoder_ids for example in examples]
    return Batch(
        tuple(examples),
        ids=_pad([example.ids for example in examples], pad_id, device),
        mask=_pad([[1] * len(example.ids) for example in examples], 0, device).bool(),
        rows=_pad([example.rows for example in examples], 0, device),
        outputs=_pad([example.outputs for example in examples], 0, device),
        row_mask=_pad([[1] * len(example.rows) for example in examples], 0, device).bool(),
        decoder_ids=_pad(decoder_ids, pad_id, device) if any(decoder_ids) else None,
    )


def _pad(rows: Sequence[Sequence[int]], value: int, device: torch.device) -> Int[Tensor, "batch length"]:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], dtype=torch.long, device=device)
