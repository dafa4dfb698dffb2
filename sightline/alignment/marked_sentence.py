"""A sentence with markup beside its translation: words, characters, links, and where sentences and clauses end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from sightline.alignment.links import Alignment
from sightline.alignment.markup import Element, Markup
from sightline.alignment.word_parts import PARTNERS, boundary_after, core_of, find_core, split_characters

Span = tuple[int, int]  # target words, or characters, from the first to before the second


class Target:
    """The words of a translation as characters; with `whole`, each word counts as one."""

    def __init__(self, words: Sequence[str], whole: bool) -> None:
        split = [[word] if whole else split_characters(word) for word in words]
        cores = [find_core(characters) for characters in split]
        self.words = words
        self.offsets = [[0, *accumulate(map(len, characters))] for characters in split]
        self.characters = [character for characters in split for character in characters]
        self.begins = [0, *accumulate(map(len, split))]
        self.core_begins = [begin + core[0] for begin, core in zip(self.begins, cores, strict=False)]
        self.core_ends = [begin + core[1] for begin, core in zip(self.begins, cores, strict=False)]
        self.partners = _pair_up_signs(self.characters)


def _pair_up_signs(characters: Sequence[str]) -> dict[int, int]:
    """Find for each sign that opens a question or exclamation the one that closes it."""
    partners: dict[int, int] = {}
    waiting: dict[str, list[int]] = {closing: [] for closing in PARTNERS.values()}
    for number, character in enumerate(characters):
        if character in PARTNERS:
            waiting[PARTNERS[character]].append(number)
        elif waiting.get(character):
            partners[waiting[character].pop()] = number
    return partners


class Sentence:
    """A source with markup, its translation, and the links between them."""

    def __init__(self, markup: Markup, words: Sequence[str], alignment: Alignment, whole: bool = False) -> None:
        self.source = markup.words
        self.target = Target(words, whole)
        self.links: list[dict[int, float]] = [{} for _ in markup.words]
        for (source, target), confidence in alignment.confidences.items():
            self.links[source][target] = confidence
        self.linked_sources = [source for source, own in enumerate(self.links) if own]
        self.linked_targets = {target for own in self.links for target in own}
        self.boundaries = [_boundaries(side) for side in (self.source, words)]
        self.cores = [[core_of(word) for word in side] for side in (self.source, words)]
        self.same_words: dict[str, int] = {}  # the first word with these letters
        for number, (word, (start, stop)) in enumerate(zip(words, self.cores[1], strict=True)):
            self.same_words.setdefault(word[start:stop], number)

    def weigh(self, start: int, stop: int, span: Span) -> dict[int, float]:
        """Add up, for each target word of a span, the confidence of its links to some source words."""
        total: dict[int, float] = {}
        for own in self.links[start:stop]:
            for target, confidence in own.items():
                if span[0] <= target < span[1]:
                    total[target] = total.get(target, 0.0) + confidence
        return total

    def linked_beside(self, start: int, stop: int, element: Element, span: Span) -> list[tuple[int, int, int]]:
        """Find the linked words before and after some words of an element: how far away, and their target words."""
        found = []
        number = bisect_left(self.linked_sources, start)
        if number and self.linked_sources[number - 1] >= element.start:
            before = self.linked_sources[number - 1]
            targets = [target for target in self.links[before] if span[0] <= target < span[1]]
            found += [(start - 1 - before, -1, max(targets))] if targets else []
        number = bisect_left(self.linked_sources, stop)
        if number < len(self.linked_sources) and self.linked_sources[number] < element.stop:
            after = self.linked_sources[number]
            targets = [target for target in self.links[after] if span[0] <= target < span[1]]
            found += [(after - stop, 1, min(targets))] if targets else []
        return found


def _boundaries(words: Sequence[str]) -> dict[str, list[int]]:
    """List the words before which a sentence or a part of one has ended."""
    found: dict[str, list[int]] = {"end": [], "pause": []}
    for number, word in enumerate(words, 1):
        if kind := boundary_after(word):
            found[kind].append(number)
    return found
