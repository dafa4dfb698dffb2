"""Inline markup carried over to a translation by its word alignment.

A text is split into plain words and markup: elements (`<b>...</b>`) around words, and marks (`<br/>`, `{0}`, `%s`,
`{{name}}`, `&amp;`, comments, CDATA, processing instructions, tags without a partner) between them. In the translation
an element covers the words that its own words are aligned to, within the element around it; elements that stand side by
side stay so: where their words mingle, each keeps the stretch where it has most. What is aligned to nothing stays
beside its neighbours. A tag that was closed before the punctuation of its last word is so in the translation. Nothing
is lost, what was balanced stays balanced, and without its markup the result is the translation, word for word.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import NamedTuple

from sightline.alignment.links import Alignment
from sightline.alignment.scanning import NAME, find_markup

ENDED_WORD = re.compile(r"(.*\w)([^\w\s]+)")
MARKS = re.compile(r"\W*+")
TAG_NAME = re.compile(rf"</?({NAME})")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass(frozen=True)
class Mark:
    """Markup that stands by itself before word `start` of the source; perhaps without a space beside it."""

    text: str
    start: int
    glued_left: bool = False
    glued_right: bool = False

    @property
    def stop(self) -> int:
        return self.start


@dataclass(frozen=True)
class Element:
    """A pair of tags around the source words from `start` to before `stop`, and what is in it.

    `leaves_ending` is whether the punctuation that ends its last word stands behind it.
    """

    opening: str
    closing: str
    start: int
    stop: int
    children: tuple[Element | Mark, ...] = ()
    leaves_ending: bool = False


@dataclass(frozen=True)
class Markup:
    """The words of a text and the markup in it.

    `kept` are placeholders and entities that stay in their words.
    """

    words: tuple[str, ...]
    children: tuple[Element | Mark, ...] = ()
    kept: frozenset[str] = frozenset()


def strip_markup(text: str, kept: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the words of a text without its markup, but with the placeholders and entities that are kept."""
    return tuple(_take_apart(text, kept)[0].split())


def find_placeholders(text: str) -> list[str]:
    """List the placeholders and entities of a text, in order.

    >>> find_placeholders("<b>{0}</b> &amp; %s")
    ['{0}', '&amp;', '%s']
    """
    marks = (text[start:end] for start, end in find_markup(text))
    return [mark for mark in marks if not mark.startswith("<")]


# Taking apart


class _Piece(NamedTuple):
    """A piece of markup, its offset in the plain text, and whether something stands right beside it."""

    text: str
    offset: int
    glued_left: bool
    glued_right: bool


@dataclass
class _Open:
    """A tag that waits for its partner, and what was found since."""

    piece: _Piece
    name: str
    inside: list[Element | Mark] = field(default_factory=list)


def parse_markup(text: str, kept: frozenset[str] = frozenset()) -> Markup:
    """Take a text apart into words and markup; a tag inside a word moves to the word's edge.

    Placeholders and entities that are `kept` are letters like others.

    >>> parse_markup("The <b>black</b> cat").children
    (Element(opening='<b>', closing='</b>', start=1, stop=2, children=(), leaves_ending=False),)
    """
    plain, pieces = _take_apart(text, kept)
    spans = [match.span() for match in re.finditer(r"\S+", plain)]
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    endings = [_ending_begins(plain, begin, end) for begin, end in spans]
    root = _Open(_Piece("", 0, False, False), "")
    stack = [root]
    open_names: Counter[str] = Counter()

    def mark(piece: _Piece) -> Mark:
        return Mark(piece.text, bisect_right(ends, piece.offset), piece.glued_left, piece.glued_right)

    def give_up(depth: int) -> None:
        """Turn the open tags from a depth on into marks: they have no partner."""
        for opened in stack[depth:]:
            stack[depth - 1].inside += [mark(opened.piece), *opened.inside]
            open_names[opened.name] -= 1
        del stack[depth:]

    for piece in pieces:
        name, kind = _name_and_kind(piece.text)
        if kind == "opening":
            stack.append(_Open(piece, name))
            open_names[name] += 1
        elif kind == "closing" and open_names[name]:
            give_up(next(depth for depth in range(len(stack), 0, -1) if stack[depth - 1].name == name))
            opened = stack.pop()
            open_names[name] -= 1
            start = stop = bisect_right(ends, opened.piece.offset)
            if opened.piece.offset < piece.offset:
                stop = max(start, bisect_left(begins, piece.offset))
            behind = bisect_right(ends, piece.offset)
            leaves_ending = start < stop and behind < len(endings) and endings[behind] <= piece.offset
            element = Element(opened.piece.text, piece.text, start, stop, tuple(opened.inside), leaves_ending)
            stack[-1].inside.append(element)
        else:
            stack[-1].inside.append(mark(piece))
    give_up(1)
    return Markup(tuple(plain.split()), tuple(root.inside), kept)


def _ending_begins(plain: str, begin: int, end: int) -> int:
    """Find where the punctuation that ends a word begins."""
    marks = MARKS.match(plain[begin:end][::-1])
    assert marks is not None
    return end - marks.end()


def _take_apart(text: str, kept: frozenset[str]) -> tuple[str, list[_Piece]]:
    """Split a text into what is no markup, joined, and the pieces of markup."""
    plain: list[str] = []
    pieces: list[_Piece] = []
    position = offset = 0
    for start, end in find_markup(text):
        if text[start:end] in kept:
            continue
        plain.append(text[position:start])
        offset += start - position
        glued_left = start > 0 and not text[start - 1].isspace()
        glued_right = end < len(text) and not text[end].isspace()
        pieces.append(_Piece(text[start:end], offset, glued_left, glued_right))
        position = end
    return "".join([*plain, text[position:]]), pieces


def _name_and_kind(piece: str) -> tuple[str, str]:
    match = TAG_NAME.match(piece)
    if match is None:
        return "", "mark"
    name = match[1].lower()
    if piece.endswith("/>") or name in VOID:
        return name, "mark"
    return name, "closing" if piece.startswith("</") else "opening"


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


# Putting together

Span = tuple[int, int]  # target words from the first to before the second
Links = list[dict[int, float]]  # the confidence of each link, by source word and target word


def restore_markup(markup: Markup, words: Sequence[str], alignment: Alignment) -> str:
    """Put the markup of a source around and between the words of its translation.

    >>> links = Alignment([(0, 0), (1, 2), (2, 1)])
    >>> restore_markup(parse_markup("The <b>black</b> cat"), ["El", "gato", "negro"], links)
    'El gato <b>negro</b>'
    """
    links: Links = [{} for _ in markup.words]
    for (source, target), confidence in alignment.confidences.items():
        links[source][target] = confidence
    root = Element("", "", 0, len(markup.words), markup.children)
    tokens = _render(root, words, links)
    text = _join(tokens)
    if strip_markup(text, markup.kept) == tuple(words):
        return text
    # A mark that touches another word may no longer be one (%s before letters): a space keeps them apart.
    return _join([_Token(token.kind, token.text) for token in tokens])


@dataclass
class _Rendering:
    """An element that is being written: what is in it, in the target's order, and how far it is."""

    element: Element
    stop: int
    position: int
    begun: int  # how many tokens there were when it was opened
    children: Iterator[tuple[Element | Mark, Span]]


def _render(root: Element, words: Sequence[str], links: Links) -> list[_Token]:
    """List the target words and, among them, all markup; elements may be nested deeper than Python calls may be."""
    tokens: list[_Token] = []

    def begin(element: Element, span: Span) -> _Rendering:
        return _Rendering(element, span[1], span[0], len(tokens), iter(_in_order(element, span, links)))

    def write_words(level: _Rendering, stop: int) -> None:
        tokens.extend(_Token("word", word) for word in words[level.position : stop])
        level.position = max(level.position, stop)

    levels = [begin(root, (0, len(words)))]
    while levels:
        level = levels[-1]
        child, (start, stop) = next(level.children, (None, (level.stop, level.stop)))
        write_words(level, start)
        if isinstance(child, Mark):
            left_word = child.start > 0 and start - 1 in links[child.start - 1]
            right_word = child.start < len(links) and start in links[child.start]
            tokens.append(_Token("mark", child.text, child.glued_left, child.glued_right, left_word, right_word))
        elif child is not None:
            level.position = max(level.position, stop)
            tokens.append(_Token("opening", child.opening))
            levels.append(begin(child, (start, stop)))
        else:
            levels.pop()
            if levels:
                is_empty = len(tokens) == level.begun
                ending = _take_ending(tokens) if level.element.leaves_ending and not is_empty else []
                tokens += [_Token("closing", level.element.closing), *ending]
    return tokens


def _in_order(element: Element, span: Span, links: Links) -> list[tuple[Element | Mark, Span]]:
    """List the children of an element and their places, in the order of the target.

    What covers nothing comes before what covers words; otherwise the order at one place is the source's.
    """
    placed = zip(element.children, _place(element, span, links), strict=True)
    return sorted(placed, key=lambda one: (one[1][0], one[1][0] < one[1][1]))


def _take_ending(tokens: list[_Token]) -> list[_Token]:
    """Take the punctuation off the last of some tokens, if it is a word that ends with any."""
    if tokens[-1].kind == "ending":
        return [tokens.pop()]
    if tokens[-1].kind == "word" and (parts := ENDED_WORD.fullmatch(tokens[-1].text)):
        tokens[-1] = _Token("word", parts[1])
        return [_Token("ending", parts[2])]
    return []


def _place(element: Element, span: Span, links: Links) -> list[Span]:
    """Find the target words of each child of an element, within the span of the element."""
    weights = [_weights(child, span, links) for child in element.children]
    greatest: dict[int, float] = {}
    for own in weights:
        for target, weight in own.items():
            greatest[target] = max(greatest.get(target, 0.0), weight)
    found: dict[int, Span] = {}
    taken: set[int] = set()
    # Those with most links choose first; each takes the stretch, not broken by what others have, where it has most.
    for number in sorted(range(len(weights)), key=lambda number: -sum(weights[number].values())):
        own = weights[number]
        runs: list[list[int]] = [[]]
        for target in range(min(own, default=0), max(own, default=-1) + 1):
            if target in taken or greatest.get(target, 0.0) > own.get(target, 0.0):
                runs.append([])
            elif target in own:
                runs[-1].append(target)
        best = max(runs, key=lambda run: sum(own[target] for target in run))
        if best:
            found[number] = min(best), max(best) + 1
            taken.update(range(*found[number]))
    gaps = _gaps(found, span)
    for number, child in enumerate(element.children):
        if number not in found:
            wanted = _beside(child, element, span, links)
            nearest = min((min(max(wanted, start), stop) for start, stop in gaps), key=lambda at: abs(at - wanted))
            found[number] = nearest, nearest
    return [found[number] for number in range(len(element.children))]


def _weights(child: Element | Mark, span: Span, links: Links) -> dict[int, float]:
    """Add up, for each target word of a span, the confidence of its links to a child's words."""
    total: dict[int, float] = {}
    for of_word in links[child.start : child.stop]:
        for target, confidence in of_word.items():
            if span[0] <= target < span[1]:
                total[target] = total.get(target, 0.0) + confidence
    return total


def _gaps(taken: Mapping[int, Span], span: Span) -> list[Span]:
    """List what is left of a span between those that are taken; it may be no word, but a place."""
    edges = [span[0], *(edge for one in sorted(taken.values()) for edge in one), span[1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _beside(child: Element | Mark, element: Element, span: Span, links: Links) -> int:
    """Find the place of something that covers no word: at the same end, or beside the same word, as in the source."""
    if child.start == element.start:
        return span[0]
    if child.stop == element.stop:
        return span[1]
    before = ((child.start - 1 - i, 1) for i in range(child.start - element.start))
    behind = ((child.stop + i, 0) for i in range(element.stop - child.stop))
    belongs_behind = isinstance(child, Mark) and child.glued_right and not child.glued_left
    for pair in zip_longest(*((behind, before) if belongs_behind else (before, behind))):
        for source, after in filter(None, pair):
            targets = [target for target in links[source] if span[0] <= target < span[1]]
            if targets:
                return max(targets) + 1 if after else min(targets)
    return span[0]


class _Token(NamedTuple):
    """A word, the punctuation that ends one behind a tag, or a piece of markup of the result.

    A mark may have stood right beside something in the source, and the word beside it may be that of the source.
    """

    kind: str
    text: str
    glued_left: bool = False
    glued_right: bool = False
    same_word_left: bool = False
    same_word_right: bool = False


def _join(tokens: Sequence[_Token]) -> str:
    """Write tokens with spaces: tags close to what they enclose, and never two words without a space between."""
    spaces = [_has_space(left, right) for left, right in pairwise(tokens)]
    words = [number for number, token in enumerate(tokens) if token.kind == "word"]
    for left, right in pairwise(words):
        if not any(spaces[left:right]):
            at = next((i for i in range(left, right) if tokens[i + 1].kind != "closing"), left)
            spaces[at] = True
    return "".join(token.text + " " * has_space for token, has_space in zip(tokens, [*spaces, False], strict=False))


def _has_space(left: _Token, right: _Token) -> bool:
    if left.kind == "opening" or right.kind in ("closing", "ending"):
        return False
    if left.kind in ("word", "ending") or right.kind == "word":
        glued = (right.glued_left and right.same_word_left) or (left.glued_right and left.same_word_right)
        return not glued
    return "mark" in (left.kind, right.kind) and not (left.glued_right or right.glued_left)
