"""Runs and studies of one folder, chosen when the server starts: their curves, and attention as it forms.

Clients name them by their number in the list, never by a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.errors import InputError
from sightline.json_files import read_json, read_json_lines
from sightline.training.journal import LOG
from sightline.view.curves import AGREEMENT, plot_record, read_record
from sightline.view.plots import draw_plot

STUDY = "study.json"
MOST, DEEPEST = 200, 3
KEPT_START = 400  # characters of a file that tell whether it is a study's report
CURVES = {
    "train": ("loss", "perturbed_loss", "mask"),
    "dev": ("loss", "accuracy"),
}


def find_runs(folder: Path) -> list[Path]:
    """List the logs, records and reports in a folder and the folders in it."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder} to show runs of.")
    found = [path for depth in range(1, DEEPEST + 1) for path in folder.glob("/".join(["*"] * depth)) if _kind(path)]
    return sorted(found)[:MOST]


def describe_run(path: Path, folder: Path) -> dict[str, str]:
    """Return what a list says of a run or study."""
    kind = _kind(path)
    assert kind is not None
    parts = [] if path.parent == folder else [str(path.parent.relative_to(folder))]
    if not parts or path.name not in (STUDY, LOG):  # these two are called after their folder
        parts.append(path.stem)
    return {"name": ": ".join(parts), "kind": kind}


def read_run(path: Path) -> dict[str, Any]:
    """Return the claims and the plots of a run or study; frames are given as they are, to be replayed."""
    try:
        return _read_run(path, _kind(path))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise InputError(f"{path} is damaged: it cannot be drawn ({error}). Run it again.") from error


def _read_run(path: Path, kind: str | None) -> dict[str, Any]:
    if kind == "study":
        document = read_json(path, {"title": str, "claims": list, "plots": list}, "Run the study again.")
        claims = [
            {name: claim[name] for name in ("id", "text", "verdict", "ours", "paper")} for claim in document["claims"]
        ]
        return {"title": document["title"], "claims": claims, **_drawn(document["plots"])}
    if kind == "record":
        return {"title": "How attention learned", "claims": [], **_drawn(plot_record(read_record(path)))}
    lines = [line for _, line in read_json_lines(path, {"kind": str, "step": int}, "Train it again.")]
    return {"title": "Training", "claims": [], **_drawn(_curves(lines))}


def _kind(path: Path) -> str | None:
    """Return whether a file is a run's log, a recorder's record or a study's report."""
    if path.name == STUDY:
        return "study"
    if path.name == LOG:
        return "run"
    if path.suffix not in (".json", ".jsonl") or not path.is_file():
        return None
    with path.open(encoding="utf-8", errors="replace") as file:
        start = file.readline() if path.suffix == ".jsonl" else file.read(KEPT_START)
    if path.suffix == ".json":  # a study's report that was kept under a name of its own
        return "study" if '"study":' in start and '"title":' in start else None
    return "record" if '"entropy"' in start and ('"step"' in start or AGREEMENT in start) else None


def _drawn(plots: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    plots = list(plots)
    return {
        "plots": [
            {"title": plot["title"], "note": plot.get("note", ""), "svg": draw_plot(plot)}
            for plot in plots
            if plot["kind"] != "frames"
        ],
        "frames": [plot for plot in plots if plot["kind"] == "frames"],
    }


def _curves(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Make a plot of each figure that a log has, training and development together."""
    series: dict[str, list[dict[str, Any]]] = {}
    for kind, names in CURVES.items():
        for name in names:
            points = [(line["step"], line[name]) for line in lines if line["kind"] == kind and name in line]
            if len(points) > 1:
                xs, ys = zip(*points, strict=True)
                series.setdefault(name, []).append({"name": kind, "x": list(xs), "y": list(ys)})
    return [
        {
            "kind": "lines",
            "title": name.replace("_", " ").capitalize(),
            "x": {"label": "step"},
            "y": {"label": name.replace("_", " ")},
            "series": several,
        }
        for name, several in series.items()
    ]
