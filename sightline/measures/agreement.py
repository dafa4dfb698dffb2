"""Whether two rankings have the same top: overlap, and the agreement of Snell et al. 2021 (eq. 10)."""

from collections.abc import Sequence

import numpy as np

from sightline.errors import InputError
from sightline.measures.rows import Mask, PerRow, Rows, to_rows


def top_overlap(u: Rows, v: Rows, k: int = 1, mask: Mask | None = None) -> PerRow:
    """Measure the share of the k highest positions that u and v have in common; ties go to the earlier one.

    |top_k(u) and top_k(v)| / min(k, n) for n real positions; undefined where there are none.
    """
    if k < 1:
        raise InputError(f"k is {k}: the overlap needs at least the 1 highest position.")
    u, v, mask = to_rows(u, v, mask=mask)
    common = _is_among_highest(u, mask, k) & _is_among_highest(v, mask, k)
    highest = np.minimum(k, mask.sum(-1))
    return np.where(highest > 0, common.sum(-1) / np.maximum(highest, 1), np.nan)[()]


def agreement(u: Rows, v: Rows, mask: Mask | None = None) -> PerRow:
    """Return 1 or 0: whether the highest position of u is among the highest 5% of v.

    A(u, v) = [ |{j : v_j > v_argmax(u)}| < 5% L ] for L real positions; undefined where there are none.
    It is not symmetric.
    """
    u, v, mask = to_rows(u, v, mask=mask)
    return _agreement(u, v, mask)


def random_agreement(u: Rows, v: Rows, seed: int, mask: Mask | None = None) -> PerRow:
    """Measure the baseline: the agreement after every row of v is shuffled once among its real positions."""
    u, v, mask = to_rows(u, v, mask=mask)
    return _agreement(u, _shuffled(v, mask, np.random.default_rng(seed)), mask)


def contextualize(
    value: float, agreements: Sequence[float | int], performances: Sequence[float | int]
) -> tuple[float | int, bool]:
    """Return how good a model is whose attention agrees with that of a trained one more than `value` (xi, eq. 11).

    The sequences go over the checkpoints of a second run: the agreement of its attention with the first run's, and its
    performance. Give the performance at the first checkpoint of strictly greater agreement, and True; where there is
    none, the performance at the last one, and False (starred in the paper's tables).
    """
    if len(agreements) != len(performances) or not len(performances):
        raise InputError(f"{len(agreements)} agreements and {len(performances)} performances: give one of each a step.")
    for agreement_there, performance in zip(agreements, performances, strict=True):
        if agreement_there > value:
            return performance, True
    return performances[-1], False


def _agreement(u: np.ndarray, v: np.ndarray, mask: np.ndarray) -> PerRow:
    at_highest_of_u = np.take_along_axis(v, _ranking(u, mask)[..., :1], axis=-1)
    above = ((v > at_highest_of_u) & mask).sum(-1)
    real = mask.sum(-1)
    # In whole numbers: 5% of 140 is a little more than 7 in floating point.
    return np.where(real > 0, 20 * above < real, np.nan)[()]


def _ranking(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Order positions from the highest to the lowest, the earlier first among equals, those not real last."""
    return np.lexsort((-values, ~mask))


def _is_among_highest(values: np.ndarray, mask: np.ndarray, k: int) -> np.ndarray:
    inside = np.zeros(values.shape, dtype=bool)
    np.put_along_axis(inside, _ranking(values, mask)[..., :k], True, axis=-1)
    return inside & mask


def _shuffled(values: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shuffle each row among its real positions."""
    shuffled = np.empty_like(values)
    positions = np.argsort(~mask, axis=-1, kind="stable")  # the real ones first
    moved_from = np.lexsort((rng.random(values.shape), ~mask))
    np.put_along_axis(shuffled, positions, np.take_along_axis(values, moved_from, axis=-1), axis=-1)
    return shuffled
