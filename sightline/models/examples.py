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
    what a decoder reads, `segments` the number of each id's segment where a text has two. Label i is predicted at
    position `label_rows[i]`. `positions` names the labels to explain, by default all: they are the `outputs`, the rows
    of an attribution.
    """

    ids: tuple[int, ...]
    source: Tokens
    label_tokens: Tokens = NO_TOKENS
    prefix: Tokens = NO_TOKENS
    labels: tuple[int, ...] = ()
    label_rows: tuple[int, ...] = ()
    decoder_ids: tuple[int, ...] = ()
    positions: tuple[int, ...] | None = None
    segments: tuple[int, ...] = ()

    def __len__(self) -> int:
        return max(len(self.ids), len(self.decoder_ids))

    def keeping(self, places: Sequence[int]) -> Example:
        """Keep only some of the ids that the model reads, each with its segment; tokens and labels stay."""
        segments = tuple(self.segments[place] for place in places) if self.segments else ()
        return replace(self, ids=tuple(self.ids[place] for place in places), segments=segments)

    def at(self, positions: Sequence[int]) -> Example:
        """Explain only some labels, by their number among the target's tokens."""
        count = len(self.labels)
        for position in positions:
            if not -count <= position < count:
                raise InputError(
                    f"There is no output {position}: the target has {count} tokens, numbered 0 to {count - 1}."
                )
        return replace(self, positions=tuple(position % count for position in positions))

    @property
    def chosen(self) -> Sequence[int]:
        """List the labels to explain."""
        return range(len(self.labels)) if self.positions is None else self.positions

    @property
    def target(self) -> Tokens:
        return self.label_tokens.take(self.chosen)

    @property
    def outputs(self) -> tuple[int, ...]:
        return tuple(self.labels[i] for i in self.chosen)

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(self.label_rows[i] for i in self.chosen)


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
    segments: Int[Tensor, "batch source"] | None = None

    @property
    def device(self) -> torch.device:
        return self.ids.device

    def __len__(self) -> int:
        return len(self.examples)


def build_batch(examples: Sequence[Example], pad_id: int, device: torch.device) -> Batch:
    """Pad examples into one batch."""
    decoder_ids = [example.decoder_ids for example in examples]
    segments = [example.segments or (0,) * len(example.ids) for example in examples]
    return Batch(
        tuple(examples),
        ids=_pad([example.ids for example in examples], pad_id, device),
        mask=_pad([[1] * len(example.ids) for example in examples], 0, device).bool(),
        rows=_pad([example.rows for example in examples], 0, device),
        outputs=_pad([example.outputs for example in examples], 0, device),
        row_mask=_pad([[1] * len(example.rows) for example in examples], 0, device).bool(),
        decoder_ids=_pad(decoder_ids, pad_id, device) if any(decoder_ids) else None,
        segments=_pad(segments, 0, device) if any(example.segments for example in examples) else None,
    )


def _pad(rows: Sequence[Sequence[int]], value: int, device: torch.device) -> Int[Tensor, "batch length"]:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], dtype=torch.long, device=device)


def repeated(batch: Batch, times: int) -> Batch:
    """Repeat the rows of a batch several times."""
    return batch if times == 1 else taken(batch, list(range(len(batch))) * times)


def taken(batch: Batch, rows: Sequence[int]) -> Batch:
    """Take some rows of a batch, perhaps more than once."""
    index = torch.tensor(rows, device=batch.device)
    tensors = {
        name: getattr(batch, name)[index]
        for name in ("ids", "mask", "rows", "outputs", "row_mask", "decoder_ids", "segments")
        if getattr(batch, name) is not None
    }
    return Batch(tuple(batch.examples[row] for row in rows), **tensors)
