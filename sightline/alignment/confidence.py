"""Confidences that mean something: how often links as sure as this one are right, estimated without gold.

The links of a sample are compared with those of a statistical aligner that was trained on it. The aligner finds a right
link about as often whatever a model's score for it, and a wrong one seldom; so the share of links that it confirms
rises with the score as the share of right links does, up to a factor. The surest tenth of all links are nearly always
right, which gives the factor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from sightline.alignment.links import Alignment

MOST_KNOTS = 10
FEWEST_LINKS = 200
"""Fewer say little about their tenths."""

Knots = tuple[tuple[float, float], ...]
"""Points of a rising line, from a confidence as it was computed to what it means."""


def fit_confidences(alignments: Sequence[Alignment], others: Sequence[Alignment]) -> Knots:
    """Compare links with those of another aligner, tenth by tenth in order of their confidence."""
    values = np.array([value for one in alignments for value in one.confidences.values()])
    confirmed = np.array(
        [link in other.links for one, other in zip(alignments, others, strict=True) for link in one.confidences]
    )
    if len(values) < FEWEST_LINKS:
        return ()
    order = np.argsort(values, kind="stable")
    tenths = np.array_split(order, MOST_KNOTS)
    rates = _rising(np.array([confirmed[tenth].mean() for tenth in tenths]))
    if rates[-1] == 0:
        return ()
    return tuple(
        (float(values[tenth].mean()), float(rate / rates[-1])) for tenth, rate in zip(tenths, rates, strict=True)
    )


def set_confidences(alignment: Alignment, knots: Knots) -> Alignment:
    """Replace the confidences of links by what they mean."""
    if not knots or not alignment.confidences:
        return alignment
    before, after = zip(*knots, strict=True)
    values = np.interp(list(alignment.confidences.values()), before, after).tolist()
    return Alignment(
        dict(zip(alignment.confidences, values, strict=True)),
        alignment.possible - alignment.links,
        alignment.source_length,
        alignment.target_length,
    )


def _rising(rates: Float64[np.ndarray, " tenth"]) -> Float64[np.ndarray, " tenth"]:
    """Find the rates nearest to these that never fall: where they do, neighbours are averaged."""
    blocks: list[list[float]] = []
    for rate in rates.tolist():
        blocks.append([rate])
        while len(blocks) > 1 and np.mean(blocks[-2]) >= np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    return np.array([np.mean(block) for block in blocks for _ in block])
