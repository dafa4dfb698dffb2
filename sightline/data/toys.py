"""Toy tasks of Snell et al. 2021, drawn at random: copying, reordering, and finding a keyword.

Words are the numbers from 0. A sampler is called with a generator and a number of examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

Sequences = Int[np.ndarray, "example position"]
PairSampler = Callable[[np.random.Generator, int], tuple[Sequences, Sequences]]


def copying(length: int, words: int) -> PairSampler:
    """Copy `length` different words out of `words`; of as many as there are, every source is a permutation of all."""

    def sample(rng: np.random.Generator, examples: int) -> tuple[Sequences, Sequences]:
        source = _drawn(rng, examples, words)[:, :length]
        return source, source

    return sample


def copying_mixture(length: int, sets: int = 2) -> PairSampler:
    """Copy a permutation of one of several disjoint sets of words (appendix A.3)."""

    def sample(rng: np.random.Generator, examples: int) -> tuple[Sequences, Sequences]:
        source = _drawn(rng, examples, length) + length * rng.integers(sets, size=(examples, 1))
        return source, source

    return sample


def reordering(length: int, words: int, order: Sequence[int]) -> PairSampler:
    """Put `length` different words into a fixed other order: f(x) = x_order(1), x_order(2), ... (eq. 26)."""
    assert sorted(order) == list(range(length)), "an order has every position once"

    def sample(rng: np.random.Generator, examples: int) -> tuple[Sequences, Sequences]:
        source = _drawn(rng, examples, words)[:, :length]
        return source, source[:, list(order)]

    return sample


def draw_keywords(
    rng: np.random.Generator, examples: int, length: int, words: int
) -> tuple[Sequences, Int[np.ndarray, " example"], Int[np.ndarray, " example"]]:
    """Draw texts of random words, half of which have the keyword 0, once (section 6.1).

    Give the texts, their labels (1: the keyword is there) and its position (-1: it is not).
    """
    texts = rng.integers(1, words, size=(examples, length))
    labels = rng.permutation(np.arange(examples) % 2)
    positions = np.where(labels == 1, rng.integers(length, size=examples), -1)
    has_keyword = np.flatnonzero(labels)
    texts[has_keyword, positions[has_keyword]] = 0
    return texts, labels, positions


def _drawn(rng: np.random.Generator, examples: int, words: int) -> Sequences:
    """Draw a permutation of all words for every example."""
    return rng.permuted(np.tile(np.arange(words), (examples, 1)), axis=1)
