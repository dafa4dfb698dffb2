"""Running a study step by step: every finished step is kept, and a stopped study goes on where it was.

OUT/steps/NAME.json          a finished step's data, with its seconds and a checksum
OUT/steps/NAME/PART.json     the finished parts of a step that keeps some (`work.keep`)
OUT/settings.json            the settings that the folder was begun with: others are refused, never mixed
OUT/study.json, .md, .html   the report: claims with verdicts, tables, plots, settings, versions
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from sightline.data.corpora import FOLDER_VARIABLE, data_folder
from sightline.errors import InputError, unknown_name
from sightline.files import check_folder_writable, write_text
from sightline.json_files import parse_json, read_json, write_json
from sightline.provenance import provenance
from sightline.studies import find_study
from sightline.studies.study import Claim, Figures, Results, Step, Study, Table, Verdict
from sightline.training.journal import duration
from sightline.view.report import render_report_markdown, render_report_page

STEPS, SETTINGS = "steps", "settings.json"


@dataclass(frozen=True)
class StudyResult:
    """A study's folder, and the document that `study.json` holds; while steps are missing, only their list."""

    folder: Path
    document: dict[str, Any]

    @property
    def claims(self) -> list[dict[str, str]]:
        """List the claims, each with `id`, `text`, `verdict`, `ours` and `paper`."""
        return self.document.get("claims", [])

    @property
    def missing(self) -> list[str]:
        """List the steps that are not finished; there is no report before they are."""
        return self.document.get("missing", [])


def run_study(
    study: Study | str,
    preset: str = "quick",
    *,
    data: str | Path | None = None,
    output: str | Path | None = None,
    only: str = "",
    changes: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> StudyResult:
    """Run a study, or go on with one that was stopped, and write its report.

    `data` is the folder of real corpora, by default the usual one where it exists. The output is by default
    `runs/NAME-PRESET`. `only` runs the steps whose names start with it, so that several processes can share out a
    study in one folder; whichever finishes the last step writes the report. `changes` are settings that differ from the
    preset's, such as the models to measure.
    """
    if isinstance(study, str):
        study = find_study(study)
    if preset not in study.presets:
        raise unknown_name("preset", preset, study.presets)
    settings = _changed(study, study.presets[preset], changes or {})
    folder = Path("runs") / f"{study.name}-{preset}" if output is None else Path(output)
    found = _find_data(data)
    steps = study.steps(settings, found)
    if not any(step.name.startswith(only) for step in steps):
        raise InputError(f"No step begins with {only!r}: the steps are {', '.join(step.name for step in steps)}.")
    _begin(folder, {"study": study.name, "settings": _plain(dataclasses.asdict(settings))})
    console = Console(stderr=True, quiet=quiet, highlight=False, emoji=False, soft_wrap=True)
    _run_steps(study.name, steps, only, folder, console)
    results, seconds = _finished(steps, folder)
    missing = [step.name for step in steps if step.name not in results]
    if missing:
        return StudyResult(folder, {"missing": missing})
    document = _report(study, preset, settings, found, results, seconds)
    write_json(folder / "study.json", document)
    write_report(document, folder)
    return StudyResult(folder, document)


def write_report(document: Mapping[str, Any], folder: Path) -> None:
    """Write the report of a study as Markdown and as a page."""
    write_text(folder / "study.md", render_report_markdown(document))
    write_text(folder / "study.html", render_report_page(document))


def _changed(study: Study, settings: Any, changes: Mapping[str, Any]) -> Any:
    """Change some settings of a preset; a study need not have them."""
    known = [field.name for field in dataclasses.fields(settings)]
    for name in changes:
        if name not in known:
            raise InputError(f"The study {study.name} has no setting {name!r}: leave --{name} out.")
    return dataclasses.replace(settings, **changes)


def _find_data(data: str | Path | None) -> Path | None:
    if data is None:
        return data_folder() if os.environ.get(FOLDER_VARIABLE) else None
    if not Path(data).is_dir():
        raise InputError(f"There is no folder {data}: --data names the folder of real corpora.")
    return Path(data)


def _begin(folder: Path, begun_with: dict[str, Any]) -> None:
    """Make the folder of a study, or check that it was begun with these settings."""
    path = folder / SETTINGS
    if path.exists():
        check_folder_writable(folder)
        remedy = "Restore it from a copy, or choose another folder with -o."
        stored = read_json(path, {"study": str, "settings": dict}, remedy)
        if stored != begun_with:
            raise InputError(
                f"{folder} holds the study {stored['study']} with {_difference(stored, begun_with)}: choose another "
                "folder with -o, or remove that one."
            )
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty and holds no study: choose another folder with -o.")
    check_folder_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, begun_with)


def _difference(stored: dict[str, Any], wanted: dict[str, Any]) -> str:
    there, here = stored["settings"], wanted["settings"]
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    return ", ".join(f"{name} = {there.get(name)} (now {here.get(name)})" for name in names) or "other settings"


@dataclass
class _Work:
    """What a step is given: see `sightline.studies.study`."""

    results: Results
    folder: Path
    console: Console
    earlier: float = 0.0
    """The seconds that parts took before the study was stopped."""

    def keep(self, name: str, compute: Callable[[], Any]) -> Any:
        path = self.folder / f"{_file_name(name)}.json"
        was_there = path.exists()
        kept = _kept(path, compute)
        if was_there:
            self.earlier += kept["seconds"]
        return kept["data"]

    def say(self, text: str) -> None:
        self.console.print(f"  {text}", markup=False)


def _run_steps(study: str, steps: Sequence[Step], only: str, folder: Path, console: Console) -> None:
    """Run the steps that are wanted and not yet finished."""
    for number, step in enumerate(steps, start=1):
        if not step.name.startswith(only):
            continue
        path = _step_file(folder, step)
        heading = f"{study} {number}/{len(steps)} {step.name}"
        console.print(f"{heading}: there already" if path.exists() else heading, markup=False)
        work = _Work(_finished(steps[: number - 1], folder)[0], path.with_suffix(""), console)
        kept = _kept(path, lambda step=step, work=work: step.run(work), lambda work=work: work.earlier)  # type: ignore[misc]
        console.print(f"{heading}: {duration(kept['seconds'])}", markup=False)


def _step_file(folder: Path, step: Step) -> Path:
    return folder / STEPS / f"{_file_name(step.name)}.json"


class _Results(dict[str, Any]):
    """The data of finished steps; who asks for another is told to run it."""

    def __missing__(self, name: str) -> Any:
        raise InputError(f"The step {name!r} has to be run first.")


def _finished(steps: Sequence[Step], folder: Path) -> tuple[_Results, dict[str, float]]:
    """Return the data and the seconds of the steps that are finished."""
    results, seconds = _Results(), {}
    for step in steps:
        path = _step_file(folder, step)
        if path.exists():
            kept = _read_kept(path)
            results[step.name], seconds[step.name] = kept["data"], kept["seconds"]
    return results, seconds


def _kept(path: Path, compute: Callable[[], Any], earlier: Callable[[], float] = lambda: 0.0) -> dict[str, Any]:
    """Return what a file keeps, or compute it and write the file, whole or not at all; with the seconds it took."""
    if path.exists():
        return _read_kept(path)
    begun = time.monotonic()
    data = _plain(compute())  # as it will be read again: no difference between a first and a second time
    seconds = time.monotonic() - begun + earlier()
    kept = {"name": path.stem, "data": data, "seconds": seconds, "checksum": _checksum(data)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(kept, ensure_ascii=False))
    return kept


def _read_kept(path: Path) -> dict[str, Any]:
    remedy = "Remove it, and what it kept is computed again."
    kept = read_json(path, {"data": Any, "seconds": float, "checksum": str}, remedy)
    if kept["checksum"] != _checksum(kept["data"]):
        raise InputError(f"{path} is damaged: its data do not have their checksum. {remedy}")
    if kept.get("name", path.stem) != path.stem:  # earlier versions wrote no name
        raise InputError(f"{path} is damaged: it is a copy of {kept['name']}.json. {remedy}")
    return kept


def _checksum(data: Any) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def _file_name(name: str) -> str:
    """Make a name fit for a file."""
    return re.sub(r"[^A-Za-z0-9.+=_-]+", "-", name)


def _plain(value: Any) -> Any:
    """Return a value as JSON gives it back; what is undefined (NaN) is an empty cell."""
    return parse_json(json.dumps(value))


def _report(
    study: Study, preset: str, settings: Any, data: Path | None, results: Results, seconds: dict[str, float]
) -> dict[str, Any]:
    """Judge the claims, and put everything that a reader needs into one document."""
    return {
        "study": study.name,
        "title": study.title,
        "paper": study.paper,
        "preset": preset,
        "claims": [_judged(claim, results) for claim in study.claims],
        "tables": [_filled(table, results) for table in study.tables],
        "plots": _plain(list(study.plots(results))),
        "deviations": list(study.deviations),
        "settings": _plain(dataclasses.asdict(settings)),
        "real data": study.on_real_data(settings, data),
        "seconds": seconds,
        **provenance(),
    }


def _judged(claim: Claim, results: Results) -> dict[str, str]:
    finding = claim.judge(results)
    verdict: Verdict = "not measured" if finding is None else "holds" if finding.holds else "does not hold"
    ours = "" if finding is None else finding.ours
    return {"id": claim.id, "text": claim.text, "verdict": verdict, "ours": ours, "paper": claim.paper}


def _filled(table: Table, results: Results) -> dict[str, Any]:
    """Return a table with our figures and the paper's, over all rows and columns that either has."""
    ours: Figures = table.measured(results)
    rows = list(dict.fromkeys([*table.published, *ours]))
    columns = list(dict.fromkeys(column for half in (table.published, ours) for row in half.values() for column in row))
    return _plain(
        {"title": table.title, "where": table.where, "rows": rows, "columns": columns}
        | {"ours": {row: dict(ours.get(row, {})) for row in rows}}
        | {"paper": {row: dict(table.published.get(row, {})) for row in rows}}
    )
