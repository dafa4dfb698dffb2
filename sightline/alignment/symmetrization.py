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
from itertools import chain, islice, pairwise, zip_longest
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float64, Int64

from sightline.alignment.formats import Path, read_alignments
from sightline.alignment.links import Alignment
from sightline.compilation import njit
from sightline.errors import InputError, unknown_name
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
    return next(_join([(forward, reverse)], _rule(rule)))


def symmetrize_all(forward: Iterable[Alignment], reverse: Iterable[Alignment], rule: str) -> Iterator[Alignment]:
    """Join the alignments of many pairs in two directions, both as (source, target) links, in order, as they come."""
    settings = _rule(rule)
    for chunk in _chunks(_paired(forward, reverse)):
        yield from _join(chunk, settings)


def symmetrize_files(
    forward: Path,
    reverse: Path,
    rule: str,
    *,
    format: str = "pharaoh",
    base: int | None = None,
    reverse_target_first: bool = True,
) -> Iterator[Alignment]:
    """Join the alignments of two files.

    The reverse file lists target-source links, unless said otherwise (fast_align and eflomal write source-target
    links in both directions). Files of different length are refused, and so is an order that the links belie.
    """
    settings = _rule(rule)
    pairs = _paired(
        read_alignments(forward, format, base),
        read_alignments(reverse, format, base, target_first=reverse_target_first),
    )
    for number, chunk in enumerate(_chunks(pairs)):
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


def _refuse_flipped(pairs: list[tuple[Alignment, Alignment]], reverse_name: Path) -> None:
    as_said = sum(len(forward.links & reverse.links) for forward, reverse in pairs)
    flipped = sum(len(forward.links & reverse.flipped().links) for forward, reverse in pairs)
    if flipped > 2 * as_said + len(pairs):  # far more than short, monotone sentences would share by chance
        raise InputError(
            f"{reverse_name}: in the first {len(pairs)} sentences it shares {as_said} links with the other direction, "
            f"but {flipped} with source and target exchanged: say that its links are in the other order."
        )


def _join(pairs: list[tuple[Alignment, Alignment]], rule: Rule) -> Iterator[Alignment]:
    forward, reverse = _flatten([one for one, _ in pairs]), _flatten([other for _, other in pairs])
    places, back = np.unique(np.concatenate([forward.places, reverse.places]), return_inverse=True)
    marks = np.zeros(len(places), np.uint8)
    confidences = np.zeros(len(places))
    halves = np.split(back, [len(forward.places)])
    for direction, mark, at in zip((forward, reverse), (FORWARD, REVERSE), halves, strict=True):
        marks[at] |= mark
        confidences[at] += direction.confidences / 2
    _choose(places, marks, *rule)
    chosen = np.flatnonzero(marks & CHOSEN)
    pair, target, source = np.unravel_index(places[chosen], (len(pairs), MOST_WORDS, MOST_WORDS))
    order = np.lexsort((target, source, pair))
    starts = np.searchsorted(pair, np.arange(len(pairs) + 1)).tolist()
    links = list(zip(source[order].tolist(), target[order].tolist(), strict=True))
    values = confidences[chosen][order].tolist()
    for (one, other), (begin, end) in zip(pairs, pairwise(starts), strict=True):
        yield Alignment(
            dict(zip(links[begin:end], values[begin:end], strict=True)),
            source_length=one.source_length if other.source_length is None else other.source_length,
            target_length=one.target_length if other.target_length is None else other.target_length,
        )


class FlatLinks(NamedTuple):
    """The links of many alignments: places that grow with the alignment, then the target word, then the source word."""

    places: Int64[np.ndarray, " link"]
    confidences: Float64[np.ndarray, " link"]


def _flatten(alignments: list[Alignment]) -> FlatLinks:
    counts = [len(alignment) for alignment in alignments]
    size = sum(counts)
    indices = chain.from_iterable(chain.from_iterable(alignments))
    links = np.fromiter(indices, np.int64, 2 * size).reshape(-1, 2)
    if links.size and links.max() >= MOST_WORDS:
        raise InputError(f"A link has the word {links.max()}: sentences may have {MOST_WORDS:,} words at most.")
    values = chain.from_iterable(alignment.confidences.values() for alignment in alignments)
    numbers = np.repeat(np.arange(len(alignments)), counts)
    places = (numbers * MOST_WORDS + links[:, 1]) * MOST_WORDS + links[:, 0]
    return FlatLinks(places, np.fromiter(values, np.float64, size))


@njit(cache=True)
@no_type_check
def _choose(places, marks, start, grow, finish):
    """Mark the chosen links of every pair."""
    source_free = np.ones(MOST_WORDS, np.bool_)
    target_free = np.ones(MOST_WORDS, np.bool_)
    begin = 0
    while begin < len(places):
        end = begin + 1
        while end < len(places) and places[end] // MOST_WORDS**2 == places[begin] // MOST_WORDS**2:
            end += 1
        _choose_in_pair(
            places[begin:end] % MOST_WORDS**2, marks[begin:end], source_free, target_free, start, grow, finish
        )
        for at in range(begin, end):
            source_free[places[at] % MOST_WORDS] = target_free[places[at] // MOST_WORDS % MOST_WORDS] = True
        begin = end


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
