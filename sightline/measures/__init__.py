"""Measures of rows of scores: agreement of tops, rank correlation, entropy and divergence.

Each takes arrays (the last axis is a row, leading axes are kept) or Attributions (a row per target position,
over the source), with an optional mask that is True where a position is real, and gives one value per row,
NaN where it is undefined. `summarize` averages those and counts the undefined ones.
"""

from sightline.measures.agreement import agreement, contextualize, random_agreement, top_overlap
from sightline.measures.calibration import (
    CalibrationFigures,
    by_entropy,
    calibration_divergence,
    entropy_change,
    importance_correlation,
    measure_calibration,
)
from sightline.measures.correlation import kendall_tau, spearman
from sightline.measures.distributions import (
    entropy,
    js_divergence,
    kl_divergence,
    normalize,
    support_size,
    total_variation,
)
from sightline.measures.rows import Summary, summarize

__all__ = [
    "CalibrationFigures",
    "Summary",
    "agreement",
    "by_entropy",
    "calibration_divergence",
    "contextualize",
    "entropy",
    "entropy_change",
    "importance_correlation",
    "js_divergence",
    "kendall_tau",
    "kl_divergence",
    "measure_calibration",
    "normalize",
    "random_agreement",
    "spearman",
    "summarize",
    "support_size",
    "top_overlap",
    "total_variation",
]
