"""What calibration does to attention (Lu et al. 2021, section 5), from attributions of one calibrated model.

    original    explain(model, ..., method="attention", head="all", original=True)
    calibrated  explain(model, ..., method="attention", head="all")
    masks       explain(model, ..., method="perturbation_mask")       scores are 1 - m
    importance  explain(model, ..., method="hidden_gradient")         |d p(y_t) / d h_i|, eq. 2

Calibrated weights need not sum to 1, so that rows are normalised before a divergence or an entropy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from sightline.attribution import Attribution
from sightline.errors import InputError
from sightline.measures.correlation import kendall_tau
from sightline.measures.distributions import entropy, js_divergence, normalize
from sightline.measures.rows import Mask, PerRow, Rows, Summary, summarize

PerLayer = Float64[np.ndarray, " layer"]


def calibration_divergence(original: Rows, calibrated: Rows, mask: Mask | None = None) -> PerRow:
    """Measure how far calibration moved the weights: the Jensen-Shannon divergence of both (eq. 12)."""
    return js_divergence(normalize(original, mask), normalize(calibrated, mask), mask)


def entropy_change(original: Rows, calibrated: Rows, mask: Mask | None = None) -> PerRow:
    """Measure how much more dispersed calibrated weights are: ent(calibrated) - ent(original).

    This is eq. 13 with the sign of table 5: above 0 calibration disperses, below 0 it sharpens.
    """
    return entropy(normalize(calibrated, mask), mask) - entropy(normalize(original, mask), mask)


def by_entropy(values: Sequence[PerRow], original: Sequence[Rows], edges: Sequence[float | int]) -> list[Summary]:
    """Summarise a measure of rows by the entropy of their original weights, over many examples (figure 7).

    There is a bin [edge, next edge) for every edge; the last bin is open. Each example has its values, one a row, and
    its original weights.
    """
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise InputError(f"The edges of the bins are {list(edges)}: give one or more, from the lowest to the highest.")
    entropies = [np.asarray(entropy(normalize(weights))) for weights in original]
    pairs = [np.broadcast_arrays(*pair) for pair in zip(entropies, values, strict=True)]
    every_entropy, every_value = (np.concatenate([np.ravel(pair[side]) for pair in pairs]) for side in (0, 1))
    bins = np.searchsorted(np.asarray(edges, dtype=np.float64), every_entropy, side="right") - 1
    return [summarize(every_value[bins == number]) for number in range(len(edges))]


def importance_correlation(weights: Sequence[Attribution], importance: Sequence[Attribution]) -> PerLayer:
    """Correlate attention, averaged over heads, with the inputs' importance, layer by layer (figure 2).

    This is the mean of Kendall's tau over target positions, for the attention of any model, calibrated or not.
    """
    _check_axes(weights)
    return _by_layer([_tau(a, b) for a, b in zip(weights, importance, strict=True)])


@dataclass(frozen=True, eq=False)
class CalibrationFigures:
    """What calibration does, layer by layer: means over the heads, examples and target positions where defined."""

    divergence: PerLayer
    """From the original weights (eq. 12, figure 6)."""
    entropy_change: PerLayer
    """Above 0 calibration disperses (eq. 13, table 5)."""
    entropy_change_of_all: float
    """The same of the weights averaged over all layers and heads (the row "All" of table 5)."""
    mask: PerLayer
    """The mean of m (figure 4)."""
    tau_of_weights: PerLayer
    """Kendall's tau of the original weights, averaged over heads, with the importance (figure 2)."""
    tau_of_masks: PerLayer
    """Kendall's tau of 1 - m, averaged over heads, with the importance (figure 5)."""


def measure_calibration(
    original: Sequence[Attribution],
    calibrated: Sequence[Attribution],
    masks: Sequence[Attribution],
    importance: Sequence[Attribution],
) -> CalibrationFigures:
    """Measure a calibrated model on some examples; each has an attribution in every list."""
    _check_axes([*original, *calibrated, *masks])
    pairs = list(zip(original, calibrated, strict=True))
    return CalibrationFigures(
        divergence=_by_layer([calibration_divergence(a, b) for a, b in pairs]),
        entropy_change=_by_layer([entropy_change(a, b) for a, b in pairs]),
        entropy_change_of_all=float(_by_layer([_overall_change(a, b)[None] for a, b in pairs])[0]),
        mask=1 - _by_layer([one.scores.mean(-1, dtype=np.float64) for one in masks]),
        tau_of_weights=importance_correlation(original, importance),
        tau_of_masks=importance_correlation(masks, importance),
    )


def _check_axes(attributions: Sequence[Attribution]) -> None:
    for one in attributions:
        if one.axes != ("layer", "head"):
            raise InputError(
                f"An attribution of {one.method} has the axes {one.axes}: keep layers and heads (head='all')."
            )


def _overall_change(original: Attribution, calibrated: Attribution) -> Float64[np.ndarray, " target"]:
    # Deviation: the paper does not say what "All" is; its figures are not the layers' mean. Rows are normalised before
    # layers and heads are averaged, so that each counts alike.
    before, after = (normalize(one).mean((0, 1)) for one in (original, calibrated))
    return entropy_change(before, after)  # type: ignore[return-value]


def _tau(scores: Attribution, importance: Attribution) -> Float64[np.ndarray, "layer target"]:
    return kendall_tau(scores.scores.mean(1), importance.scores)  # type: ignore[return-value]


def _by_layer(per_example: Sequence[PerRow]) -> PerLayer:
    """Average (layer, ..., target) arrays over everything but the layer; undefined values are left out."""
    rows = [np.moveaxis(np.asarray(values, dtype=np.float64), 0, -1) for values in per_example]
    together = np.concatenate([values.reshape(-1, values.shape[-1]) for values in rows])
    return np.nanmean(together, axis=0)
