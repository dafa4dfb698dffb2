"""Entropies and divergences of distributions over positions, in nats; zeros of sparse attention are exact.

A row must sum to 1 over its real positions; `normalize` makes it so, by name and not behind the user's back.
A row of zeros, as attention gives without any real position, has no measure: NaN, which `summarize` counts.
"""

import numpy as np
from jaxtyping import Float64

from sightline.errors import InputError
from sightline.measures.rows import Mask, PerRow, Rows, to_rows

SUM_TOLERANCE = 1e-3
"""How far from 1 a sum may be: half precision rounds so, a forgotten normalisation does not."""


def normalize(values: Rows, mask: Mask | None = None) -> Float64[np.ndarray, "*_rows _position"]:
    """Divide every row by its sum over real positions; the others become 0, as does a row without mass."""
    values, mask = to_rows(values, mask=mask)
    values = np.where(mask, values, 0.0)
    if (values < 0).any():
        raise InputError("Negative values cannot be normalised to a distribution: clamp them or take absolute values.")
    total = values.sum(-1, keepdims=True)
    return np.divide(values, total, out=np.zeros_like(values), where=total > 0)


def entropy(p: Rows, mask: Mask | None = None, normalized: bool = False) -> PerRow:
    """Measure Shannon's entropy, at most log n for n real positions; normalised, it is divided by that.

    H(p) = - sum_i p_i log p_i, with 0 log 0 = 0. The normalised entropy of a single position is undefined.
    """
    p, mask = _to_distributions(p, mask=mask)
    logarithm = np.log(p, out=np.zeros_like(p), where=p > 0)
    result = _where_any_mass(-(p * logarithm).sum(-1), p)
    if not normalized:
        return result
    real = mask.sum(-1)
    return np.where(real > 1, result / np.log(np.maximum(real, 2)), np.nan)[()]


def kl_divergence(p: Rows, q: Rows, mask: Mask | None = None) -> PerRow:
    """Measure the Kullback-Leibler divergence, infinite where p has mass on a position on which q has none.

    KL(p || q) = sum_i p_i log(p_i / q_i)
    """
    p, q, _ = _to_distributions(p, q, mask=mask)
    return _where_any_mass(_relative_entropy(p, q), p, q)


def js_divergence(p: Rows, q: Rows, mask: Mask | None = None) -> PerRow:
    """Measure the Jensen-Shannon divergence, which is symmetric, always finite and at most log 2.

    JSD(p, q) = KL(p || m) / 2 + KL(q || m) / 2 with m = (p + q) / 2
    """
    p, q, _ = _to_distributions(p, q, mask=mask)
    middle = (p + q) / 2
    return _where_any_mass((_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2, p, q)


def total_variation(p: Rows, q: Rows, mask: Mask | None = None) -> PerRow:
    """Measure the total variation distance, from 0 to 1.

    TVD(p, q) = sum_i |p_i - q_i| / 2
    """
    p, q, _ = _to_distributions(p, q, mask=mask)
    return _where_any_mass(np.abs(p - q).sum(-1) / 2, p, q)


def support_size(p: Rows, mask: Mask | None = None) -> PerRow:
    """Count the positions with any mass, exactly: no threshold."""
    p, _ = _to_distributions(p, mask=mask)
    return (p > 0).sum(-1).astype(np.float64)


def _to_distributions(*several: Rows, mask: Mask | None) -> tuple[np.ndarray, ...]:
    """Bring distributions and their mask to one shape, 0 where not real; refuse rows that do not sum to 1."""
    *distributions, real = to_rows(*several, mask=mask)
    distributions = [np.where(real, one, 0.0) for one in distributions]
    for one in distributions:
        total = np.asarray(one.sum(-1))
        wrong = (np.abs(total - 1) > SUM_TOLERANCE) & (one != 0).any(-1)
        if (one < 0).any() or wrong.any():
            worst = f"one sums to {total[wrong].flat[0]:.4g}" if wrong.any() else "one has negative values"
            raise InputError(f"The rows must be distributions, but {worst}: use normalize() first.")
    return *distributions, real


def _relative_entropy(p: np.ndarray, q: np.ndarray) -> PerRow:
    """Sum p log(p / q), at least 0; p = 0 adds nothing, q = 0 < p makes it infinite."""
    with np.errstate(divide="ignore"):
        ratio = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return np.maximum((p * np.log(ratio)).sum(-1), 0.0)


def _where_any_mass(result: PerRow, *distributions: np.ndarray) -> PerRow:
    """Replace the measures of rows without any mass by NaN."""
    defined = np.logical_and.reduce([one.any(-1) for one in distributions])
    return np.where(defined, result, np.nan)[()]
