"""The alignments of many sentence pairs as columns: how links travel in numbers too large for an object each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np
from jaxtyping import Float64, Int32, Int64

from sightline.alignment.links import Alignment

NOT_KNOWN = -1  # the length of a sentence of which only links are known


@dataclass(frozen=True, eq=False)
class Alignments(Sequence[Alignment]):
    """The links of many pairs; those of pair p are rows `starts[p]:starts[p + 1]`, by source word, then target word.

    Links that are merely possible are not kept. An `Alignment` is made when someone asks for one.

    >>> columns = Alignments.of([Alignment([(0, 1), (0, 0)]), Alignment(), Alignment({(2, 1): 0.5})])
    >>> columns.source.tolist(), columns.starts.tolist(), columns[2]
    ([0, 0, 2], [0, 2, 2, 3], Alignment(2-1:0.50))
    """

    starts: Int64[np.ndarray, " pair_1"]
    source: Int32[np.ndarray, " link"]
    target: Int32[np.ndarray, " link"]
    confidence: Float64[np.ndarray, " link"]
    source_lengths: Int64[np.ndarray, " pair"]
    target_lengths: Int64[np.ndarray, " pair"]

    @staticmethod
    def of(alignments: Sequence[Alignment]) -> Alignments:
        """Put alignments into columns."""
        starts = np.zeros(len(alignments) + 1, np.int64)
        np.cumsum([len(alignment) for alignment in alignments], out=starts[1:])
        numbers = chain.from_iterable(chain.from_iterable(alignments))
        links = np.fromiter(numbers, np.int32, 2 * starts[-1]).reshape(-1, 2)
        values = chain.from_iterable(alignment.confidences.values() for alignment in alignments)
        return Alignments(
            starts,
            links[:, 0].copy(),  # contiguous, as compiled code takes them
            links[:, 1].copy(),
            np.fromiter(values, np.float64, starts[-1]),
            _lengths(alignment.source_length for alignment in alignments),
            _lengths(alignment.target_length for alignment in alignments),
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, number: int) -> Alignment: ...
    @overload
    def __getitem__(self, number: slice) -> list[Alignment]: ...
    def __getitem__(self, number: int | slice) -> Alignment | list[Alignment]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        pair = range(len(self))[number]
        rows = slice(self.starts[pair], self.starts[pair + 1])
        links = zip(self.source[rows].tolist(), self.target[rows].tolist(), strict=True)
        return Alignment(
            dict(zip(links, self.confidence[rows].tolist(), strict=True)),
            (),
            _length(self.source_lengths[pair]),
            _length(self.target_lengths[pair]),
        )

    def flipped(self) -> Alignments:
        """Exchange source and target."""
        order = np.lexsort((self.source, self.target, np.repeat(np.arange(len(self)), np.diff(self.starts))))
        return Alignments(
            self.starts,
            self.target[order],
            self.source[order],
            self.confidence[order],
            self.target_lengths,
            self.source_lengths,
        )


def each_alignment(chunks: Iterable[Alignments]) -> Iterator[Alignment]:
    """Make an `Alignment` of each pair, one after the other, as they are asked for."""
    return chain.from_iterable(chunks)


def _lengths(values: Iterable[int | None]) -> Int64[np.ndarray, " pair"]:
    return np.array([NOT_KNOWN if value is None else value for value in values], np.int64)


def _length(value: np.int64) -> int | None:
    return None if value == NOT_KNOWN else int(value)
