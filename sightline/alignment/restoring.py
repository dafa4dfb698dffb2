"""Inline markup put onto a translation: nothing is lost, what was balanced stays balanced, and words stay as they are.

`sightline.alignment.placing` finds where each element and mark belongs; here they are written among the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from sightline.alignment.links import Alignment
from sightline.alignment.marked_sentence import Sentence
from sightline.alignment.markup import Element, Mark, Markup, find_placeholders, strip_markup
from sightline.alignment.placing import Place, place_children


def restore_markup(markup: Markup, words: Sequence[str], alignment: Alignment) -> str:
    """Put the markup of a source around and between the words of its translation.

    >>> from sightline.alignment.markup import parse_markup
    >>> links = Alignment([(0, 0), (1, 2), (2, 1)])
    >>> restore_markup(parse_markup("The <b>black</b> cat"), ["El", "gato", "negro"], links)
    'El gato <b>negro</b>'
    """
    text = _join(_render(markup, Sentence(markup, words, alignment)))
    if strip_markup(text, markup.kept) == tuple(words):
        return text
    # Markup that touches a word or stands in it may make or break other markup (%s before letters): it stands apart.
    tokens = _render(markup, Sentence(markup, words, alignment, whole=True))
    return _join([token._replace(glued_left=False, glued_right=False) for token in tokens])


def link_placeholders(markup: Markup, words: Sequence[str], alignment: Alignment) -> Alignment:
    """Link each word with a placeholder or entity that is kept to the word that has the same one, and to no other."""
    sources, targets = (_places_of(markup.kept, side) for side in (markup.words, words))
    pairs = {
        (source, target)
        for mark, places in sources.items()
        for source, target in zip(places, targets.get(mark, []), strict=False)
    }
    taken = {source for source, _ in pairs}, {target for _, target in pairs}
    others = {
        link: confidence
        for link, confidence in alignment.confidences.items()
        if link[0] not in taken[0] and link[1] not in taken[1]
    }
    return Alignment(others | dict.fromkeys(pairs, 1.0), (), len(markup.words), len(words))


def _places_of(marks: frozenset[str], words: Sequence[str]) -> dict[str, list[int]]:
    """Return the numbers of the words that have each mark."""
    places: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        for mark in find_placeholders(word):
            if mark in marks:
                places.setdefault(mark, []).append(number)
    return places


class _Token(NamedTuple):
    """A word or part of one, or a piece of markup of the result.

    A part that does not begin its word has no space before it. Markup may have stood right beside something in the
    source; it then touches markup, and a word where it may.
    """

    kind: str
    text: str
    glued_left: bool = False
    glued_right: bool = False
    touches_left: bool = True
    touches_right: bool = True
    begins_word: bool = True


@dataclass
class _Rendering:
    """An element that is being written: what is in it, in the target's order, and how far it is."""

    element: Element
    stop: int
    position: int
    children: Iterator[tuple[Element | Mark, Place]]


def _render(markup: Markup, sentence: Sentence) -> list[_Token]:
    """List the target words and, among them, all markup; elements may be nested deeper than Python calls may be."""
    tokens: list[_Token] = []
    target = sentence.target
    begins = set(target.begins)

    def begin(element: Element, place: Place) -> _Rendering:
        return _Rendering(element, place.characters[1], place.characters[0], iter(_in_order(element, place, sentence)))

    def write_words(level: _Rendering, stop: int) -> None:
        while level.position < stop:
            start = level.position
            level.position = next((at for at in range(start + 1, stop) if at in begins), stop)
            text = "".join(target.characters[start : level.position])
            tokens.append(_Token("word", text, begins_word=start in begins))

    everything = Place((0, len(target.words)), (0, len(target.characters)))
    levels = [begin(Element("", "", 0, len(markup.words), markup.children), everything)]
    while levels:
        level = levels[-1]
        child, place = next(level.children, (None, Place((0, 0), (level.stop, level.stop))))
        write_words(level, place.characters[0])
        if isinstance(child, Mark):
            touches = _touches(child, place.words[0], sentence)
            tokens.append(_Token("mark", child.text, child.glued_left, child.glued_right, *touches))
        elif child is not None:
            level.position = max(level.position, place.characters[1])
            tokens.append(_Token("opening", child.opening, child.glued_left))
            levels.append(begin(child, place))
        else:
            levels.pop()
            if levels:
                tokens.append(_Token("closing", level.element.closing, False, level.element.glued_right))
    return tokens


def _in_order(element: Element, place: Place, sentence: Sentence) -> list[tuple[Element | Mark, Place]]:
    """List the children of an element and their places, in the order of the target.

    What covers nothing comes before what covers words; otherwise the order at one place is the source's.
    """
    placed = zip(element.children, place_children(element, place, sentence), strict=True)
    return sorted(placed, key=lambda one: (one[1].characters[0], one[1].characters[0] < one[1].characters[1]))


def _touches(mark: Mark, word: int, sentence: Sentence) -> tuple[bool, bool]:
    """Return whether a mark may touch the words beside it: a tag any, others the same as in the source."""
    if mark.text.startswith("<"):
        return True, True
    links = sentence.links
    return (
        mark.start > 0 and word - 1 in links[mark.start - 1],
        mark.start < len(links) and word in links[mark.start],
    )


def _join(tokens: Sequence[_Token]) -> str:
    """Write tokens with spaces: tags close to what they enclose, and never two words without a space between."""
    spaces = [_has_space(left, right) for left, right in pairwise(tokens)]
    words = [number for number, token in enumerate(tokens) if token.kind == "word"]
    for left, right in pairwise(words):
        if not tokens[right].begins_word:
            spaces[left:right] = [False] * (right - left)
        elif not any(spaces[left:right]):
            # After what touches the word before.
            stay = (i for i in range(left, right) if not (tokens[i + 1].kind == "closing" or tokens[i + 1].glued_left))
            spaces[next(stay, right - 1)] = True
    return "".join(token.text + " " * has_space for token, has_space in zip(tokens, [*spaces, False], strict=False))


def _has_space(left: _Token, right: _Token) -> bool:
    if left.kind == "opening" or right.kind == "closing":
        return False
    if left.kind == "word":
        return not (right.glued_left and right.touches_left)
    if right.kind == "word":
        return not (left.glued_right and left.touches_right)
    return "mark" in (left.kind, right.kind) and not (left.glued_right or right.glued_left)
