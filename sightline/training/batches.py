"""Encoded pairs, and the batches of an epoch: by tokens, in an order that only the seed and the epoch decide."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sightline.data.corpora import TextPair
from sightline.errors import InputError
from sightline.models.directions import language_token

IGNORED = -100
"""The label of a position that is padding."""
ENCODE_AT_ONCE = 10_000


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths, end to end in one array; row i is `values[starts[i]:starts[i + 1]]`."""

    values: Int[np.ndarray, " value"]
    starts: Int[np.ndarray, " bound"]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
        values = np.fromiter((value for row in rows for value in row), dtype=np.int32, count=int(lengths.sum()))
        return cls(values, np.concatenate([np.zeros(1, np.int64), lengths.cumsum()]))

    @property
    def lengths(self) -> Int[np.ndarray, " row"]:
        return np.diff(self.starts)

    def padded(self, rows: Int[np.ndarray, " row"], padding: int) -> Int[np.ndarray, "row width"]:
        """Return some rows as one array, filled up on the right."""
        lengths = self.lengths[rows]
        positions = np.arange(lengths.max())
        inside = positions < lengths[:, None]
        places = np.where(inside, self.starts[rows][:, None] + positions, 0)
        return np.where(inside, self.values[places], padding).astype(np.int64)


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """Sentence pairs as ids, both sides with their end token."""

    source: Ragged
    target: Ragged
    pad_id: int
    start_id: int
    """What the decoder reads first."""

    def __len__(self) -> int:
        return len(self.source.starts) - 1

    def target_tokens(self, rows: Int[np.ndarray, " row"]) -> int:
        """Count the labels of some pairs."""
        return int(self.target.lengths[rows].sum())

    def tensors(self, rows: Int[np.ndarray, " row"], device: torch.device) -> dict[str, Tensor]:
        """Return some pairs as the model takes them; labels of padding are `IGNORED`."""
        source = self.source.padded(rows, self.pad_id)
        labels = self.target.padded(rows, IGNORED)
        decoder = np.concatenate([np.full((len(rows), 1), self.start_id), labels[:, :-1]], axis=1)
        arrays = {
            "input_ids": source,
            "attention_mask": (np.arange(source.shape[1]) < self.source.lengths[rows][:, None]).astype(np.int64),
            "decoder_input_ids": np.where(decoder == IGNORED, self.pad_id, decoder),
            "labels": labels,
        }
        return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}

    def fingerprint(self) -> str:
        """Name the pairs, so that a changed text is noticed when a run goes on."""
        digest = hashlib.blake2b(digest_size=16)
        for ragged in (self.source, self.target):
            digest.update(np.ascontiguousarray(ragged.values).data)
            digest.update(np.ascontiguousarray(ragged.starts).data)
        return digest.hexdigest()


def encode_pairs(
    pairs: Sequence[TextPair], tokenizer: Any, max_length: int, languages: tuple[str, str] | None = None
) -> tuple[EncodedPairs, list[TextPair]]:
    """Encode the pairs that have at most `max_length` pieces on a side, and give them as text too.

    With `languages` every pair is there in both directions, and its source begins with the token of its target.
    """
    sides = [encode_texts([pair[side] for pair in pairs], tokenizer, as_targets=bool(side)) for side in (0, 1)]
    room = max_length if languages is None else max_length - 1
    fits = [max(len(ids) for ids in both) <= room for both in zip(*sides, strict=True)]
    if not any(fits):
        raise InputError(f"Every pair has more than {room} pieces on a side: raise model.max_positions.")
    source, target = ([ids for ids, fit in zip(side, fits, strict=True) if fit] for side in sides)
    if languages is not None:
        codes = [tokenizer.convert_tokens_to_ids(language_token(language)) for language in languages]
        forth, back = ([[code, *ids] for ids in side] for code, side in ((codes[1], source), (codes[0], target)))
        source, target = forth + back, target + source
    encoded = EncodedPairs(Ragged.of(source), Ragged.of(target), tokenizer.pad_token_id, tokenizer.pad_token_id)
    return encoded, [pair for pair, fit in zip(pairs, fits, strict=True) if fit]


def encode_texts(sentences: list[str], tokenizer: Any, *, as_targets: bool = False) -> list[list[int]]:
    """Return the ids of texts, with their end token."""
    ids: list[list[int]] = []
    for start in range(0, len(sentences), ENCODE_AT_ONCE):
        some = sentences[start : start + ENCODE_AT_ONCE]
        # Lengths are checked afterwards: the tokenizer's own warning would only repeat that.
        ids += tokenizer(**{"text_target" if as_targets else "text": some}, verbose=False)["input_ids"]
    return ids


def epoch_batches(
    pairs: EncodedPairs, batch_tokens: int, seed: int, epoch: int, batch_texts: int | None = None
) -> list[Int[np.ndarray, " row"]]:
    """Cut one epoch into batches of pairs of like length, shuffled.

    A batch has at most `batch_tokens` pieces on its longer side, padding included, and at most `batch_texts` pairs; a
    longer pair stands alone.
    """
    rng = np.random.default_rng([seed, epoch])
    shuffled = rng.permutation(len(pairs))
    source, target = pairs.source.lengths, pairs.target.lengths
    longer = np.maximum(source, target)
    # By the longer side, and then by the difference, back and forth: neighbours are alike on both sides.
    difference = np.where(longer % 2 == 0, source - target, target - source)
    order = shuffled[np.lexsort((difference[shuffled], longer[shuffled]))]  # stable, so that ties stay shuffled
    widths = longer[order]
    most = len(order) if batch_texts is None else batch_texts
    cuts, start, widest = [], 0, 0
    for position, width in enumerate(widths.tolist()):
        widest = max(widest, width)
        rows = position + 1 - start
        if position > start and (rows * widest > batch_tokens or rows > most):
            cuts.append(position)
            start, widest = position, width
    batches = np.split(order, cuts)
    return [batches[number] for number in rng.permutation(len(batches))]


def batches_from(
    pairs: EncodedPairs, batch_tokens: int, seed: int, epoch: int, done: int, batch_texts: int | None = None
) -> Iterator[tuple[int, int, Int[np.ndarray, " row"]]]:
    """Yield (epoch, batches done in it, rows) without end, from where `done` batches of an epoch were seen."""
    while True:
        batches = epoch_batches(pairs, batch_tokens, seed, epoch, batch_texts)
        for number in range(done, len(batches)):
            yield epoch, number + 1, batches[number]
        epoch, done = epoch + 1, 0
