"""Lines of text, and parallel text, streamed.

Parallel text is two files, or one with `source ||| target` (as fast_align reads it) or with tabs.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from pathlib import Path

from sightline.errors import InputError

STANDARD_INPUT = STANDARD_OUTPUT = "-"
BARS = re.compile(r"(?:^|\s+)\|\|\|(?:\s+|$)")
TAB = re.compile(r"\t")


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ends; `-` is standard input, `.gz` is unpacked.

    Only a line feed ends a line: the rarer separators of Unicode would put two files out of step.
    """
    number = 0
    try:
        with _open_bytes(path) as file:
            for number, line in enumerate(file, start=1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {number}: this is not UTF-8; convert the file first.") from None
    except (gzip.BadGzipFile, EOFError):
        raise InputError(f"{path} is not a complete gzip file, though its name ends in .gz.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def _open_bytes(path: str | os.PathLike[str]) -> AbstractContextManager[Iterable[bytes]]:
    if os.fspath(path) == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)  # not ours to close
    return gzip.open(path) if Path(path).suffix == ".gz" else Path(path).open("rb")


def write_lines(lines: Iterable[str], path: str | os.PathLike[str] = STANDARD_OUTPUT) -> None:
    """Write lines, their ends included, as they come; `-` is standard output.

    A file appears under its name only when it is complete.
    """
    if os.fspath(path) == STANDARD_OUTPUT:
        sys.stdout.writelines(lines)
        return
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        partial.unlink(missing_ok=True)


def read_pairs(
    source: str | os.PathLike[str], target: str | os.PathLike[str] | None = None
) -> Iterator[tuple[str, str]]:
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


def _read_columns(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
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
