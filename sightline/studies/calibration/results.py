"""What the study measured, picked out: figures of a system over its seeds, and the prices of the mask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from sightline.studies.study import Results

CALIBRATED = ("small fixed", "small anneal", "small gate", "large gate")
"""The systems of the paper; the others only change what it leaves open."""
FEWEST_ROWS = 20
"""A bin of entropies with fewer rows of weights says nothing."""


def runs(results: Results, system: str) -> list[dict[str, Any]]:
    """Return the runs of a system, one a seed."""
    return results[system]["runs"]


def over_seeds(results: Results, system: str, figure: str) -> list[float]:
    """Return mean and standard deviation over seeds of a figure."""
    values = np.array([run[figure] for run in runs(results, system)], dtype=np.float64)
    return [float(values.mean()), float(values.std())]


def by_layer(results: Results, system: str, figure: str) -> Float[np.ndarray, " layer"]:
    """Return the mean over seeds of a figure that every layer has."""
    return np.array([run[figure] for run in runs(results, system)], dtype=np.float64).mean(0)


def by_entropy_bins(results: Results, system: str) -> Float[np.ndarray, "layer bin"]:
    """Return the mean divergence of each bin of entropies over all seeds; NaN where there are too few rows."""
    bins = np.array([run["divergence by entropy"] for run in runs(results, system)], dtype=np.float64)
    means, counts = np.nan_to_num(bins[..., 0]), bins[..., 2]
    totals = counts.sum(0)
    sums = (means * counts).sum(0)
    return np.where(totals >= FEWEST_ROWS, sums / np.maximum(totals, 1), np.nan)


def priced(results: Results) -> list[tuple[float, str]]:
    """List the gates trained on the small text by their alpha: (alpha, system)."""
    names = ["small gate", *(name for name in results if name.startswith("alpha "))]
    return sorted((results[name]["calibration"]["alpha"], name) for name in names)


def calibrated_runs(results: Results) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every run of the paper's calibrated systems, with the system's name."""
    for system in CALIBRATED:
        for run in runs(results, system):
            yield system, run
