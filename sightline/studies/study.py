"""What a study is: what a paper claims, how it is measured here, and the paper's own figures beside ours.

    STUDY = Study(
        name="sparsity", title="...", paper="Meister et al. 2021, ...",
        presets={"quick": Settings(...), "standard": Settings(...), "paper": Settings(...)},
        steps=build_steps,          # (settings, data folder or None) -> Sequence[Step]
        claims=(Claim("support", "The support shrinks as lambda grows.", "section 2", judge_support), ...),
        tables=(Table("Entropy of ...", "table 1", published=TABLE_1, measured=measure_table_1), ...),
        plots=draw_plots,           # results -> plain dictionaries, which `sightline.view.plots` draws
        deviations=("The grid of lambda is ours: the paper gives none.", ...),
    )

A **step** is a named measurement: `Step("imdb", run)`, where `run(work)` gives plain data that JSON holds. It finds the
earlier steps' data in `work.results["name"]`, may keep parts of its own by `work.keep("lstm softmax", compute)`, so
that a stopped study loses no finished part, says what it does by `work.say(...)`, and may leave files in `work.folder`.
A step that cannot be measured (its data are not there) gives None.

A **claim** has a judge: `judge(results)` gives `Finding(holds, ours)`, our figures in one short phrase, or None where
it was not measured. `paper` is the paper's figure, with its table. A **table** has the paper's figures as data,
`published[row][column]`, and `measured(results)` gives ours in the same form. A figure is a number, or a pair (mean,
deviation); None is an empty cell. All of these are called after the last step, on `results`: step name -> data, as it
came back from JSON (keys are strings, tuples are lists, NaN is None).

**Settings** are a frozen dataclass of plain values, seeds included; a preset is an instance. They are written into the
result, and a folder that was begun with others is refused.

The frame runs it: `run_study(study, preset, data=..., output=..., quiet=...)` (`sightline.studies.running`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

Verdict = Literal["holds", "does not hold", "not measured"]
Results = Mapping[str, Any]
"""The data of the finished steps, by name."""
Figure = float | int | str | Sequence[float | int | None] | None
"""A number, a number with its mark (`83.53*`), or mean and deviation."""
Figures = Mapping[str, Mapping[str, Figure]]
"""Figures by row and column."""


@runtime_checkable
class Work(Protocol):
    """What a step is given."""

    results: Results
    folder: Path

    def keep(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return what a part of the step computed, now or before the study was stopped."""

    def say(self, text: str) -> None:
        """Print what is going on."""


@dataclass(frozen=True)
class Step:
    """A named measurement."""

    name: str
    run: Callable[[Work], Any]


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds here, and our figures for it in one short phrase."""

    holds: bool
    ours: str


@dataclass(frozen=True)
class Claim:
    """One thing that a paper says, and how our figures are judged."""

    id: str
    text: str
    paper: str
    """The paper's figure, and where it stands."""
    judge: Callable[[Results], Finding | None]


@dataclass(frozen=True)
class Table:
    """A table of the paper, with our figures beside its own."""

    title: str
    where: str
    """Its place in the paper, such as `table 1`."""
    published: Figures
    measured: Callable[[Results], Figures]


@dataclass(frozen=True)
class Study:
    """One paper: what it claims and how that is measured."""

    name: str
    title: str
    paper: str
    presets: Mapping[str, Any]
    steps: Callable[[Any, Path | None], Sequence[Step]]
    claims: Sequence[Claim]
    tables: Sequence[Table] = ()
    plots: Callable[[Results], Sequence[Mapping[str, Any]]] = field(default=lambda results: ())
    deviations: Sequence[str] = ()
    """What is done otherwise than in the paper, each in one sentence."""
    on_real_data: Callable[[Any, Path | None], bool] = field(default=lambda settings, data: data is not None)
    """Whether, with these settings and this folder of corpora, real data are measured."""
