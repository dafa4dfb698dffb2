"""What the study measured, picked out: error rates by architecture, direction, method and decoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sightline.studies.saliency.published import ARCHITECTURES
from sightline.studies.saliency.steps import ALIGNERS, FORCED, FREE, JOINED, step_name
from sightline.studies.saliency.texts import Direction
from sightline.studies.study import Results

DECODINGS = (FORCED, FREE)


def directions(results: Results) -> tuple[Direction, Direction]:
    """Return both directions, first that of the gold alignments."""
    first, second = results[JOINED]["languages"]
    return (first, second), (second, first)


def joined_column(results: Results) -> str:
    """Name the column of both directions joined."""
    return "<>".join(results[JOINED]["languages"])


def of_model(results: Results, architecture: str, direction: Direction) -> dict[str, Any]:
    """Return what was measured on one model."""
    return results[step_name(architecture, direction)]


def rate_of(results: Results, decoding: str, architecture: str, direction: Direction, method: str) -> float:
    """Return the error rate of a method on one model."""
    return of_model(results, architecture, direction)[decoding]["rates"][method]


def joined_rate(results: Results, architecture: str, method: str) -> float:
    """Return the error rate of both directions joined, in forced decoding."""
    return results[JOINED]["rates"][architecture][method]


def models(results: Results) -> Iterator[tuple[str, Direction]]:
    """Yield every architecture in both directions."""
    for architecture in ARCHITECTURES:
        for direction in directions(results):
            yield architecture, direction


def all_rates(results: Results, architecture: str, method: str) -> list[float]:
    """List the error rates of a method: forced in both directions, joined, and free in both directions."""
    forced, free = (
        [rate_of(results, decoding, architecture, direction, method) for direction in directions(results)]
        for decoding in DECODINGS
    )
    return [*forced, joined_rate(results, architecture, method), *free]


def forced_mean(results: Results, architecture: str, method: str) -> float:
    """Return the mean error rate over both directions, in forced decoding."""
    both = [rate_of(results, FORCED, architecture, direction, method) for direction in directions(results)]
    return sum(both) / len(both)


def noise_of(results: Results, architecture: str, decoding: str) -> dict[str, dict[str, float]]:
    """Return entropy and error rate of attention and of word saliency by noise."""
    return of_model(results, architecture, directions(results)[0])["noise"][decoding]


def aligner_rates(results: Results) -> dict[str, dict[str, float]]:
    """Return the error rates of the statistical aligners, by name and column."""
    return results[ALIGNERS]["rates"]
