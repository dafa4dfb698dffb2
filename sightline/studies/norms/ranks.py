"""Spearman's rank correlation of more pairs than memory holds, in two passes over them.

The pairs of an attention weight and a norm are more than a billion. Their ranks need no sorting: a first pass counts
how often each value occurs, which tells the mean rank of equal values; a second pass correlates those ranks.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64

DROPPED_BITS = 11
"""Of a float32's 23 bits after the first: values that agree to 1 part in 4,096 count as equal."""
BINS = 2**31 >> DROPPED_BITS
Values = Float32[np.ndarray, " pair"]


class RankCorrelation:
    """Spearman's rho of pairs of positive numbers that come in batches: `count` all, then `correlate` the same ones."""

    def __init__(self) -> None:
        self.pairs = 0
        self._counts = (np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64))
        self._ranks: list[Float64[np.ndarray, " bin"]] = []
        self._product = 0.0

    def count(self, first: Values, second: Values) -> None:
        """Count the values of a batch of pairs."""
        assert not self._ranks, "all pairs are counted before any are correlated"
        for counts, values in zip(self._counts, (first, second), strict=True):
            counts += np.bincount(_bins(values), minlength=BINS)
        self.pairs += len(first)

    def correlate(self, first: Values, second: Values) -> None:
        """Add up the products of the ranks of a batch of pairs."""
        if not self._ranks:
            self._ranks = [_centred_ranks(counts) for counts in self._counts]
        one, other = (ranks[_bins(values)] for ranks, values in zip(self._ranks, (first, second), strict=True))
        self._product += float(one @ other)

    @property
    def rho(self) -> float:
        """Return the correlation; NaN where all values of a side are equal."""
        if not self._ranks:
            return float("nan")
        spreads = [float(counts @ ranks**2) for counts, ranks in zip(self._counts, self._ranks, strict=True)]
        spread = np.sqrt(spreads[0] * spreads[1])
        return float("nan") if spread == 0 else self._product / float(spread)


def _bins(values: Values) -> np.ndarray:
    """Number values in their order: the bits of positive floating-point numbers are ordered as the numbers are."""
    return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) >> DROPPED_BITS


def _centred_ranks(counts: np.ndarray) -> Float64[np.ndarray, " bin"]:
    """Return the mean rank of the values of each bin, as a share of all and with mean 0."""
    below = np.cumsum(counts) - counts
    return (below + counts / 2) / counts.sum() - 0.5
