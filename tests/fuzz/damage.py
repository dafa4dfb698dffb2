"""Damaging what readers read, by fixed seeds: every case is read well, or refused in one sentence."""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from sightline.errors import InputError

CHARACTERS = "\x00\n\r\t \x1b\u00a0\u2028\u202e\ufeff<>&;{}[]()%$|:-p=\"'\\/.,0123456789aZé猫٣𝔸\U0001f600"
WORDS = (
    "nan", "inf", "1e999", "-1", "9" * 30, "9" * 5_000, "null", "true", "NaN", "<!--", "<b>", "</b>", "<![CDATA[",
    "|||", " ||| ", "0-0", "0p1", "1-1:0.5", "1 1 1", "S", "&amp;", "*a", "&a", "<<: ", "[" * 200, "{" * 200,
    '{"links": ', '"source_length": ', "\t", "\n\n", "!!python/name:os",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, -1, 0, 3, 10**9, 10**30, 0.5, 1e308, float("nan"), "", "x", "null", "\x00", True, False, [], {}, [None], [[]],
    {"a": None},
)  # fmt: skip
SLOWEST = 20
"""CPU seconds that no case takes."""
MEMORY = 2 << 30
"""Bytes that no case takes beyond what the process has."""


def outcomes(cases: Iterator[Any], read: Callable[[Any], Any]) -> tuple[int, int]:
    """Read every case; return how many were read well and how many refused. Any other error is raised as it is."""
    well = refused = 0
    for case in cases:
        begun = time.process_time()
        try:
            read(case)
            well += 1
        except InputError as error:
            refused += 1
            sentence = str(error)
            if not sentence.isprintable() or not 0 < len(sentence) <= 300:
                raise AssertionError(f"not one sentence: {sentence!r}") from error
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} on {case!r}"[:2_000]) from error
        assert time.process_time() - begun < SLOWEST, f"slow on {case!r}"[:2_000]
    return well, refused


def without_checks(module: ModuleType) -> Any:
    """Import a module once more as users do, without checks of types: they compile inner functions at every call."""
    assert module.__file__ is not None
    spec = spec_from_loader(module.__name__, SourceFileLoader(module.__name__, module.__file__))
    assert spec is not None
    assert spec.loader is not None
    again = module_from_spec(spec)
    spec.loader.exec_module(again)
    return again


@contextmanager
def limited_memory() -> Iterator[None]:
    """Let what takes much more memory than there was before fail, where the system can be told so."""
    if not sys.platform.startswith("linux"):
        yield
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def replace(path: Path, content: bytes | None) -> None:
    """Put a new file in place of another, or (None) remove it.

    It is removed first: some file systems force a file that is cut and written again to the disk.
    """
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)


def damaged_folders(folder: Path, names: list[str], count: int, seed: int = 0) -> Iterator[str]:
    """Damage one file of a folder after the other, and put it back; yield what is done, while it is."""
    rng = random.Random(seed)
    files = {name: (folder / name).read_bytes() for name in names}
    for _ in range(count):
        name = rng.choice(names)
        how, content = _damaged_file(name, files, rng)
        replace(folder / name, content)
        yield f"{name} {how}: {content!r}"
        replace(folder / name, files[name])


def _damaged_file(name: str, files: dict[str, bytes], rng: random.Random) -> tuple[str, bytes | None]:
    if name.endswith(".json") and rng.random() < 0.8:
        return "changed", damaged_json(files[name].decode(), rng).encode("utf-8", "surrogatepass")
    how = rng.choice(("damaged", "damaged", "damaged", "empty", "exchanged", "removed"))
    if how == "damaged" and files[name]:
        return how, damaged_bytes(files[name], rng)
    if how == "exchanged":
        return how, files[rng.choice(list(files))]
    return (how, b"") if how != "removed" else (how, None)


def damaged_texts(texts: list[str], count: int, seed: int = 0) -> Iterator[str]:
    """Yield texts with a few characters or words put in, taken out, repeated or exchanged."""
    rng = random.Random(seed)
    for _ in range(count):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 4)):
            start, end = sorted(rng.randint(0, len(text)) for _ in range(2))
            end = min(end, start + rng.choice((0, 1, 5, 50)))
            new = rng.choice((rng.choice(CHARACTERS), rng.choice(WORDS), text[start:end] * 2, ""))
            text = text[:start] + new + text[end:]
        yield text


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return bytes with a bit flipped, a stretch overwritten, taken out or repeated, or the end cut off."""
    start = rng.randrange(len(content))
    end = min(len(content), start + rng.choice((1, 8, 64)))
    how = rng.randrange(5)
    if how == 0:
        return content[:start] + bytes([content[start] ^ 1 << rng.randrange(8)]) + content[start + 1 :]
    middle = (b"", rng.randbytes(end - start), content[start:end] * 2, b"\x00" * (end - start))[how - 1]
    return content[:start] + middle + (b"" if rng.random() < 0.2 else content[end:])


def damaged_json(text: str, rng: random.Random) -> str:
    """Return JSON in which one value is another or is missing, or whose end is cut off."""
    if rng.random() < 0.1:
        return text[: rng.randrange(len(text))]
    plain = json.loads(text)
    path = rng.choice(list(_paths(plain)))
    value = rng.choice(VALUES)
    if not path:
        return json.dumps(value)
    place = plain
    for key in path[:-1]:
        place = place[key]
    if rng.random() < 0.15:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(plain)


def _paths(plain: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value, to the first few of long lists and large objects."""
    yield path
    items = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, inner in list(items)[:40]:
        yield from _paths(inner, (*path, key))
