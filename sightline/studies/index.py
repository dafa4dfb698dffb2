"""All studies in one folder, and an index of their reports; drawn again from kept results where nothing is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sightline.errors import InputError, unknown_name
from sightline.files import check_folder_writable, write_text
from sightline.json_files import read_json, write_json
from sightline.studies import STUDIES
from sightline.studies.running import StudyResult, run_study, write_report
from sightline.view.report import render_index_markdown, render_index_page

ALL = "all"
DOCUMENT = {
    "study": str,
    "title": str,
    "paper": str,
    "preset": str,
    "claims": list,
    "tables": list,
    "plots": list,
    "deviations": list,
    "settings": dict,
    "real data": bool,
    "seconds": dict,
    "versions": dict,
    "commit": Any,
}


def run_all_studies(
    preset: str = "quick", *, data: str | Path | None = None, output: str | Path | None = None, quiet: bool = False
) -> list[StudyResult]:
    """Run every study into a folder of its own inside `output`, by default `runs/studies-PRESET`, and index them.

    What was stopped goes on where it was, as with a single study.
    """
    folder = Path("runs") / f"studies-{preset}" if output is None else Path(output)
    check_folder_writable(folder)
    results = [run_study(name, preset, data=data, output=folder / name, quiet=quiet) for name in STUDIES]
    write_index([result.document for result in results], folder)
    return results


def draw_studies(kept: str | Path, output: str | Path, name: str = ALL) -> list[StudyResult]:
    """Draw the reports of kept results, each the `study.json` of a finished study, and an index of them.

    `name` is the study to draw, by default all that were kept.
    """
    if name not in (ALL, *STUDIES):
        raise unknown_name("study", name, (ALL, *STUDIES))
    kept, folder = Path(kept), Path(output)
    paths = sorted(kept.glob("*.json")) if kept.is_dir() else [kept]
    if not paths:
        raise InputError(f"{kept} holds no results (*.json): name the folder of kept study.json files.")
    documents = [read_json(path, DOCUMENT, "Take it from a finished study again.") for path in paths]
    chosen = [document for document in documents if name in (ALL, document["study"])]
    if not chosen:
        there = ", ".join(document["study"] for document in documents)
        raise InputError(f"{kept} holds no results of the study {name}, but of: {there}.")
    check_folder_writable(folder)
    results = []
    for document in chosen:
        place = folder / document["study"]
        place.mkdir(parents=True, exist_ok=True)
        write_json(place / "study.json", document)
        write_report(document, place)
        results.append(StudyResult(place, document))
    write_index([result.document for result in results], folder)
    return results


def write_index(documents: list[dict[str, Any]], folder: Path) -> None:
    """Write the index of studies that are finished."""
    finished = [document for document in documents if "claims" in document]
    write_text(folder / "index.html", render_index_page(finished))
    write_text(folder / "index.md", render_index_markdown(finished))
