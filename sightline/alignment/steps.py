"""What work on files tells whoever shows how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

from sightline.files import Position

LINES_AT_ONCE = 1000
"""Lines that are read before the count goes on."""

Item = TypeVar("Item")


@runtime_checkable
class Steps(Protocol):
    """What shows how far the work is."""

    def begin(self, label: str, total: int | None = None) -> None:
        """Begin another step, with this many lines where that is known."""

    def advance(self, rows: int, share: float | None = None) -> None:
        """Count lines that are done; `share` says how much of the input they and those before them are."""


class Unseen:
    """Steps that nobody follows."""

    def begin(self, label: str, total: int | None = None) -> None:
        """Show nothing."""

    def advance(self, rows: int, share: float | None = None) -> None:
        """Count nothing."""


def count_lines(lines: Iterable[Item], position: Position, steps: Steps) -> Iterator[Item]:
    """Pass on what was read, line by line, and count it."""
    for number, line in enumerate(lines, start=1):
        yield line
        if number % LINES_AT_ONCE == 0:
            steps.advance(LINES_AT_ONCE, position.share)
