"""Parallel text, streamed: two files, or one with `source ||| target` (as fast_align reads it) or with tabs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import zip_longest

from sightline.errors import InputError
from sightline.files import STANDARD_INPUT, FilePath, Position, try_lines

BARS = re.compile(r"(?<!\S)\|\|\|(?!\S)")
TAB = re.compile(r"\t")


def read_pairs(
    source: FilePath, target: FilePath | None = None, *, position: Position | None = None
) -> Iterator[tuple[str, str]]:
    """Yield sentence pairs: of two files line by line, or of one whose lines hold both sides.

    The first line of a single file decides whether ` ||| ` or a tab stands between the sides. Sides may be empty:
    pair k is always line k.
    """
    for pair in try_pairs(source, target, position):
        if isinstance(pair, InputError):
            raise pair
        yield pair


def try_pairs(
    source: FilePath, target: FilePath | None = None, position: Position | None = None
) -> Iterator[tuple[str, str] | InputError]:
    """Yield sentence pairs as `read_pairs` does, and for a line that is none the error that says why."""
    if target is None:
        yield from _try_columns(source, position)
        return
    if os.fspath(source) == os.fspath(target) == STANDARD_INPUT:
        raise InputError("Source and target cannot both be read from standard input: give one of them as a file.")
    lines = zip_longest(try_lines(source, position), try_lines(target))
    for number, (left, right) in enumerate(lines):
        if left is None or right is None:
            shorter, longer = (source, target) if left is None else (target, source)
            raise InputError(f"{shorter} ends after line {number}, but {longer} goes on: lines must correspond.")
        if isinstance(left, InputError) or isinstance(right, InputError):
            yield left if isinstance(left, InputError) else right  # type: ignore[misc]
        else:
            yield left.strip(), right.strip()


def _try_columns(path: FilePath, position: Position | None) -> Iterator[tuple[str, str] | InputError]:
    separator = None
    for number, line in enumerate(try_lines(path, position), start=1):
        if isinstance(line, InputError):
            yield line
            continue
        if separator is None:
            separator = BARS if BARS.search(line) else TAB
        columns = separator.split(line)
        if len(columns) == 2:
            yield columns[0].strip(), columns[1].strip()
        else:
            name = "' ||| '" if separator is BARS else "a tab"
            yield InputError(
                f"{path}, line {number}: there must be {name} between source and target, exactly once; "
                f"found {len(columns) - 1}."
            )
