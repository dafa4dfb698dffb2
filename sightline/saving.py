"""Attributions in files: the format is that of the file's suffix.

    .parquet   everything, exactly, with a checksum; the format that `load_attributions` reads
    .jsonl     one object a line, as `Attribution.to_dict` has it; `.json` holds one
    .csv       one row for each score
    .html      a page to click on, of any number of attributions
    .svg .png  the heat map of one

What is saved comes as plain dictionaries whose `scores` are an array.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sightline.errors import InputError, unknown_name
from sightline.files import FilePath, write_lines, write_text, writing
from sightline.sealed import write_arrays

Plain = Mapping[str, Any]


def save_plain(attributions: Iterable[Plain], path: FilePath, format: str | None = None) -> int:
    """Write attributions' dictionaries, whole or not at all, in the format that is named or that of the suffix.

    Return how many there were.
    """
    if format is None:
        suffix = Path(os.fspath(path)).suffix
        format = suffix.lower().removeprefix(".")
        if format not in FORMATS:
            raise InputError(
                f"{path}: the suffix {suffix or '(none)'} names no format: end the file's name with "
                f"{', '.join('.' + name for name in FORMATS)}."
            )
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    return FORMATS[format](attributions, path)


def _save_parquet(attributions: Iterable[Plain], path: FilePath) -> int:
    return write_arrays(((_labels(one), one["scores"]) for one in attributions), path)


def _save_json_lines(attributions: Iterable[Plain], path: FilePath) -> int:
    counted = _Counted(attributions)
    write_lines((write_json(one) for one in counted), path)
    return counted.count


def _save_json(attributions: Iterable[Plain], path: FilePath) -> int:
    write_text(path, write_json(_only(attributions, path, "as .jsonl")))
    return 1


def _save_csv(attributions: Iterable[Plain], path: FilePath) -> int:
    """Write one row a score; where there are several attributions they must have the same axes."""
    counted = _Counted(attributions)
    write_lines(_csv_lines(counted, path), path)
    return counted.count


def _save_page(attributions: Iterable[Plain], path: FilePath) -> int:
    from sightline.view.html import render_page

    several = list(attributions)
    methods = ", ".join(dict.fromkeys(one["method"] or "scores" for one in several))
    write_text(path, render_page(several, title=f"Sightline: {methods}"))
    return len(several)


def _save_svg(attributions: Iterable[Plain], path: FilePath) -> int:
    from sightline.view.svg import render_svg

    write_text(path, render_svg(_only(attributions, path, "as .html")))
    return 1


def _save_png(attributions: Iterable[Plain], path: FilePath) -> int:
    from sightline.view.raster import render_png
    from sightline.view.svg import render_svg

    drawn = render_png(render_svg(_only(attributions, path, "as .html")))
    with writing(path, "wb") as file:
        file.write(drawn)
    return 1


FORMATS: dict[str, Callable[[Iterable[Plain], FilePath], int]] = {
    "parquet": _save_parquet,
    "jsonl": _save_json_lines,
    "json": _save_json,
    "csv": _save_csv,
    "html": _save_page,
    "svg": _save_svg,
    "png": _save_png,
}


def write_json(attribution: Plain) -> str:
    """Write an attribution as one line of JSON, its end included."""
    return json.dumps(_labels(attribution) | {"scores": attribution["scores"].tolist()}, ensure_ascii=False) + "\n"


def _labels(attribution: Plain) -> dict[str, Any]:
    return {name: value for name, value in attribution.items() if name != "scores"}


def _csv_lines(attributions: Iterable[Plain], path: FilePath) -> Iterator[str]:
    axes: list[str] | None = None
    for number, one in enumerate(attributions):
        if axes is None:
            axes = list(one["axes"])
            yield _csv_line(["example", *axes, "target", "target_token", "column", "column_token", "side", "score"])
        elif axes != one["axes"]:
            raise InputError(f"{path}: the attributions have different axes, so they have no common table.")
        targets = one["target"]["tokens"]
        columns = [(token, side) for side in ("source", "prefix") for token in one[side]["tokens"]]
        for place, score in np.ndenumerate(one["scores"]):
            *leading, target, column = place
            yield _csv_line([number, *leading, target, targets[target], column, *columns[column], float(score)])


def _csv_line(cells: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _only(attributions: Iterable[Plain], path: FilePath, otherwise: str) -> Plain:
    several = list(attributions)
    if len(several) != 1:
        raise InputError(f"{path} can hold one attribution, not {len(several)}: save them {otherwise}.")
    return several[0]


class _Counted:
    """Attributions that are counted as they pass."""

    def __init__(self, attributions: Iterable[Plain]) -> None:
        self.attributions = attributions
        self.count = 0

    def __iter__(self) -> Iterator[Plain]:
        for attribution in self.attributions:
            self.count += 1
            yield attribution
