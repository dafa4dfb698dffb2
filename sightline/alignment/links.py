"""The alignment of one sentence pair: which source word goes with which target word, and how surely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType

from sightline.errors import InputError

Link = tuple[int, int]  # (source word, target word), both counted from 0


@dataclass(frozen=True)
class Alignment:
    """A set of word links with a confidence each; immutable.

    `confidences` takes a mapping from links to confidences, or plain links, which are then certain (1.0).
    A gold standard also has links that are possible but not sure; `possible` always includes the sure ones.
    Two alignments are equal when their links, confidences and possible links are; lengths are not compared,
    since most files do not tell them.

    >>> alignment = Alignment({(1, 0): 0.5, (0, 1): 0.9})
    >>> list(alignment), alignment.confidences[0, 1], (2, 2) in alignment
    ([(0, 1), (1, 0)], 0.9, False)
    """

    confidences: Mapping[Link, float]
    possible: frozenset[Link] = frozenset()
    source_length: int | None = field(default=None, compare=False)
    target_length: int | None = field(default=None, compare=False)

    def __init__(
        self,
        links: Mapping[Link, float] | Iterable[Link] = (),
        possible: Iterable[Link] = (),
        source_length: int | None = None,
        target_length: int | None = None,
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

    @property
    def links(self) -> frozenset[Link]:
        """Give the links without their confidences: in a gold standard, the sure ones."""
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
        return Alignment, (dict(self.confidences), self.possible, self.source_length, self.target_length)

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
        )

    def threshold(self, confidence: float) -> Alignment:
        """Keep the links that are at least this sure; possible links stay, unless they were dropped as sure."""
        kept = {link: value for link, value in self.confidences.items() if value >= confidence}
        merely_possible = self.possible - self.links
        return Alignment(kept, merely_possible, self.source_length, self.target_length)


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
