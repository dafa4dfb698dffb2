"""Joining the alignments of two directions into one, by a named rule.

Two families of heuristics go by the same names elsewhere; here each has its own:

| rule                     | starts from the | adds neighbours of its links | then adds links left over |
|--------------------------|-----------------|------------------------------|---------------------------|
| `intersection`           | intersection    |                              |                           |
| `union`                  | union           |                              |                           |
| `grow-diag`              | intersection    | if either word is free       |                           |
| `grow-diag-final`        | intersection    | if either word is free       | if either word is free    |
| `grow-diag-final-and`    | intersection    | if either word is free       | if both words are free    |
| `grow-diag-strict`       | intersection    | if both words are free       |                           |
| `grow-diag-final-strict` | intersection    | if both words are free       | if both words are free    |

A word is free while it has no link; what is added comes from the union. The plain names are those of Moses and of
fast_align's atools (Koehn et al. 2005). The strict ones are what the alignment-scripts of Zenkel et al. 2019 call
grow-diagonal and grow-diagonal-final; a strict final-and would be the same as the strict final. On the same files the
families differ by up to 4 points of error rate.

The result depends on the order in which links are looked at, so the order is fixed: by target word, then by source
word; neighbours as in NEIGHBOURS; of the links left over, first those of the forward direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float64, Int32, Int64

from sightline.alignment.columns import NOT_KNOWN, Alignments, each_alignment
from sightline.alignment.formats import read_alignments
from sightline.alignment.links import Alignment
from sightline.alignment.steps import Steps, Unseen, count_lines
from sightline.compilation import njit
from sightline.errors import InputError, unknown_name
from sightline.files import FilePath, Position
from sightline.limits import MOST_WORDS

NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))  # (target, source)
PAIRS_AT_ONCE = 200

NEVER, EITHER_FREE, BOTH_FREE = 0, 1, 2
FORWARD, REVERSE, CHOSEN, SEEN = 1, 2, 4, 8


class Rule(NamedTuple):
    """What to start from, and when to add a neighbour or a link left over."""

    start: int
    grow: int = NEVER
    finish: int = NEVER


INTERSECTION, UNION = 2, 1  # in how many directions a link must be to start with
RULES = {
    "intersection": Rule(INTERSECTION),
    "union": Rule(UNION),
    "grow-diag": Rule(INTERSECTION, grow=EITHER_FREE),
    "grow-diag-final": Rule(INTERSECTION, grow=EITHER_FREE, finish=EITHER_FREE),
    "grow-diag-final-and": Rule(INTERSECTION, grow=EITHER_FREE, finish=BOTH_FREE),
    "grow-diag-strict": Rule(INTERSECTION, grow=BOTH_FREE),
    "grow-diag-final-strict": Rule(INTERSECTION, grow=BOTH_FREE, finish=BOTH_FREE),
}
DEFAULT_RULE = "grow-diag-strict"


def symmetrize(forward: Alignment, reverse: Alignment, rule: str) -> Alignment:
    """Join the alignments of one pair in two directions, both as (source, target) links.

    The confidence of a link is the mean of its confidences in the two directions, 0 where it is absent.

    >>> symmetrize(Alignment([(0, 0), (1, 1)]), Alignment([(0, 0), (1, 2)]), "grow-diag-strict")
    Alignment(0-0 1-1:0.50)
    """
    return _join([(forward, reverse)], _rule(rule))[0]


def symmetrize_all(forward: Iterable[Alignment], reverse: Iterable[Alignment], rule: str) -> Iterator[Alignment]:
    """Join the alignments of many pairs in two directions, both as (source, target) links, in order, as they come."""
    return each_alignment(symmetrize_in_columns(forward, reverse, rule))


def symmetrize_in_columns(
    forward: Iterable[Alignment], reverse: Iterable[Alignment], rule: str
) -> Iterator[Alignments]:
    """Join as `symmetrize_all` does; many alignments at a time make up a set of columns."""
    settings = _rule(rule)
    return (_join(chunk, settings) for chunk in _chunks(_paired(forward, reverse)))


def symmetrize_files(
    forward: FilePath,
    reverse: FilePath,
    rule: str,
    *,
    format: str = "pharaoh",
    base: int | None = None,
    reverse_target_first: bool = True,
    steps: Steps | None = None,
) -> Iterator[Alignment]:
    """Join the alignments of two files.

    The reverse file lists target-source links, unless said otherwise (fast_align and eflomal write source-target
    links in both directions). Files of different length are refused, and so is an order that the links belie.
    `steps` is told how far it is.
    """
    settings = _rule(rule)
    position = Position()
    pairs = _paired(
        read_alignments(forward, format, base, position=position),
        read_alignments(reverse, format, base, target_first=reverse_target_first),
    )
    for number, chunk in enumerate(_chunks(count_lines(pairs, position, steps or Unseen()))):
        if number == 0:
            _refuse_flipped(chunk, reverse)
        yield from _join(chunk, settings)


def _rule(name: str) -> Rule:
    if name not in RULES:
        raise unknown_name("symmetrisation rule", name, RULES)
    return RULES[name]


def _paired(forward: Iterable[Alignment], reverse: Iterable[Alignment]) -> Iterator[tuple[Alignment, Alignment]]:
    for number, (one, other) in enumerate(zip_longest(forward, reverse)):
        if one is None or other is None:
            shorter = "forward" if one is None else "reverse"
            raise InputError(f"The {shorter} direction ends after {number} sentences, the other one goes on.")
        yield one, other


def _chunks(pairs: Iterator[tuple[Alignment, Alignment]]) -> Iterator[list[tuple[Alignment, Alignment]]]:
    while chunk := list(islice(pairs, PAIRS_AT_ONCE)):
        yield chunk


def _refuse_flipped(pairs: list[tuple[Alignment, Alignment]], reverse_name: FilePath) -> None:
    as_said = sum(len(forward.links & reverse.links) for forward, reverse in pairs)
    flipped = sum(len(forward.links & reverse.flipped().links) for forward, reverse in pairs)
    if flipped > 2 * as_said + len(pairs):  # far more than short, monotone sentences would share by chance
        raise InputError(
            f"{reverse_name}: in the first {len(pairs)} sentences it shares {as_said} links with the other direction, "
            f"but {flipped} with source and target exchanged: say that its links are in the other order."
        )


def _join(pairs: list[tuple[Alignment, Alignment]], rule: Rule) -> Alignments:
    forward, reverse = (Alignments.of(direction) for direction in zip(*pairs, strict=True))
    for links in (forward.source, forward.target, reverse.source, reverse.target):
        if links.size and links.max() >= MOST_WORDS:
            raise InputError(f"A link has the word {links.max()}: sentences may have {MOST_WORDS:,} words at most.")
    columns = (FlatLinks(one.starts, one.source, one.target, one.confidence) for one in (forward, reverse))
    source_lengths = np.where(reverse.source_lengths == NOT_KNOWN, forward.source_lengths, reverse.source_lengths)
    target_lengths = np.where(reverse.target_lengths == NOT_KNOWN, forward.target_lengths, reverse.target_lengths)
    starts, source, target, confidence = _join_links(*columns, *rule)
    return Alignments(starts, source, target, confidence, source_lengths, target_lengths)


def join_columns(forward: Alignments, backward: Alignments, rule: str) -> Alignments:
    """Join the alignments of many pairs in two directions at once, where the backward ones are (target, source) links.

    The lengths of all sentences are known.
    """
    longest = max(forward.source_lengths.max(initial=0), forward.target_lengths.max(initial=0))
    if longest > MOST_WORDS:
        raise InputError(f"A sentence has {longest} words: it may have {MOST_WORDS:,} at most.")
    ahead = FlatLinks(forward.starts, forward.source, forward.target, forward.confidence)
    back = FlatLinks(backward.starts, backward.target, backward.source, backward.confidence)
    starts, source, target, confidence = _join_links(ahead, back, *_rule(rule))
    return Alignments(starts, source, target, confidence, forward.source_lengths, forward.target_lengths)


class FlatLinks(NamedTuple):
    """The columns that compiled code takes; see `Alignments`."""

    starts: Int64[np.ndarray, " pair_1"]
    source: Int32[np.ndarray, " link"]
    target: Int32[np.ndarray, " link"]
    confidence: Float64[np.ndarray, " link"]


@njit(cache=True)
@no_type_check
def _join_links(forward, reverse, start, grow, finish):
    starts = np.zeros_like(forward.starts)
    most = len(forward.source) + len(reverse.source)
    sources, targets, confidences = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most)
    for pair in range(len(starts) - 1):
        begin = starts[pair]
        free = sources[begin:], targets[begin:], confidences[begin:]
        starts[pair + 1] = begin + _join_pair(forward, reverse, pair, (start, grow, finish), *free)
    size = starts[-1]
    return starts, sources[:size].copy(), targets[:size].copy(), confidences[:size].copy()


@njit(cache=True)
@no_type_check
def _join_pair(forward, reverse, pair, rule, sources, targets, confidences):
    """Write the links of a pair, by source word and then by target word; return how many there are."""
    of_forward = forward.starts[pair + 1] - forward.starts[pair]
    of_reverse = reverse.starts[pair + 1] - reverse.starts[pair]
    places = np.empty(of_forward + of_reverse, np.int64)  # those of both directions are there twice
    width, height, size = 0, 0, 0
    for direction in (forward, reverse):
        for k in range(direction.starts[pair], direction.starts[pair + 1]):
            source, target = direction.source[k], direction.target[k]
            places[size] = np.int64(target) * MOST_WORDS + source
            width, height, size = max(width, source + 1), max(height, target + 1), size + 1
    places.sort()
    size = 0
    for at in range(len(places)):
        if at == 0 or places[at] != places[at - 1]:
            places[size] = places[at]
            size += 1
    places = places[:size]
    marks, confidence = np.zeros(size, np.uint8), np.zeros(size)
    for direction, mark in ((forward, FORWARD), (reverse, REVERSE)):
        for k in range(direction.starts[pair], direction.starts[pair + 1]):
            at = _find(places, np.int64(direction.target[k]), np.int64(direction.source[k]))
            marks[at] |= mark
            confidence[at] += direction.confidence[k] / 2
    _choose_in_pair(places, marks, np.ones(width, np.uint8), np.ones(height, np.uint8), *rule)
    chosen = np.empty(size, np.int64)
    links = 0
    for at in range(size):
        if marks[at] & CHOSEN:
            chosen[links] = places[at] % MOST_WORDS * MOST_WORDS + places[at] // MOST_WORDS
            links += 1
    chosen[:links].sort()
    for link in range(links):
        source, target = chosen[link] // MOST_WORDS, chosen[link] % MOST_WORDS
        sources[link], targets[link] = source, target
        confidences[link] = confidence[_find(places, target, source)]
    return links


@njit(cache=True)
@no_type_check
def _choose_in_pair(places, marks, source_free, target_free, start, grow, finish):
    """Mark the chosen links of one pair, as in the pseudo-code of Koehn et al. 2005.

    A word that is not free never becomes free again, so the neighbours of a chosen link are looked at once.
    """
    for at in range(len(places)):
        directions = (marks[at] & FORWARD) // FORWARD + (marks[at] & REVERSE) // REVERSE
        if directions >= start:
            marks[at] |= CHOSEN
            source_free[places[at] % MOST_WORDS] = target_free[places[at] // MOST_WORDS] = False
    first = 0 if grow != NEVER else len(places)
    while first < len(places):
        begin, first = first, len(places)
        for at in range(begin, len(places)):
            if marks[at] & CHOSEN and not marks[at] & SEEN:
                marks[at] |= SEEN
                for target_step, source_step in NEIGHBOURS:
                    target, source = places[at] // MOST_WORDS + target_step, places[at] % MOST_WORDS + source_step
                    other = _find(places, target, source)
                    added = other >= 0 and _admit(marks, other, target, source, source_free, target_free, grow)
                    if added and other < at:  # the next round looks at its neighbours
                        first = min(first, other)
    if finish != NEVER:
        for direction in (FORWARD, REVERSE):
            for at in range(len(places)):
                if marks[at] & direction:
                    target, source = places[at] // MOST_WORDS, places[at] % MOST_WORDS
                    _admit(marks, at, target, source, source_free, target_free, finish)


@njit(cache=True)
@no_type_check
def _find(places, target, source):
    """Find a link in the sorted places of a pair; -1 if it is not there."""
    if target < 0 or not 0 <= source < MOST_WORDS:
        return -1
    place = target * MOST_WORDS + source
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low if low < len(places) and places[low] == place else -1


@njit(cache=True)
@no_type_check
def _admit(marks, at, target, source, source_free, target_free, condition):
    """Choose a link, if it is not yet chosen and its words are as free as the condition asks."""
    if marks[at] & CHOSEN:
        return False
    if source_free[source] + target_free[target] < condition:
        return False
    marks[at] |= CHOSEN
    source_free[source] = target_free[target] = False
    return True
