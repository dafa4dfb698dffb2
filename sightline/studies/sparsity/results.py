"""What the study measured, picked out: the models that the tables compare, and trends with lambda."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sightline.measures import kendall_tau
from sightline.studies.sparsity.steps import ENCODERS
from sightline.studies.study import Results

NAMES = {"imdb": "IMDb", "20news-sports": "20-News", "sst": "SST", "generated": "generated"}
ENCODER_NAMES = {"lstm": "BiLSTM", "transformer": "Transformer"}
COMPARED = ("softmax", "sparsemax")


def compared(results: Results) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (data set, `BiLSTM softmax` and so on, figures) of the models that the tables compare."""
    for name, found in results.items():
        for encoder in ENCODERS:
            for projection in COMPARED:
                model = found["models"].get(f"{encoder} {projection}")
                if model is not None:
                    yield NAMES[name], f"{ENCODER_NAMES[encoder]} {projection}", model


def spectrum(models: dict[str, Any], encoder: str) -> list[tuple[float, dict[str, Any]]]:
    """List the models of an encoder with sparsegen, by their lambda."""
    prefix = f"{encoder} sparsegen:"
    found = [(float(label.removeprefix(prefix)), model) for label, model in models.items() if label.startswith(prefix)]
    return sorted([*found, (0.0, models[f"{encoder} sparsemax"])], key=lambda pair: pair[0])


def trend(spectrum: Sequence[tuple[float, dict[str, Any]]], figure: str) -> float:
    """Return tau-b of lambda with the mean of a figure over documents."""
    lambdas, means = zip(
        *((value, model[figure][0]) for value, model in spectrum if model[figure][0] is not None), strict=True
    )
    return float(kendall_tau(np.array(lambdas), np.array(means)))


def trends(results: Results, figure: str) -> dict[tuple[str, str], float]:
    """Return the trend of a figure by encoder and data set."""
    return {
        (ENCODER_NAMES[encoder], NAMES[name]): trend(spectrum(found["models"], encoder), figure)
        for name, found in results.items()
        for encoder in ENCODERS
    }
