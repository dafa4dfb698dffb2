"""The prior of Dyer, Chahuneau and Smith 2013: words keep to the diagonal, and how strictly is learned.

d(i | j, n, m) is proportional to exp(-tension * |i/n - j/m|) (their eq. 1). It depends on the lengths n and m and the
position j alone, so all of a corpus's target words share a few thousand bins.
"""

from __future__ import annotations

import math
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float64, Int32, Int64

from sightline.alignment.bitext import Bitext
from sightline.compilation import njit

MAX_TENSION = 50.0
MAX_NEWTON_STEPS = 30
CLOSE_ENOUGH = 1e-6


class Bins(NamedTuple):
    """The distinct (n, m, j) of a corpus, and the bin of every target word."""

    source_length: Int64[np.ndarray, " bin"]
    target_length: Int64[np.ndarray, " bin"]
    position: Int64[np.ndarray, " bin"]
    of_token: Int32[np.ndarray, " token"]


def bin_positions(bitext: Bitext) -> Bins:
    """Sort the target words of a corpus into bins."""
    longest = bitext.target.lengths.max() + 1
    shapes, shape_of_pair = np.unique(bitext.source.lengths * longest + bitext.target.lengths, return_inverse=True)
    n, m = np.divmod(shapes, longest)
    first_bin = np.cumsum(m) - m
    offset = first_bin[shape_of_pair] - bitext.target.starts[:-1]
    of_token = np.repeat(offset, bitext.target.lengths) + np.arange(len(bitext.target.ids))
    position = np.arange(m.sum()) - np.repeat(first_bin, m) + 1
    return Bins(np.repeat(n, m), np.repeat(m, m), position, of_token.astype(np.int32))


def normalisers(bins: Bins, tension: float) -> Float64[np.ndarray, " bin"]:
    """Sum exp(-tension * |i/n - j/m|) over i, for each bin."""
    return _moments(bins, tension)[0]


def fit_tension(bins: Bins, weights: Float64[np.ndarray, " bin"], expected_distance: float, tension: float) -> float:
    """Find the tension under which the prior expects the distance from the diagonal that the posteriors have.

    This is the maximum of the expected log-likelihood, where its derivative (Dyer et al., section 2.2)

        sum over bins of weight * E_d[|i/n - j/m|]  -  expected_distance

    vanishes. The prior's distance falls as the tension grows, its slope is minus the variance: Newton's method,
    kept within bounds (a corpus of one-word sentences has no variance and leaves the tension as it is).
    """
    for _ in range(MAX_NEWTON_STEPS):
        _, mean, variance = _moments(bins, tension)
        slope = float(weights @ variance)
        if slope <= 0:
            return tension
        step = (float(weights @ mean) - expected_distance) / slope
        # Far from the solution the variance can be tiny and the step too long: at most double or halve.
        previous, tension = tension, min(max(tension + step, tension / 2), tension * 2, MAX_TENSION)
        if abs(tension - previous) < CLOSE_ENOUGH:
            break
    return tension


@njit(cache=True)
@no_type_check
def _moments(bins, tension):
    """Return, for each bin, the normaliser of the prior and the mean and variance of |i/n - j/m| under it."""
    normaliser = np.empty(len(bins.position))
    mean = np.empty(len(bins.position))
    variance = np.empty(len(bins.position))
    for k in range(len(bins.position)):
        n = bins.source_length[k]
        diagonal = bins.position[k] / bins.target_length[k]
        total, first, second = 0.0, 0.0, 0.0
        for i in range(1, n + 1):
            distance = abs(i / n - diagonal)
            weight = math.exp(-tension * distance)
            total += weight
            first += weight * distance
            second += weight * distance * distance
        normaliser[k] = total
        mean[k] = first / total
        variance[k] = max(second / total - mean[k] * mean[k], 0.0)
    return normaliser, mean, variance
