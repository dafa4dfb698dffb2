"""A sparse table over pairs of words that met in some sentence pair: counts, or translation probabilities.

Besides the table t that the statistical aligners learn, this is the count table C of Snell et al. 2021 (eq. 16-19):
what IBM Model 1 has after one step from uniform probabilities, without a NULL word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Float64, Int32, Int64

from sightline.alignment.bitext import Bitext, Words
from sightline.alignment.expectation import find_cooccurrences, find_occurrences, gather_counts, share_work
from sightline.compilation import njit

UNKNOWN = -1  # the number of a word that is not in a vocabulary


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Values of pairs (source word, target word), sparse, by source word: 8 or 12 bytes for each pair that met.

    Row x is `values[starts[x]:starts[x + 1]]`, of the target words `targets[starts[x]:starts[x + 1]]` in order.
    """

    source_vocabulary: tuple[str, ...]
    target_vocabulary: tuple[str, ...]
    starts: Int64[np.ndarray, " word_1"]
    targets: Int32[np.ndarray, " entry"]
    values: Float[np.ndarray, " entry"]

    @cached_property
    def source_numbers(self) -> Mapping[str, int]:
        """Number the source words."""
        return {word: number for number, word in enumerate(self.source_vocabulary)}

    @cached_property
    def target_numbers(self) -> Mapping[str, int]:
        """Number the target words."""
        return {word: number for number, word in enumerate(self.target_vocabulary)}

    def lookup(self, source: Words, target: Words) -> Float64[np.ndarray, "target source"]:
        """Return the value of each target word under each source word of a pair; words that never met have 0."""
        table = np.zeros((len(target), len(source)))
        for i, x in enumerate(number_words(source, self.source_numbers)):
            for j, y in enumerate(number_words(target, self.target_numbers)):
                table[j, i] = find_value(self.starts, self.targets, self.values, x, y)
        return table

    def normalized(self) -> Lexicon:
        """Make every row sum to 1: Trans(o | i) = C_io / sum_o' C_io' (Snell et al. eq. 17)."""
        totals = np.bincount(self._rows, self.values, len(self.source_vocabulary))
        return replace(self, values=self.values / totals[self._rows])

    def pruned(self, at_most: float) -> Lexicon:
        """Leave out the entries that are not above a value."""
        kept = self.values > at_most
        kept_before = np.concatenate([[0], np.cumsum(kept)])
        return replace(self, starts=kept_before[self.starts], targets=self.targets[kept], values=self.values[kept])

    def dense(self) -> Float64[np.ndarray, "source target"]:
        """Return the whole table; for small vocabularies."""
        table = np.zeros((len(self.source_vocabulary), len(self.target_vocabulary)))
        table[self._rows, self.targets] = self.values
        return table

    @property
    def _rows(self) -> Int64[np.ndarray, " entry"]:
        """Return the source word of each entry."""
        return np.repeat(np.arange(len(self.source_vocabulary)), np.diff(self.starts))


def count_table(bitext: Bitext) -> Lexicon:
    """Count how often words meet, each pair of sentences weighing 1 / (source length) (Snell et al. eq. 16).

    C_io = sum over pairs m, positions l and t of  1[x_l = i] 1[y_t = o] / L_m
    """
    occurrences = find_occurrences(bitext)
    shares = share_work(bitext, occurrences)
    starts, targets = find_cooccurrences(bitext, occurrences, shares)
    weights = np.repeat(1.0 / bitext.source.lengths, bitext.target.lengths)
    counts = np.empty(len(targets))
    vocabulary = len(bitext.target.vocabulary)
    gather_counts(bitext.target.ids, occurrences, shares, starts, targets, vocabulary, weights, counts)
    return Lexicon(bitext.source.vocabulary, bitext.target.vocabulary, starts, targets, counts)


def number_words(words: Words, numbers: Mapping[str, int]) -> Int32[np.ndarray, " word"]:
    """Look up words; one that is not there is UNKNOWN."""
    return np.fromiter(map(numbers.get, words, repeat(UNKNOWN)), np.int32, len(words))


@njit(cache=True)
@no_type_check
def find_value(starts, targets, values, x, y):
    """Find the entry (x, y) by bisection of row x; 0 where it is not, or where a word is UNKNOWN."""
    if x < 0 or y < 0:
        return 0.0
    low, size = starts[x], starts[x + 1] - starts[x]
    if size == 0:
        return 0.0
    while size > 1:  # without a branch, which the processor would guess wrong half of the time
        half = size // 2
        low += half * (targets[low + half - 1] < y)
        size -= half
    return float(values[low]) if targets[low] == y else 0.0
