"""The curves of a run that a recorder watched: when attention forms, and whether it follows what it is compared with.

The record is the file that `AttentionRecorder` writes, in `sightline.training.train` or in transformers' Trainer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from sightline.errors import InputError
from sightline.json_files import read_json_lines
from sightline.view.plots import draw_plot

RecordedSteps = Sequence[Mapping[str, Any]]
"""The figures of every recorded step, from the first on."""
AGREEMENT, CHANCE = "agreement with ", " by chance"
FORMED = 0.5


def read_record(path: str | Path) -> list[dict[str, Any]]:
    """Read what a recorder wrote, step by step; a last line that was cut off is left out."""
    if not Path(path).is_file():
        raise InputError(f"There is no record {path}: an AttentionRecorder writes it while a model is trained.")
    remedy = "An AttentionRecorder writes it: record the run again."
    record = [step for _, step in read_json_lines(path, {"step": int, "entropy": list}, remedy)]
    if not record:
        raise InputError(f"The record {path} has no step yet.")
    for number, step in enumerate(record, start=1):
        if not _is_like(step, record[0]):
            raise InputError(f"{path}, line {number} is damaged: its figures are not those of line 1. {remedy}")
    return record


def _is_like(step: Mapping[str, Any], first: Mapping[str, Any]) -> bool:
    """Return whether a step has the same figures as the first, each with a number, or None, for every layer."""
    return step.keys() == first.keys() and all(
        isinstance(values, list)
        and len(values) == len(first["entropy"])
        and all(isinstance(value, int | float | None) for value in values)
        for name, values in step.items()
        if name != "step"
    )


def forming_step(record: RecordedSteps, layer: int = -1) -> int | None:
    """Return the first step at which a layer's entropy has fallen half way to its least; None if it never fell.

    By default of the last layer. Entropy alone cannot tell attention that forms from attention that collapses on one
    position: look at its agreement compared with chance, too.
    """
    entropies = {step["step"]: step["entropy"][layer] for step in record if step["entropy"][layer] is not None}
    if not entropies:
        return None
    first = next(iter(entropies.values()))
    fall = first - min(entropies.values())
    if fall <= 0:
        return None
    return next(step for step, entropy in entropies.items() if entropy <= first - FORMED * fall)


def plot_record(record: RecordedSteps) -> list[dict[str, Any]]:
    """Build the curves as plots: the entropy of every layer, and its agreement with each method against chance."""
    steps = [step["step"] for step in record]
    layers = range(len(record[0]["entropy"]))

    def series(key: str, name: str) -> list[dict[str, Any]]:
        return [{"name": f"{name} {n}", "x": steps, "y": [step[key][n] for step in record]} for n in layers]

    formed = forming_step(record)
    note = "Attention has not formed." if formed is None else f"The last layer's attention narrows by step {formed}."
    plots = [_plot("Entropy of attention", "nats", note, series("entropy", "layer"))]
    for key in record[0]:
        if key.startswith(AGREEMENT) and not key.endswith(CHANCE):
            chance = [{"name": "by chance", "x": steps, "y": [step[key + CHANCE][-1] for step in record]}]
            note = "The share of outputs whose highest weight is among the highest 5% of the method's scores."
            plots.append(_plot(f"Attention: {key}", "share", note, series(key, "layer") + chance))
    return plots


def render_record(path: str | Path) -> str:
    """Draw the curves of a record as a page that needs no network and no script."""
    figures = [
        f"<figure>{draw_plot(plot)}<figcaption>{escape(plot['note'])}</figcaption></figure>"
        for plot in plot_record(read_record(path))
    ]
    template = Template((files("sightline.view") / "report.html").read_text(encoding="utf-8"))
    return template.substitute(title="How attention learned", body="\n".join(figures))


def _plot(title: str, unit: str, note: str, series: list[dict[str, Any]]) -> dict[str, Any]:
    axes = {"x": {"label": "step"}, "y": {"label": unit}}
    return {"kind": "lines", "title": title, "note": note, "series": series} | axes
