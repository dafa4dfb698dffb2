"""One example while its attention forms, beside the probe and the count table that it follows (figures 1 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from sightline.alignment.bitext import build_bitext
from sightline.alignment.lexicon import count_table
from sightline.studies.learning.traces import Trace

LEAST, GREATEST = 6, 14
"""The lengths of an example that is worth looking at, and has room on a page."""

Sides = tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]
"""The ids of what is read, and of what is said of it, for many examples."""


def choose_example(sides: Sides, unknown: int) -> int | None:
    """Find the first example that is neither too short nor too long, and has no unknown word."""
    for number, (source, target) in enumerate(zip(*sides, strict=True)):
        if LEAST <= max(len(source), len(target)) <= GREATEST and unknown not in source:
            return number
    return None


def count_probe(training: Sides, source: Sequence[int], target: Sequence[int]) -> Float[np.ndarray, "target source"]:
    """Return beta^IBM_tl = Trans(y_t | x_l), read from the count table of the training set (eq. 16-18)."""
    table = count_table(build_bitext((_words(one), _words(other)) for one, other in zip(*training, strict=True)))
    return table.normalized().lookup(_words(source), _words(target))


def cut_frames(
    traces: Sequence[Trace], targets: Sequence[Sequence[int]], number: int, columns: int
) -> dict[str, list[Any]]:
    """Return attention and probe of one example at every step; the traces have a row for every output of all."""
    start = sum(len(target) for target in targets[:number])
    rows = slice(start, start + len(targets[number]))
    return {
        "step": [trace.step for trace in traces],
        "attention": [rounded(trace.scores["attention"][rows, :columns]) for trace in traces],
        "probe": [rounded(_probabilities(trace.scores["lexical_probe"][rows, :columns])) for trace in traces],
    }


def _probabilities(logits: Float[np.ndarray, "target source"]) -> Float[np.ndarray, "target source"]:
    """Return what logits are the logits of."""
    return np.exp(-np.logaddexp(0.0, -logits.astype(np.float64)))


def rounded(table: Float[np.ndarray, "target source"]) -> list[list[float]]:
    """Round to what can be seen."""
    return np.round(table.astype(float), 3).tolist()


def _words(ids: Sequence[int]) -> list[str]:
    return [str(one) for one in ids]
