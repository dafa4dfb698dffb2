"""Parallel text, streamed: two files, or one with `source ||| target` (as fast_align reads it) or with tabs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import zip_longest

from sightline.errors import InputError
from sightline.files import STANDARD_INPUT, FilePath, read_lines

BARS = re.compile(r"(?<!\S)\|\|\|(?!\S)")
TAB = re.compile(r"\t")


def read_pairs(source: FilePath, target: FilePath | None = None) -> Iterator[tuple[str, str]]:
    """Yield sentence pairs: of two files line by line, or of one whose lines hold both sides.

    The first line of a single file decides whether ` ||| ` or a tab stands between the sides. Sides may be empty:
    pair k is always line k.
    """
    if target is None:
        yield from _read_columns(source)
        return
    if os.fspath(source) == os.fspath(target) == STANDARD_INPUT:
        raise InputError("Source and target cannot both be read from standard input: give one of them as a file.")
    for number, (left, right) in enumerate(zip_longest(read_lines(source), read_lines(target))):
        if left is None or right is None:
            shorter, longer = (source, target) if left is None else (target, source)
            raise InputError(f"{shorter} ends after line {number}, but {longer} goes on: lines must correspond.")
        yield left.strip(), right.strip()


def _read_columns(path: FilePath) -> Iterator[tuple[str, str]]:
    separator = None
    for number, line in enumerate(read_lines(path), start=1):
        if separator is None:
            separator = BARS if BARS.search(line) else TAB
        columns = separator.split(line)
        if len(columns) != 2:
            name = "' ||| '" if separator is BARS else "a tab"
            raise InputError(
                f"{path}, line {number}: there must be {name} between source and target, exactly once; "
                f"found {len(columns) - 1}."
            )
        yield columns[0].strip(), columns[1].strip()
