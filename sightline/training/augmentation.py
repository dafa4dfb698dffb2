"""Pairs joined into longer texts, and marks set apart: what a corpus of short, untokenised sentences lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

MOST_JOINED = 6
# As in the vocabulary, apostrophes and hyphens stay in their word.
MARK = re.compile(r"([^\w\s'’-])")

Pair = tuple[str, str]
"""A source and a target; or a text and its label."""


def augment(pairs: Sequence[Pair], joined: float, spaced: float, seed: int) -> list[Pair]:
    """Join a share of the pairs, each of them once, with others; then set apart the marks in a share of the texts."""
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(pairs))
    bound = round(joined * len(pairs))
    texts = [pairs[number] for number in sorted(order[bound:])]
    texts += [_join([pairs[number] for number in group]) for group in _groups(order[:bound], draw)]
    apart = draw.random(len(texts)) < spaced
    return [
        (space_marks(source), space_marks(target)) if is_apart else (source, target)
        for (source, target), is_apart in zip(texts, apart, strict=True)
    ]


def space_marks(text: str) -> str:
    """Write every punctuation mark as a word of its own, as tokenised text has it."""
    return " ".join(MARK.sub(r" \1 ", text).split())


def _groups(numbers: np.ndarray, draw: np.random.Generator) -> Iterator[np.ndarray]:
    """Cut numbers into groups of two to `MOST_JOINED`; the last may be smaller."""
    start = 0
    while start < len(numbers):
        size = int(draw.integers(2, MOST_JOINED, endpoint=True))
        yield numbers[start : start + size]
        start += size


def _join(pairs: Sequence[Pair]) -> Pair:
    return " ".join(source for source, _ in pairs), " ".join(target for _, target in pairs)
