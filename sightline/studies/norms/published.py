"""The figures that Kobayashi et al. 2020 published, by table, row and column."""

from __future__ import annotations

from sightline.studies.study import Figures

TABLE_1: Figures = {
    "max CV": {"head": "layer 2, head 4", "mean": 4.26, "deviation": 1.59, "CV": 0.37, "max": 12.66, "min": 0.96},
    "min CV": {"head": "layer 2, head 7", "mean": 4.00, "deviation": 0.50, "CV": 0.12, "max": 6.15, "min": 1.35},
    "average": {"mean": 5.15, "deviation": 1.17, "CV": 0.22},
}
TABLE_2: Figures = {
    "[CLS]": {"vectors": 17_443_296, "Spearman's rho": -0.34},
    "[SEP]": {"vectors": 34_886_592, "Spearman's rho": -0.69},
    "comma & period": {"vectors": 182_838_528, "Spearman's rho": -0.25},
    "others": {"vectors": 1_944_928_224, "Spearman's rho": -0.06},
}
TABLE_4: Figures = {
    "max CV": {"layer": "layer 12", "mean": 20.49, "deviation": 4.62, "CV": 0.23, "max": 32.84, "min": 4.13},
    "min CV": {"layer": "layer 7", "mean": 21.64, "deviation": 1.40, "CV": 0.06, "max": 23.03, "min": 11.87},
    "average": {"mean": 19.93, "deviation": 2.39, "CV": 0.12},
}
PRINTED = "as printed"
"""The paper names neither reading."""
TABLE_3: Figures = {
    "attention weights, best layer": {PRINTED: 51.9, "AWO": 47.7, "AWI": 29.8},
    "attention weights, mean of layers": {PRINTED: 81.4},
    "vector norms, best layer": {PRINTED: 28.3, "AWO": 41.4, "AWI": 25.0},
    "vector norms, mean of layers": {PRINTED: 61.6},
    "Li et al. 2016, SmoothGrad": {PRINTED: 36.4},
    "Ding et al. 2019, SmoothGrad": {PRINTED: 36.4},
    "fast_align": {PRINTED: 28.4},
    "GIZA++": {PRINTED: 21.0},
}
"""AWO and AWI are of the released notebook, the mean of 5 seeds."""
FIGURE_6: Figures = {
    "weights": {"vocabulary id": -0.08},
    "norms of f(x)": {"vocabulary id": 0.75},
}
