"""Where real corpora lie, and a reader of sentence pairs in two columns of a file, plain or gzipped."""

import os
from collections.abc import Iterator
from pathlib import Path

from sightline.errors import InputError
from sightline.files import read_lines

TextPair = tuple[str, str]
"""A source and its target; of labelled text, the text and its label."""
FOLDER_VARIABLE = "SIGHTLINE_DATA"
USUAL_FOLDER = Path("../shared/data")
"""Where corpora lie when the variable is not set: beside the repository, or beside the working directory."""


def data_folder() -> Path:
    """Find the folder of real corpora: what `SIGHTLINE_DATA` names, else `../shared/data`."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise InputError(f"{FOLDER_VARIABLE} names the folder {named}, which does not exist.")
        return Path(named)
    repository = Path(__file__).resolve().parents[2]
    for base in (repository, Path.cwd()):
        folder = (base / USUAL_FOLDER).resolve()
        if folder.is_dir():
            return folder
    raise InputError(f"There is no folder of corpora: set {FOLDER_VARIABLE} to the folder that holds them.")


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
