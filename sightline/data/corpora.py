"""Where real corpora lie, and a reader of sentence pairs in two columns of a file, plain or gzipped."""

import os
from collections.abc import Iterator
from pathlib import Path

from sightline.errors import InputError
from sightline.files import read_lines

TextPair = tuple[str, str]
"""A source and its target; of labelled text, the text and its label."""
FOLDER_VARIABLE = "SIGHTLINE_DATA"


def data_folder() -> Path:
    """Return the folder of real corpora, which `SIGHTLINE_DATA` names."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        raise InputError(f"No folder of corpora is named: set {FOLDER_VARIABLE} to the folder that holds them.")
    if not Path(named).is_dir():
        raise InputError(f"{FOLDER_VARIABLE} names the folder {named}, which does not exist.")
    return Path(named)


def data_path(name: str) -> Path:
    """Find a file of the folder of real corpora, e.g. `tatoeba-en-es/pairs.tsv.gz`."""
    path = data_folder() / name
    if not path.exists():
        raise InputError(f"There is no {name} in the folder of corpora {data_folder()}.")
    return path


def read_tab_separated(path: str | Path, columns: tuple[int, int] = (0, 1)) -> Iterator[TextPair]:
    """Yield the sentence pairs in two columns, counted from 0, of a tab-separated file."""
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) <= max(columns):
            raise InputError(
                f"{path}, line {number}: {len(cells)} columns, but number {max(columns)} (from 0) is needed."
            )
        yield cells[columns[0]], cells[columns[1]]
