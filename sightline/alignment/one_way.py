"""What the statistical aligners of one direction have in common: a lexicon, posteriors, and the links with the best."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import ClassVar, NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from numba import prange

from sightline.alignment.bitext import Bitext, Side, Words
from sightline.alignment.columns import Alignments, each_alignment
from sightline.alignment.lexicon import Lexicon, number_words
from sightline.alignment.links import Alignment
from sightline.compilation import begin_parallel_loops, njit

UNSEEN = 1e-9  # the translation probability of words that never met; what is less likely is not stored
PAIRS_AT_ONCE = 2048
CELLS_AT_ONCE = 4_000_000


class Posteriors(NamedTuple):
    """Those of many pairs, one after the other: cells `starts[p]:starts[p + 1]` are the matrix of pair p.

    Row j of a matrix holds p(target word j comes from source word i), and in its last column p(it comes from NULL).
    """

    cells: Float64[np.ndarray, " cell"]
    starts: Int64[np.ndarray, " pair_1"]


@dataclass(frozen=True, eq=False)
class StatisticalAligner(ABC):
    """A trained model of one direction: it explains each target word by a source word, or by NULL."""

    lexicon: Lexicon
    null: Float32[np.ndarray, " word"]  # t(y | NULL)
    log_likelihoods: tuple[float, ...]  # per target word, under the parameters before each round

    joined_null: ClassVar[float | None] = None
    """If links are read off posteriors that are joined with the other direction's: what NULL counts as there."""

    @abstractmethod
    def _fill(self, text: Bitext, posteriors: Posteriors) -> None:
        """Fill in the posteriors of a text whose words are numbered as in the lexicon, or UNKNOWN."""

    def find_posteriors(self, text: Bitext) -> Posteriors:
        """Return the posteriors of a text whose words are numbered as in the lexicon, or UNKNOWN."""
        begin_parallel_loops("A statistical aligner")
        starts = np.zeros(len(text) + 1, np.int64)
        np.cumsum((text.source.lengths + 1) * text.target.lengths, out=starts[1:])
        posteriors = Posteriors(np.empty(starts[-1]), starts)
        self._fill(text, posteriors)
        return posteriors

    def posteriors(self, pairs: Iterable[tuple[Words, Words]]) -> Iterator[Float64[np.ndarray, "target source_1"]]:
        """Yield, for each pair, p(target word j comes from source word i); the last column is NULL."""
        for chunk in chunks(pairs):
            cells, starts = self.find_posteriors(self.number(chunk))
            for (begin, end), (source, target) in zip(pairwise(starts), chunk, strict=True):
                yield cells[begin:end].reshape(len(target), len(source) + 1)

    def align(self, pairs: Iterable[tuple[Words, Words]]) -> Iterator[Alignment]:
        """Link each target word to the source word that most likely gave rise to it, unless NULL did.

        Any number of pairs, in order, as they come.
        """
        texts = map(self.number, chunks(pairs))
        return each_alignment(link_best(text, self.find_posteriors(text)) for text in texts)

    def number(self, pairs: list[tuple[Words, Words]]) -> Bitext:
        """Number the words of pairs as in the lexicon; empty sides stay in their places."""
        lexicon = self.lexicon
        return Bitext(
            _number_side([source for source, _ in pairs], lexicon.source_vocabulary, lexicon.source_numbers),
            _number_side([target for _, target in pairs], lexicon.target_vocabulary, lexicon.target_numbers),
        )


def _number_side(sentences: list[Words], vocabulary: tuple[str, ...], numbers: Mapping[str, int]) -> Side:
    ids = number_words(list(chain.from_iterable(sentences)), numbers)
    return Side(vocabulary, ids, np.cumsum([0, *map(len, sentences)], dtype=np.int64))


def chunks(pairs: Iterable[tuple[Words, Words]]) -> Iterator[list[tuple[Words, Words]]]:
    """Cut pairs into lists that are few enough to align at once."""
    chunk: list[tuple[Words, Words]] = []
    cells = 0
    for pair in pairs:
        chunk.append(pair)
        cells += len(pair[0]) * len(pair[1])
        if len(chunk) == PAIRS_AT_ONCE or cells >= CELLS_AT_ONCE:
            yield chunk
            chunk, cells = [], 0
    if chunk:
        yield chunk


def link_best(text: Bitext, posteriors: Posteriors) -> Alignments:
    """Link each target word to the source word with the highest posterior, unless that of NULL is higher."""
    starts, source, target, confidence = _link_best(text.source.starts, text.target.starts, *posteriors)
    return Alignments(starts, source, target, confidence, text.source.lengths, text.target.lengths)


@njit(parallel=True, cache=True)
@no_type_check
def _link_best(
    source_starts: Int64[np.ndarray, " pair_1"],
    target_starts: Int64[np.ndarray, " pair_1"],
    cells: Float64[np.ndarray, " cell"],
    cell_starts: Int64[np.ndarray, " pair_1"],
) -> tuple[
    Int64[np.ndarray, " pair_1"],
    Int32[np.ndarray, " link"],
    Int32[np.ndarray, " link"],
    Float64[np.ndarray, " link"],
]:
    pairs = len(source_starts) - 1
    best, value = np.empty(target_starts[-1], np.int32), np.empty(target_starts[-1])
    starts = np.zeros(pairs + 1, np.int64)
    for pair in prange(pairs):
        n = source_starts[pair + 1] - source_starts[pair]
        cell, links = cell_starts[pair], 0
        for token in range(target_starts[pair], target_starts[pair + 1]):
            posterior = cells[cell : cell + n + 1]
            best[token] = posterior.argmax()
            value[token] = min(posterior[best[token]], 1.0)
            links += best[token] < n
            cell += n + 1
        starts[pair + 1] = links
    starts = np.cumsum(starts)
    source, target = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
    confidence = np.empty(starts[-1])
    for pair in prange(pairs):
        n = source_starts[pair + 1] - source_starts[pair]
        first = target_starts[pair]
        free = np.zeros(n + 2, np.int64)  # where the next link of each source word goes
        for token in range(first, target_starts[pair + 1]):
            free[best[token] + 1] += 1
        free = np.cumsum(free) + starts[pair]
        for token in range(first, target_starts[pair + 1]):
            if best[token] < n:
                link = free[best[token]]
                free[best[token]] += 1
                source[link], target[link], confidence[link] = best[token], token - first, value[token]
    return starts, source, target, confidence


def join_posteriors(text: Bitext, forward: Posteriors, backward: Posteriors, null: float = 0.0) -> Posteriors:
    """Replace p(j from i) and p(i from j) in both directions by the root of their product, and those of NULL by `null`.

    Returns those of the forward direction.
    """
    _join_posteriors(text.source.starts, text.target.starts, *forward, *backward, null)
    return forward


@njit(parallel=True, cache=True)
@no_type_check
def _join_posteriors(source_starts, target_starts, ahead, ahead_starts, back, back_starts, null):
    for pair in prange(len(source_starts) - 1):
        n = source_starts[pair + 1] - source_starts[pair]
        m = target_starts[pair + 1] - target_starts[pair]
        f = ahead[ahead_starts[pair] : ahead_starts[pair + 1]].reshape(m, n + 1)
        b = back[back_starts[pair] : back_starts[pair + 1]].reshape(n, m + 1)
        for j in range(m):
            for i in range(n):
                f[j, i] = b[i, j] = min(math.sqrt(f[j, i] * b[i, j]), 1.0)
        f[:, n] = null
        b[:, m] = null


def rate_links(alignments: Alignments, posteriors: Posteriors) -> Alignments:
    """Take the confidence of each link from posteriors."""
    rates = np.empty(len(alignments.source))
    columns = alignments.starts, alignments.source, alignments.target, alignments.source_lengths
    _rate_links(*columns, *posteriors, rates)
    return replace(alignments, confidence=rates)


@njit(cache=True)
@no_type_check
def _rate_links(starts, source, target, source_lengths, cells, cell_starts, rates):
    for pair in range(len(starts) - 1):
        for link in range(starts[pair], starts[pair + 1]):
            rates[link] = cells[cell_starts[pair] + target[link] * (source_lengths[pair] + 1) + source[link]]
