"""The sentences of two long texts, matched by their lengths, so that words are aligned sentence by sentence.

A model that was trained on sentences reads a text of several of them badly, and one that is longer than its positions
not at all. Sentences end at their punctuation; which belong together is found as Gale and Church (1993) do, by dynamic
programming over groups of one to three sentences, where a pair of groups costs

    -log P(kind) - log P(|d| or more),    d = (l2 - c l1) / sqrt(v l1)

with their lengths l1 and l2 in characters, c the ratio of the whole texts, and d normally distributed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sightline.alignment.word_parts import SENTENCE_ENDS

CLOSING = "\"'”’»›)]}"
FEWEST_WORDS = 4
"""A shorter sentence belongs to the next: "Mr." ends none, and "Yes." says too little to be matched by its length."""
VARIANCE = 6.8
"""Of a translation's length, for each character of the source (Gale and Church)."""
KINDS = {(1, 1): 0.89, (1, 2): 0.045, (2, 1): 0.045, (2, 2): 0.01, (1, 3): 0.005, (3, 1): 0.005}
"""The probability of each number of source sentences for each number of target sentences, after Gale and Church's
table 5."""
STRAY = 12
"""How many sentences the match may be away from the diagonal."""


class Part(NamedTuple):
    """Words of a source and of its target that belong together: their bounds."""

    source: tuple[int, int]
    target: tuple[int, int]


def split_pair(source: Sequence[str], target: Sequence[str]) -> list[Part]:
    """Split two texts, given as words, into parts that translate each other, in order; one if they cannot be split."""
    bounds = [find_sentences(words) for words in (source, target)]
    lengths = [_characters(words, ends) for words, ends in zip((source, target), bounds, strict=True)]
    path = _match(*lengths) if min(map(len, bounds)) > 1 else None
    if path is None:
        return [Part((0, len(source)), (0, len(target)))]
    starts = [(0, *ends) for ends in bounds]
    return [Part((starts[0][i - di], starts[0][i]), (starts[1][j - dj], starts[1][j])) for (i, j), (di, dj) in path]


def find_sentences(words: Sequence[str]) -> list[int]:
    """Return where each sentence ends: the number of words up to there."""
    ends: list[int] = []
    start = 0
    for number, word in enumerate(words, start=1):
        follows = words[number] if number < len(words) else ""
        is_end = word.rstrip(CLOSING).endswith(tuple(SENTENCE_ENDS)) or (
            start < number and not word.strip(CLOSING) and _ends_before(words, number - 1)
        )
        # Closing marks that stand alone, and the rest of "...", belong to the sentence that they close.
        goes_on = bool(follows) and not follows.strip(CLOSING + SENTENCE_ENDS)
        if is_end and not goes_on and number - start >= FEWEST_WORDS:
            ends.append(number)
            start = number
    if start < len(words):
        if ends and len(words) - start < FEWEST_WORDS:
            ends[-1] = len(words)
        else:
            ends.append(len(words))
    return ends


def _ends_before(words: Sequence[str], number: int) -> bool:
    """Return whether a sentence ends right before some closing marks that stand alone."""
    while number and not words[number].strip(CLOSING):
        number -= 1
    return words[number].rstrip(CLOSING).endswith(tuple(SENTENCE_ENDS))


def _characters(words: Sequence[str], ends: Sequence[int]) -> list[int]:
    return [sum(map(len, words[start:end])) for start, end in pairwise([0, *ends])]


def _match(source: Sequence[int], target: Sequence[int]) -> list[tuple[tuple[int, int], tuple[int, int]]] | None:
    """Return the cheapest path as (sentences done on both sides, sentences of the step); None where there is none."""
    ratio = sum(target) / sum(source)
    slope = len(target) / len(source)
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(source) + 1):
        low, high = (round(i * slope) + sign * STRAY for sign in (-1, 1))
        for j in range(max(low, 0), min(high, len(target)) + 1):
            steps = [
                (
                    best[i - di, j - dj][0] - math.log(share) + _cost(source[i - di : i], target[j - dj : j], ratio),
                    (di, dj),
                )
                for (di, dj), share in KINDS.items()
                if (i - di, j - dj) in best
            ]
            if steps:
                best[i, j] = min(steps)
    place = len(source), len(target)
    if place not in best:
        return None
    path = []
    while place != (0, 0):
        step = best[place][1]
        path.append((place, step))
        place = place[0] - step[0], place[1] - step[1]
    return path[::-1]


def _cost(source: Sequence[int], target: Sequence[int], ratio: float) -> float:
    expected = ratio * sum(source)
    deviations = abs(sum(target) - expected) / math.sqrt(VARIANCE * max(expected, 1.0))
    return -math.log(max(math.erfc(deviations / math.sqrt(2)), 1e-300))
