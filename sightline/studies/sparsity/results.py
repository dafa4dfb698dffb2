"""What the study measured, picked out: the models that the tables compare, and trends with lambda."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sightline.measures import kendall_tau
from sightline.studies.sparsity.steps import COMPARED, ENCODERS
from sightline.studies.study import Results

NAMES = {"imdb": "IMDb", "20news-sports": "20-News", "sst": "SST", "generated": "generated"}
ENCODER_NAMES = {"lstm": "BiLSTM", "transformer": "Transformer"}


def compared(results: Results) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (data set, `BiLSTM softmax` and so on, figures) of the models that the tables compare, seed by seed."""
    for name, found in results.items():
        for encoder in ENCODERS:
            for projection in COMPARED:
                for model in of_all_seeds(found["models"], f"{encoder} {projection}"):
                    yield NAMES[name], f"{ENCODER_NAMES[encoder]} {projection}", model


def of_all_seeds(models: dict[str, Any], label: str) -> list[dict[str, Any]]:
    """List the figures of a model and of those that differ only in their seed."""
    return [model for name, model in models.items() if name == label or name.startswith(f"{label}, seed ")]


def averaged(results: Results, figure: str) -> dict[tuple[str, str], list[float | None]]:
    """Return, for the models that the tables compare, a figure's mean and deviation over documents, over all seeds.

    By (data set, `BiLSTM softmax` and so on); None where no seed has it.
    """
    by_model: dict[tuple[str, str], list[Any]] = {}
    for name, label, model in compared(results):
        by_model.setdefault((name, label), []).append(model[figure][:2])
    return {key: [_known_mean(column) for column in zip(*found, strict=True)] for key, found in by_model.items()}


def _known_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


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
