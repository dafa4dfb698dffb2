"""Look for input that a reader neither reads nor refuses in one sentence, guided by coverage (atheris).

    pip install atheris
    python tools/fuzz_readers.py READER [-max_total_time=600] [CORPUS_FOLDER]

Whatever is not read has to be an InputError of one printable sentence. Anything else stops the search, and the input
is left in a file `crash-...`: make a case of it in tests/fuzz. Without a reader, their names are printed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import atheris

with atheris.instrument_imports(include=["sightline"]):
    from sightline.alignment.formats import read_alignments
    from sightline.alignment.links import Alignment
    from sightline.alignment.markup import parse_markup
    from sightline.alignment.parallel import read_pairs
    from sightline.alignment.restoring import restore_markup
    from sightline.alignment.saved import load_aligner
    from sightline.attribution import load_attributions
    from sightline.cli.settings import read_settings
    from sightline.data.labelled import read_labelled_file
    from sightline.errors import InputError
    from sightline.files import read_lines
    from sightline.json_files import read_json
    from sightline.training.recipe import read_recipe

FOLDER = Path(mkdtemp(prefix="sightline-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
MOST = 1000
"""Lines that are taken from a reader that yields them."""


def of_file(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """Return what writes bytes to a file and reads it."""
    path = FOLDER / name

    def read_bytes(content: bytes) -> None:
        path.write_bytes(content)
        read(path)

    return read_bytes


def of_text(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda content: read(content.decode("utf-8", "surrogateescape"))


def restore(text: str) -> None:
    markup = parse_markup(text)
    words = ["x", "y", "z"]
    restore_markup(markup, words, Alignment([(i, i % 3) for i in range(min(len(markup.words), 20))]))


READERS: dict[str, Callable[[bytes], Any]] = {
    **{
        kind: of_file("links", lambda path, kind=kind: list(islice(read_alignments(path, kind), MOST)))
        for kind in ("pharaoh", "naacl", "jsonl")
    },
    "pairs": of_file("pairs", lambda path: list(islice(read_pairs(path), MOST))),
    "lines": of_file("lines", lambda path: list(islice(read_lines(path), MOST))),
    "lines.gz": of_file("lines.gz", lambda path: list(islice(read_lines(path), MOST))),
    "labelled.jsonl": of_file("labelled.jsonl", read_labelled_file),
    "labelled.csv": of_file("labelled.csv", read_labelled_file),
    "recipe": of_file("recipe.yaml", read_recipe),
    "json": of_file("plain.json", lambda path: read_json(path, {"a": list, "b": float}, "Write it again.")),
    "attributions": of_file("why.parquet", lambda path: list(load_attributions(path))),
    "aligner": of_file("aligner.npz", load_aligner),
    "markup": of_text(restore),
    "settings": of_text(lambda text: read_settings(text.split("\n"))),
}


@contextmanager
def refusing_in_one_sentence() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        sentence = str(error)
        if not sentence.isprintable() or not 0 < len(sentence) <= 300:
            raise AssertionError(f"not one sentence: {sentence!r}") from error


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in READERS:
        raise SystemExit("Readers: " + ", ".join(READERS))

    def read(content: bytes) -> None:
        with refusing_in_one_sentence():
            READERS[name](content)

    atheris.Setup([sys.argv[0], *sys.argv[2:]], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
