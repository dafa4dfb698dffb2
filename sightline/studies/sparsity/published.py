"""The figures that Meister et al. 2021 published, by table, row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sightline.studies.study import Figures


def _figures(columns: Sequence[str], rows: dict[str, Sequence[Any]]) -> Figures:
    return {row: dict(zip(columns, values, strict=True)) for row, values in rows.items()}


SETS = ("IMDb", "20-News", "SST")
TABLE_1 = _figures(
    SETS,
    {
        "BiLSTM softmax": ((0.71, 0.09), (0.75, 0.12), (0.93, 0.05)),
        "BiLSTM sparsemax": ((0.72, 0.10), (0.68, 0.12), (0.91, 0.07)),
        "Transformer softmax": ((0.76, 0.08), (0.48, 0.06), (0.73, 0.09)),
        "Transformer sparsemax": ((0.72, 0.09), (0.46, 0.06), (0.63, 0.08)),
    },
)
TABLE_2 = _figures(SETS, {"BiLSTM": (-0.935, -0.675, -0.866), "Transformer": (-0.830, -0.409, -0.810)})
TABLE_3 = _figures(
    ("train", "test", "accuracy Transformer", "accuracy BiLSTM"),
    {"IMDb": (25000, 4356, 0.89, 0.90), "20-News": (1426, 334, 0.91, 0.91), "SST": (6355, 1725, 0.79, 0.82)},
)
TABLE_5 = _figures(
    ("IMDb JSD", "IMDb accuracy", "SST JSD", "SST accuracy", "20-News JSD", "20-News accuracy"),
    {
        "BiLSTM frozen": (0.67, 0.76, 0.62, 0.76, 0.67, 0.78),
        "BiLSTM unfrozen": (0.67, 0.90, 0.61, 0.82, 0.67, 0.91),
        "Transformer frozen": (0.62, 0.71, 0.57, 0.76, 0.62, 0.87),
        "Transformer unfrozen": (0.64, 0.87, 0.57, 0.78, 0.62, 0.92),
    },
)
_TABLE_6_COLUMNS = tuple(f"{name} {way}" for name in SETS for way in ("gradient", "leave-one-out"))
TABLE_6_INPUTS = _figures(
    _TABLE_6_COLUMNS,
    {
        "BiLSTM softmax": ((0.36, 0.12), (0.31, 0.08), (0.24, 0.24), (0.17, 0.17), (0.25, 0.28), (0.35, 0.18)),
        "BiLSTM sparsemax": ((0.31, 0.08), (0.25, 0.06), (0.25, 0.13), (0.23, 0.09), (0.45, 0.13), (0.34, 0.15)),
        "Transformer softmax": ((0.67, 0.08), (0.20, 0.10), (0.54, 0.11), (0.05, 0.10), (0.72, 0.11), (0.33, 0.20)),
        "Transformer sparsemax": ((0.44, 0.08), (0.21, 0.09), (0.47, 0.10), (0.14, 0.15), (0.67, 0.12), (0.30, 0.23)),
    },
)
TABLE_6_STATES = _figures(
    _TABLE_6_COLUMNS,
    {
        "BiLSTM softmax": ((0.77, 0.05), (0.79, 0.05), (0.78, 0.15), (0.70, 0.19), (0.80, 0.13), (0.49, 0.17)),
        "BiLSTM sparsemax": ((0.98, 0.02), (0.98, 0.02), (0.98, 0.06), (0.99, 0.01), (0.97, 0.06), (0.98, 0.04)),
        "Transformer softmax": ((0.76, 0.04), (0.1, 0.07), (0.62, 0.13), (0.05, 0.11), (0.89, 0.07), (0.16, 0.18)),
        "Transformer sparsemax": ((0.92, 0.05), (0.19, 0.09), (0.76, 0.15), (0.15, 0.16), (0.88, 0.11), (0.25, 0.23)),
    },
)
