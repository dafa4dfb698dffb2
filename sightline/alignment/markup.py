"""Inline markup taken apart: the words of a text, and the elements and marks around and between them.

Elements (`<b>...</b>`) stand around words; marks (`<br/>`, `{0}`, `%s`, `{{name}}`, `&amp;`, comments, CDATA sections,
processing instructions, tags without a partner) stand by themselves. `sightline.alignment.restoring` puts them onto a
translation.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from sightline.alignment.scanning import NAME, find_markup
from sightline.alignment.word_parts import core_of, is_all_punctuation

TAG_NAME = re.compile(rf"</?({NAME})")
LETTER = re.compile(r"\w")
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
BLOCKS = {
    *("address", "article", "aside", "blockquote", "br", "caption", "dd", "div", "dl", "dt", "fieldset", "figcaption"),
    *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "img", "input", "li", "main"),
    *(
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "ul",
    ),
}  # no word goes on across one of these


class Edge(NamedTuple):
    """The punctuation at the edge of an element's first or last word that is in the element, and that is not."""

    inside: str = ""
    outside: str = ""


NO_PUNCTUATION = Edge()


class Part(NamedTuple):
    """The letters of one word that are marked: from `start` to before `stop` of all its characters."""

    start: int
    stop: int


@dataclass(frozen=True)
class Mark:
    """Markup that stands by itself before word `start` of the source; perhaps without a space beside it.

    `part` is where it stands in that word, if it is inside of it.
    """

    text: str
    start: int
    glued_left: bool = False
    glued_right: bool = False
    part: Part | None = None

    @property
    def stop(self) -> int:
        return self.start

    @property
    def ends_a_line(self) -> bool:
        return _name_and_kind(self.text)[0] in BLOCKS


@dataclass(frozen=True)
class Element:
    """A pair of tags around the source words from `start` to before `stop`, and what is in it.

    `part` is the part of its only word that it marks, if that is not all of it.
    """

    opening: str
    closing: str
    start: int
    stop: int
    children: tuple[Element | Mark, ...] = ()
    lead: Edge = NO_PUNCTUATION
    tail: Edge = NO_PUNCTUATION
    part: Part | None = None
    glued_left: bool = False
    glued_right: bool = False

    @property
    def is_block(self) -> bool:
        return _name_and_kind(self.opening)[0] in BLOCKS


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


def parse_markup(text: str, kept: frozenset[str] = frozenset(), spelled: frozenset[str] = frozenset()) -> Markup:
    """Take a text apart into words and markup.

    Placeholders and entities that are `kept` are letters like others. Entities that are `spelled` are no markup, but
    the characters that they stand for.

    >>> parse_markup("The <b>black</b> cat").children[0].start
    1
    """
    plain, pieces = _take_apart(text, kept, spelled)
    words = _Words(plain)
    root = _Open(_Piece("", 0, False, False), "")
    stack = [root]
    open_names: Counter[str] = Counter()

    def give_up(depth: int) -> None:
        """Turn the open tags from a depth on into marks: they have no partner."""
        for opened in stack[depth:]:
            stack[depth - 1].inside += [words.mark(opened.piece), *opened.inside]
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
            stack[-1].inside.append(words.element(opened, piece))
        else:
            stack[-1].inside.append(words.mark(piece))
    give_up(1)
    return Markup(tuple(plain.split()), tuple(root.inside), kept)


def parse_against(text: str, translation: str) -> Markup:
    """Take a text apart for a translation that is there, which keeps its placeholders and entities as they are.

    An entity that the translation lacks became something else there, and is no markup.

    >>> parse_against("{0} &amp; %s", "{0} y %s").words
    ('{0}', '&', '%s')
    """
    kept = frozenset(find_placeholders(translation))
    lost = frozenset(find_placeholders(text)) - kept
    return parse_markup(text, kept, frozenset(mark for mark in lost if mark.startswith("&")))


class _Words:
    """The words of a plain text: where each begins and ends, with its punctuation and without."""

    def __init__(self, plain: str) -> None:
        spans = [match.span() for match in re.finditer(r"\S+", plain)]
        self.plain = plain
        self.begins, self.ends = [begin for begin, _ in spans], [end for _, end in spans]
        cores = [core_of(plain[begin:end]) for begin, end in spans]
        self.are_punctuation = [is_all_punctuation(plain[begin:end]) for begin, end in spans]
        self.core_begins = [begin + core[0] for begin, core in zip(self.begins, cores, strict=True)]
        self.core_ends = [begin + core[1] for begin, core in zip(self.begins, cores, strict=True)]

    def mark(self, piece: _Piece) -> Mark:
        start = bisect_right(self.ends, piece.offset)
        part = None
        if start < len(self.ends) and self.core_begins[start] < piece.offset < self.core_ends[start]:
            part = Part(*[piece.offset - self.begins[start]] * 2)
        return Mark(piece.text, start, piece.glued_left, piece.glued_right, part)

    def element(self, opened: _Open, closing: _Piece) -> Element:
        opening, begin, end = opened.piece, opened.piece.offset, closing.offset
        start, stop = bisect_right(self.core_ends, begin), bisect_left(self.core_begins, end)
        if start >= stop:  # no letter in it: the word whose punctuation it is around, if any
            start = stop = bisect_right(self.ends, begin)
            if begin < end:
                stop = max(start, bisect_left(self.begins, end))
        inside = tuple(opened.inside)
        if start == stop:
            glued = opening.glued_left, closing.glued_right
            return Element(opening.text, closing.text, start, stop, inside, glued_left=glued[0], glued_right=glued[1])
        lead, tail = self._lead(start, begin), self._tail(stop - 1, end)
        part = None
        if stop - start == 1 and (begin > self.core_begins[start] or end < self.core_ends[start]):
            first = self.begins[start]
            part = Part(max(begin - first, 0), min(end, self.ends[start]) - first)
        return Element(opening.text, closing.text, start, stop, inside, lead, tail, part)

    def _lead(self, word: int, tag: int) -> Edge:
        first, core = self.begins[word], self.core_begins[word]
        at = min(max(tag, first), core)
        inside = self.plain[at:core] or self._punctuation(word)
        return Edge(inside, self._punctuation(word - 1) + self.plain[first:at])

    def _tail(self, word: int, tag: int) -> Edge:
        core, last = self.core_ends[word], self.ends[word]
        at = min(max(tag, core), last)
        inside = self.plain[core:at] or self._punctuation(word)
        return Edge(inside, self.plain[at:last] + self._punctuation(word + 1))

    def _punctuation(self, word: int) -> str:
        """Return a word that is nothing but punctuation, or nothing."""
        if 0 <= word < len(self.ends) and self.are_punctuation[word]:
            return self.plain[self.begins[word] : self.ends[word]]
        return ""


def _take_apart(text: str, kept: frozenset[str], spelled: frozenset[str] = frozenset()) -> tuple[str, list[_Piece]]:
    """Split a text into what is no markup, joined, and the pieces of markup.

    Where a tag that ends a line or a cell has letters on either side, a space keeps them apart.
    """
    parts: list[list[str]] = [[]]  # of what is before, between and after the pieces
    found: list[tuple[str, bool, bool]] = []
    position = 0
    for start, end in find_markup(text):
        piece = text[start:end]
        if piece in kept:
            continue
        parts[-1].append(text[position:start])
        position = end
        if piece in spelled:
            parts[-1].append(_spell(piece))
        else:
            glued_left = start > 0 and not text[start - 1].isspace()
            found.append((piece, glued_left, end < len(text) and not text[end].isspace()))
            parts.append([])
    parts[-1].append(text[position:])
    texts = ["".join(part) for part in parts]
    letters_follow = _letters_follow(texts)
    plain: list[str] = []
    pieces: list[_Piece] = []
    offset, letters_precede = 0, False
    for number, between in enumerate(texts):
        plain.append(between)
        offset += len(between)
        end_of_word = "" if between[-1:].isspace() else (between.split() or [""])[-1]
        letters_precede = LETTER.search(end_of_word) is not None or (letters_precede and end_of_word == between)
        if number < len(found):
            pieces.append(_Piece(found[number][0], offset, *found[number][1:]))
            if letters_precede and letters_follow[number + 1] and _name_and_kind(found[number][0])[0] in BLOCKS:
                plain.append(" ")
                offset += 1
                letters_precede = False
    return "".join(plain), pieces


def _letters_follow(texts: list[str]) -> list[bool]:
    """Return for each text whether it, with those after it, has letters before any space."""
    answers = [False]
    for text in reversed(texts):
        start_of_word = "" if text[:1].isspace() else (text.split(None, 1) or [""])[0]
        answers.append(LETTER.search(start_of_word) is not None or (start_of_word == text and answers[-1]))
    return answers[:0:-1]


def _spell(entity: str) -> str:
    """Return the character of an entity; words do not go on across a dash."""
    character = html.unescape(entity)
    return character + " " if character in "—–…" else character


def _name_and_kind(piece: str) -> tuple[str, str]:
    match = TAG_NAME.match(piece)
    if match is None:
        return "", "mark"
    name = match[1].lower()
    if piece.endswith("/>") or name in VOID:
        return name, "mark"
    return name, "closing" if piece.startswith("</") else "opening"
