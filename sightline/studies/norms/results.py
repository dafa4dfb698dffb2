"""What the study measured, picked out: the encoder's figures, and those of the translation models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sightline.studies.norms.translation import TRANSLATE
from sightline.studies.study import Figures, Results

SPECIAL = ("[CLS]", "[SEP]", "comma & period")


def translators(results: Results) -> dict[str, dict[str, Any]]:
    """Return the figures of the translation models that were measured, by name."""
    return {
        name.removeprefix(TRANSLATE): found
        for name, found in results.items()
        if name.startswith(TRANSLATE) and found is not None
    }


def best_rates(results: Results, way: str) -> list[float]:
    """List the lowest error rate over layers of every model, such as of `norms AWI`."""
    return [min(found["by layer"][way]) for found in translators(results).values()]


def mean_rates(results: Results, way: str) -> list[float]:
    """List the mean error rate over layers of every model."""
    return [float(np.mean(found["by layer"][way])) for found in translators(results).values()]


def special_shares(results: Results) -> Iterator[tuple[float, float]]:
    """Yield by layer which share of alpha, and of || alpha f(x) ||, special tokens and punctuation get together."""
    shares = results["encoder"]["shares"]
    layers = len(shares["weights"][SPECIAL[0]])
    for layer in range(layers):
        sums = [
            (
                sum(shares[quantity][name][layer] for name in SPECIAL),
                sum(values[layer] for values in shares[quantity].values()),
            )
            for quantity in ("weights", "norms")
        ]
        yield sums[0][0] / sums[0][1], sums[1][0] / sums[1][1]


def dispersion_table(dispersion: dict[str, list[list[float]]], label: str) -> Figures:
    """Pick the heads (or layers) with the greatest and the least coefficient of variation, and average over all."""
    cv = np.array(dispersion["cv"])
    table: dict[str, dict[str, Any]] = {}
    for row, place in (("max CV", cv.argmax()), ("min CV", cv.argmin())):
        layer, head = (int(index) for index in np.unravel_index(place, cv.shape))
        name = f"layer {layer + 1}" + (f", head {head + 1}" if label == "head" else "")
        table[row] = {label: name} | {
            column: dispersion[figure][layer][head]
            for column, figure in (("mean", "mean"), ("deviation", "deviation"), ("CV", "cv"))
        }
        table[row] |= {column: dispersion[column][layer][head] for column in ("max", "min")}
    table["average"] = {
        column: float(np.mean(dispersion[figure]))
        for column, figure in (("mean", "mean"), ("deviation", "deviation"), ("CV", "cv"))
    }
    return table
