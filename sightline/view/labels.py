"""Text of tokens that is safe and readable wherever it is drawn.

A token can be anything: an escape sequence, a line break, half a character, a lone accent. What a reader could not
see, or what could act on a terminal or a page, is shown as its escape (`\\x1b`, `\\u202e`), never passed through.
"""

import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len

JOINERS = "\u200c\u200d"  # they shape Persian, Indic scripts and emoji, so they stay inside a token
OPEN_BOX = "␣"
DOTTED_CIRCLE = "◌"
ELLIPSIS = "…"


class Label(NamedTuple):
    """What is written for one position, and whether the position is special (begin, end, language)."""

    text: str
    special: bool


def visible(token: str) -> str:
    """Return the text to show for a token: every character of it can be seen, and none of it acts."""
    if not token:
        return "∅"
    inner = token.strip(" ")
    before = len(token) - len(token.lstrip(" "))
    after = len(token) - before - len(inner)
    joined = inner.rstrip(JOINERS)
    shown = "".join(_escape(character) for character in joined)
    # At the end a joiner has nothing of the token to join, and would reach for what is drawn after it.
    shown += inner[len(joined) :].encode("unicode_escape").decode("ascii")
    if joined and (joined[0] in JOINERS or unicodedata.category(joined[0]).startswith("M")):
        shown = DOTTED_CIRCLE + shown  # else an accent would land on whatever is drawn before it
    return OPEN_BOX * before + shown + OPEN_BOX * after


def _escape(character: str) -> str:
    category = unicodedata.category(character)
    never_a_character = ord(character) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(character) <= 0xFDEF
    invisible = (
        category in ("Cc", "Cs", "Zl", "Zp")
        or (category == "Cf" and character not in JOINERS)
        or (category == "Zs" and character != " ")
    )
    if invisible or never_a_character:
        return character.encode("unicode_escape").decode("ascii")
    return character


def clusters(text: str) -> list[str]:
    """Split text into what takes up a place of its own: a character with the marks that sit on it."""
    found: list[str] = []
    for character in text:
        if found and (cell_len(character) == 0 or found[-1].endswith("\u200d")):
            found[-1] += character
        else:
            found.append(character)
    return found


def clip(text: str, cells: int) -> str:
    """Shorten text to a number of terminal cells; an ellipsis says that it was shortened."""
    if cell_len(text) <= cells:
        return text
    kept = ""
    for cluster in clusters(text):
        if cell_len(kept + cluster) > cells - 1:
            break
        kept += cluster
    return kept + ELLIPSIS


def right_to_left(labels: Iterable[Label]) -> bool:
    """Return whether most letters of a line belong to a script that is read from right to left."""
    directions = [unicodedata.bidirectional(character) for label in labels for character in label.text]
    return sum(d in ("R", "AL") for d in directions) > sum(d == "L" for d in directions)
