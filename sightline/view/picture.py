"""What is drawn: the one place that turns an attribution's dictionary into labels, colours and notes.

The dictionary is what `Attribution.to_dict()` gives; its `scores` may also be an array, which saves the nested lists.
Two scales are derived from the scores `a` of a row (a target position):

    strength   a_j / max_k |a_k|    colours the heat map, so that every row uses the whole scale
    share      a_j / sum_k |a_k|    weighs a link; for attention it is the weight itself
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from sightline.errors import InputError, unknown_name
from sightline.view.labels import Label, clip, visible

SETTING_CELLS = 100


class Axis(NamedTuple):
    """A leading axis of the scores: its name, its size, and the position that is drawn (None: the mean)."""

    name: str
    size: int
    chosen: int | None


@dataclass(frozen=True, eq=False)
class Picture:
    """One matrix with everything that is written around it."""

    method: str
    settings: tuple[tuple[str, str], ...]
    axes: tuple[Axis, ...]
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    boundary: int  # the first column of the prefix; the number of columns where there is no prefix
    scores: Float[np.ndarray, "target column"]
    all_scores: Float[np.ndarray, "*axes target column"]
    notes: tuple[str, ...]
    probabilities: tuple[float, ...] = ()  # of the rows, where they are known

    @cached_property
    def strengths(self) -> Float[np.ndarray, "target column"]:
        """Divide every score by the largest magnitude of its row."""
        return divide(self.scores, np.abs(self.scores).max(axis=-1, keepdims=True, initial=0))

    @cached_property
    def shares(self) -> Float[np.ndarray, "target column"]:
        """Divide every score by the sum of magnitudes of its row."""
        return divide(self.scores, np.abs(self.scores).sum(axis=-1, keepdims=True))

    @cached_property
    def signed(self) -> bool:
        """Return whether any score is negative, so that two colours are needed."""
        return bool((self.all_scores < 0).any())

    @property
    def has_prefix(self) -> bool:
        return self.boundary < len(self.columns)

    @property
    def selection(self) -> str:
        """Return which position of the leading axes is drawn: `layer 3, mean over heads`."""
        chosen = [f"{axis.name} {axis.chosen}" for axis in self.axes if axis.chosen is not None]
        averaged = [f"{axis.name}s" for axis in self.axes if axis.chosen is None]
        return ", ".join(chosen + ([f"mean over {' and '.join(averaged)}"] if averaged else []))

    def strongest(self, row: int, count: int) -> list[int]:
        """List the columns of largest magnitude of a row, best first; ties go to the earlier column."""
        order = np.argsort(-np.abs(self.scores[row]), kind="stable")[:count]
        return [int(column) for column in order if self.scores[row, column] != 0]


def read_picture(
    attribution: Mapping[str, Any],
    at: Mapping[str, int] | None = None,
    row_limit: int | None = None,
    column_limit: int | None = None,
) -> Picture:
    """Read what is to be drawn from an attribution's dictionary.

    `at` selects positions of leading axes (`{"layer": 5}`, negative from the last); axes that it does not name are
    averaged. Beyond a limit only the first tokens of a side are kept, and a note says so.
    """
    sides = {side: _labels(attribution[side]) for side in ("source", "prefix", "target")}
    shape = (len(sides["target"]), len(sides["source"]) + len(sides["prefix"]))
    scores = _read_scores(attribution["scores"], attribution["axes"], shape)
    axes = _choose(attribution["axes"], scores.shape[:-2], at or {})

    boundary = len(sides["source"])
    kept_source = range(boundary)[:column_limit]
    kept_prefix = range(boundary, shape[1])[:column_limit]
    columns = [*kept_source, *kept_prefix]
    if len(columns) < shape[1]:
        scores = scores[..., columns]
    scores = scores[..., :row_limit, :]
    kept = {"source": len(kept_source), "prefix": len(kept_prefix), "target": scores.shape[-2]}
    all_columns = sides["source"] + sides["prefix"]
    return Picture(
        method=visible(attribution["method"] or "scores"),
        settings=tuple((visible(str(k)), _write_setting(v)) for k, v in _changed_settings(attribution)),
        axes=axes,
        rows=tuple(sides["target"][:row_limit]),
        columns=tuple(all_columns[column] for column in columns),
        boundary=kept["source"],
        scores=_select(scores, axes),
        all_scores=scores,
        probabilities=tuple(map(float, attribution.get("probabilities") or ()))[:row_limit],
        notes=tuple(_note(side, kept[side], len(labels)) for side, labels in sides.items() if kept[side] < len(labels)),
    )


def divide(
    scores: Float[np.ndarray, "*axes target column"], totals: Float[np.ndarray, "*axes target 1"]
) -> Float[np.ndarray, "*axes target column"]:
    """Divide rows by their totals; a row without any mass becomes zeros."""
    return np.divide(scores, totals, out=np.zeros_like(scores), where=totals > 0)


def write_number(score: float | int) -> str:
    """Write a score with three digits after the point, or three that count where it is small or large."""
    return f"{score:.3f}" if score == 0 or 0.1 <= abs(score) < 10 else f"{score:.3g}"


def _labels(side: Mapping[str, Any]) -> list[Label]:
    return [Label(visible(token), word is None) for token, word in zip(side["tokens"], side["word_ids"], strict=True)]


def _note(side: str, kept: int, count: int) -> str:
    note = f"Only the first {kept:,} of {count:,} {side} tokens are shown"
    return note + ("." if side == "target" else "; colours are relative to what is shown.")


def _read_scores(values: Any, axes: Sequence[str], shape: tuple[int, int]) -> np.ndarray:
    scores = np.asarray(values, dtype=np.float32)
    if scores.size == 0:  # nested lists cannot say how long an empty axis is after another empty one
        scores = scores.reshape(*scores.shape[: len(axes)], *shape)
    if scores.ndim != len(axes) + 2 or scores.shape[-2:] != shape:
        raise InputError(
            f"The scores have shape {scores.shape}, but the axes {list(axes)} and the tokens ask for "
            f"{len(axes)} leading axes and then {shape[0]} rows and {shape[1]} columns."
        )
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0][-2:]
        raise InputError(
            f"The score of target position {row} and column {column} is not a finite number: "
            "it cannot be drawn. Replace it before drawing."
        )
    return scores


def _choose(names: Sequence[str], sizes: Sequence[int], at: Mapping[str, int]) -> tuple[Axis, ...]:
    for name in at:
        if name not in names:
            raise unknown_name("leading axis", name, names)
    axes = []
    for name, size in zip(names, sizes, strict=True):
        if size == 0:
            raise InputError(f"The axis {name!r} of the scores has no positions: there is nothing to draw.")
        position = at.get(name)
        if position is not None and not -size <= position < size:
            raise InputError(f"There is no {name} {position}: choose from 0 to {size - 1}.")
        axes.append(Axis(visible(name), size, None if position is None else position % size))
    return tuple(axes)


def _select(scores: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    chosen = scores[tuple(slice(None) if axis.chosen is None else axis.chosen for axis in axes)]
    averaged = tuple(range(chosen.ndim - 2))
    return chosen.mean(axis=averaged, dtype=np.float64).astype(np.float32) if averaged else chosen


def _changed_settings(attribution: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """List the settings that are not at their default; where the defaults are not known, all of them."""
    defaults = attribution.get("defaults") or {}
    return [(k, v) for k, v in attribution["settings"].items() if k not in defaults or defaults[k] != v]


def _write_setting(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return clip(visible(text), SETTING_CELLS)
