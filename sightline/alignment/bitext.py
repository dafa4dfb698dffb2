"""A parallel corpus as flat arrays of word numbers: what the statistical aligners train on."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Int64

from sightline.errors import InputError

Words = Sequence[str]


@dataclass(frozen=True)
class Side:
    """The sentences of one language: words `ids[starts[s]:starts[s + 1]]` make up sentence s."""

    vocabulary: tuple[str, ...]
    ids: Int32[np.ndarray, " token"]
    starts: Int64[np.ndarray, " sentence_1"]

    @property
    def lengths(self) -> Int64[np.ndarray, " sentence"]:
        """Count the words of each sentence."""
        return np.diff(self.starts)

    def part(self, begin: int, end: int) -> Side:
        """Return some of the sentences."""
        starts = self.starts[begin : end + 1]
        return Side(self.vocabulary, self.ids[starts[0] : starts[-1]], starts - starts[0])

    def renumbered(self, vocabulary: tuple[str, ...], numbers: Int32[np.ndarray, " word"]) -> Side:
        """Number the words as in another vocabulary; `numbers` has the new number of each word of this one."""
        return Side(vocabulary, numbers[self.ids], self.starts)


class LeftOut(NamedTuple):
    """A pair that has no words on one side or on both: its place among all pairs, and how many words there are."""

    number: int
    source_length: int
    target_length: int


@dataclass(frozen=True)
class Bitext:
    """A parallel corpus; it takes 4 bytes a word, 16 a pair, and the two vocabularies."""

    source: Side
    target: Side
    left_out: tuple[LeftOut, ...] = ()

    def __len__(self) -> int:
        return len(self.source.starts) - 1

    def flipped(self) -> Bitext:
        """Exchange source and target; nothing is copied."""
        return Bitext(self.target, self.source, tuple(LeftOut(pair, m, n) for pair, n, m in self.left_out))


def build_bitext(pairs: Iterable[tuple[Words, Words]]) -> Bitext:
    """Number the words of sentence pairs, in order of appearance; a pair with an empty side is left out.

    Such a pair says nothing about which word goes with which.
    """
    source, target = _SideBuilder(), _SideBuilder()
    left_out = []
    for number, (source_words, target_words) in enumerate(pairs):
        if isinstance(source_words, str) or isinstance(target_words, str):
            raise InputError("Statistical aligners train on sentences that are split into words: lists of str.")
        if source_words and target_words:
            source.add(source_words)
            target.add(target_words)
        else:
            left_out.append(LeftOut(number, len(source_words), len(target_words)))
    if len(source.starts) == 1:
        raise InputError("There is no sentence pair with words on both sides to train on.")
    return Bitext(source.build(), target.build(), tuple(left_out))


class _SideBuilder:
    def __init__(self) -> None:
        self.numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self.ids = array("i")
        self.starts = array("q", [0])

    def add(self, words: Words) -> None:
        self.ids.extend(map(self.numbers.__getitem__, words))
        self.starts.append(len(self.ids))

    def build(self) -> Side:
        ids = np.frombuffer(self.ids, dtype=np.int32)
        return Side(tuple(self.numbers), ids, np.frombuffer(self.starts, dtype=np.int64))
