"""Packed files, by what their names end in: gzip (`.gz`) and Zstandard (`.zst`).

What is packed part by part is a packed file too, so that output can grow and every run packs it into the same bytes.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

from sightline.errors import missing_package


class Packing(NamedTuple):
    """A way to pack files: what it is called, how a packed file is opened, and how a part of one is packed."""

    name: str
    open: Callable[[IO[bytes]], AbstractContextManager[Any]]
    pack: Callable[[bytes], bytes]


def find_packing(path: str | os.PathLike[str]) -> Packing | None:
    """Return how a file is packed, by its name; None if it is not."""
    if Path(path).suffix == ".gz":
        # Neither name nor time is stored, so that the same text gives the same bytes.
        return Packing("gzip", lambda raw: gzip.open(raw), partial(gzip.compress, mtime=0))
    if Path(path).suffix == ".zst":
        zstandard = _import_zstandard(path)
        return Packing("Zstandard", lambda raw: zstandard.open(raw), zstandard.compress)
    return None


def damages() -> tuple[type[Exception], ...]:
    """Return the errors that damaged files raise when they are unpacked."""
    try:
        return gzip.BadGzipFile, EOFError, zlib.error, import_module("backports.zstd").ZstdError
    except ImportError:
        return gzip.BadGzipFile, EOFError, zlib.error


def _import_zstandard(path: str | os.PathLike[str]) -> ModuleType:
    try:
        return import_module("backports.zstd")
    except ImportError as error:
        raise missing_package(f"Reading and writing {path}", error) from error
