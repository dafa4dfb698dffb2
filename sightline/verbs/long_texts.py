"""Pairs of long texts, aligned in parts: cut where sentences match, and their links joined again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from sightline.alignment.links import Alignment
from sightline.alignment.sentences import Part, split_pair
from sightline.text.words import Source
from sightline.verbs.explaining import Pair

LONG = 30
"""Words of a side from which on a text is cut. Models read two short sentences well, and what they say together may
be divided otherwise in the translation."""


def cut_texts(pairs: Iterable[Pair], texts: deque[tuple[Pair, list[Part]]]) -> Iterator[Pair]:
    """Yield the parts of each pair as pairs; add each pair with its parts to `texts` before the first of them."""
    for pair in pairs:
        parts = _find_parts(pair)
        texts.append((pair, parts))
        if len(parts) == 1:
            yield pair
            continue
        assert pair.target is not None
        source, target = list_words(pair.source), list_words(pair.target)
        for part in parts:
            yield pair._replace(source=source[slice(*part.source)], target=target[slice(*part.target)], example=None)


def _find_parts(pair: Pair) -> list[Part]:
    source, target = list_words(pair.source), list_words(pair.target)
    if isinstance(pair.source, tuple) or not target or max(len(source), len(target)) <= LONG:
        return [Part((0, len(source)), (0, len(target)))]
    return split_pair(source, target)


def join_parts(pair: Pair, parts: Sequence[Part], found: Sequence[Alignment]) -> Alignment:
    """Join the alignments of a pair's parts into that of the pair."""
    source, target = list_words(pair.source), list_words(pair.target)
    links = {
        (i + part.source[0], j + part.target[0]): confidence
        for part, alignment in zip(parts, found, strict=True)
        for (i, j), confidence in alignment.confidences.items()
    }
    return Alignment(links, (), len(source), len(target)).with_words(source, target)


def list_words(text: Source | None) -> list[str]:
    """Return the words of a text as they are looked at."""
    return text.split() if isinstance(text, str) else [str(word) for word in text or ()]
