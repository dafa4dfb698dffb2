"""The alignment of one sentence pair: which source word goes with which target word, and with what confidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

Link = tuple[int, int]  # (source word, target word), both counted from 0


@dataclass(frozen=True)
class Alignment:
    """A set of word links with a confidence each; immutable.

    `confidences` takes a mapping from links to confidences, or plain links, which are then certain (1.0).
    A gold standard also has links that are possible but not sure; `possible` always includes the sure ones.
    Two alignments are equal when their links, confidences and possible links are; lengths and words are not compared,
    since most files do not have them. Words, where they are known (`with_words`), are only for looking at it.

    >>> alignment = Alignment({(1, 0): 0.5, (0, 1): 0.9})
    >>> list(alignment), alignment.confidences[0, 1], (2, 2) in alignment
    ([(0, 1), (1, 0)], 0.9, False)
    """

    confidences: Mapping[Link, float]
    possible: frozenset[Link] = frozenset()
    source_length: int | None = field(default=None, compare=False)
    target_length: int | None = field(default=None, compare=False)
    source_words: tuple[str, ...] = field(default=(), compare=False)
    target_words: tuple[str, ...] = field(default=(), compare=False)

    def __init__(
        self,
        links: Mapping[Link, float] | Iterable[Link] = (),
        possible: Iterable[Link] = (),
        source_length: int | None = None,
        target_length: int | None = None,
        source_words: Sequence[str] = (),
        target_words: Sequence[str] = (),
    ) -> None:
        if isinstance(links, Mapping):
            confidences = {link: links[link] for link in sorted(links)}
        else:
            confidences = dict.fromkeys(sorted(links), 1.0)
        sources = inf if source_length is None else source_length
        targets = inf if target_length is None else target_length
        for (source, target), confidence in confidences.items():
            if not (0 <= source < sources and 0 <= target < targets and 0.0 <= confidence <= 1.0):
                raise _bad_link(source, target, confidence, source_length, target_length)
        everything = frozenset(confidences).union(possible)
        if len(everything) > len(confidences):
            for source, target in everything:
                if not (0 <= source < sources and 0 <= target < targets):
                    raise _bad_link(source, target, 1.0, source_length, target_length)
        object.__setattr__(self, "confidences", MappingProxyType(confidences))
        object.__setattr__(self, "possible", everything)
        object.__setattr__(self, "source_length", source_length)
        object.__setattr__(self, "target_length", target_length)
        object.__setattr__(self, "source_words", tuple(source_words))
        object.__setattr__(self, "target_words", tuple(target_words))

    @property
    def links(self) -> frozenset[Link]:
        """Return the links without their confidences: in a gold standard, the sure ones."""
        return frozenset(self.confidences)

    def __iter__(self) -> Iterator[Link]:
        return iter(self.confidences)

    def __len__(self) -> int:
        return len(self.confidences)

    def __contains__(self, link: object) -> bool:
        return link in self.confidences

    def __hash__(self) -> int:
        return hash((frozenset(self.confidences.items()), self.possible))

    def __reduce__(self) -> tuple[object, ...]:  # a mapping proxy cannot be pickled
        return Alignment, (dict(self.confidences), self.possible, *self._sides())

    def __repr__(self) -> str:
        links = " ".join(
            f"{source}-{target}" + ("" if confidence == 1.0 else f":{confidence:.2f}")
            for (source, target), confidence in self.confidences.items()
        )
        extra = " ".join(f"{source}p{target}" for source, target in sorted(self.possible - self.links))
        return f"Alignment({' '.join(filter(None, (links, extra)))})"

    def flipped(self) -> Alignment:
        """Exchange source and target."""
        return Alignment(
            {(target, source): confidence for (source, target), confidence in self.confidences.items()},
            [(target, source) for source, target in self.possible],
            self.target_length,
            self.source_length,
            self.target_words,
            self.source_words,
        )

    def threshold(self, confidence: float) -> Alignment:
        """Keep the links that are at least this sure; possible links stay, unless they were dropped as sure."""
        kept = {link: value for link, value in self.confidences.items() if value >= confidence}
        merely_possible = self.possible - self.links
        return Alignment(kept, merely_possible, *self._sides())

    def with_words(self, source: str | Sequence[str], target: str | Sequence[str]) -> Alignment:
        """Add the words of both sides, given as texts or as lists of words, so that pictures show them.

        >>> Alignment([(0, 0), (1, 1)]).with_words("the cat", "el gato").pairs()
        ['the–el', 'cat–gato']
        """
        source_words = source.split() if isinstance(source, str) else source
        target_words = target.split() if isinstance(target, str) else target
        confidences = dict(self.confidences)
        return Alignment(confidences, self.possible, len(source_words), len(target_words), source_words, target_words)

    def pairs(self, links: Iterable[Link] | None = None) -> list[str]:
        """List the linked words, `cat–gato`, of these links or of all sure ones; without words, their numbers."""
        names = self._names()
        return [f"{names[0][source]}–{names[1][target]}" for source, target in sorted(self if links is None else links)]

    def show(self, console: Console | None = None) -> None:
        """Print the links to the terminal as a matrix, and word by word."""
        from sightline.view.terminal import show

        show(self._picture(), console)

    def to_html(self) -> str:
        """Return a self-contained page."""
        from sightline.view.html import render_page

        return render_page([self._picture()], title="Sightline: alignment")

    def to_svg(self, view: str = "links") -> str:
        """Return a vector graphic: the `links` between the two lines, or the `heat_map`."""
        from sightline.view.svg import render_svg

        return render_svg(self._picture(), view)

    def _repr_html_(self) -> str:
        from sightline.view.html import render_fragment

        return render_fragment(self._picture())

    def _sides(self) -> tuple[Any, ...]:
        return self.source_length, self.target_length, self.source_words, self.target_words

    def _names(self) -> tuple[list[str], list[str]]:
        """Return what is written for the words of each side: the words, or their numbers."""
        sides = ((0, self.source_length, self.source_words), (1, self.target_length, self.target_words))
        names = []
        for side, length, words in sides:
            count = length if length is not None else max((link[side] + 1 for link in self.possible), default=0)
            names.append(list(words) or [str(number) for number in range(count)])
        return names[0], names[1]

    def _picture(self) -> dict[str, Any]:
        """Return what views draw: confidences as scores."""
        source, target = self._names()
        scores = np.zeros((len(target), len(source)), np.float32)
        for (source_word, target_word), confidence in self.confidences.items():
            scores[target_word, source_word] = confidence
        sides = {"source": source, "target": target, "prefix": []}
        plain = {
            side: {"tokens": names, "words": names, "word_ids": list(range(len(names)))}
            for side, names in sides.items()
        }
        return {"method": "alignment", "settings": {}, "axes": [], "scores": scores, **plain}


def draw_page(alignments: Iterable[Alignment]) -> str:
    """Return a self-contained page with the pictures of several alignments."""
    from sightline.view.html import render_page

    return render_page([alignment._picture() for alignment in alignments], title="Sightline: alignments")


def _bad_link(
    source: int, target: int, confidence: float, source_length: int | None, target_length: int | None
) -> InputError:
    if not 0.0 <= confidence <= 1.0:
        return InputError(f"The link {source}-{target} has the confidence {confidence}: it must lie in [0, 1].")
    if source < 0 or target < 0:
        return InputError(f"The link {source}-{target} has a negative index: words are counted from 0.")
    return InputError(
        f"The link {source}-{target} lies outside the sentences of {source_length} and {target_length} words, "
        "counted from 0."
    )
