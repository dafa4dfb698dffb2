"""A recorder of attention through training: how concentrated it is, and whether it looks where other methods do.

At chosen steps, on fixed pairs, it measures the cross-attention of every layer (mean over heads): its entropy, and how
often its highest position is among the highest of another method, such as a gradient or the lexical probe (the
agreement of Snell et al. 2021, eq. 10), compared with chance. One JSON object per line, written as it goes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from transformers import TrainerCallback

from sightline.attribution import Attribution
from sightline.files import append_line, write_text
from sightline.json_files import read_json_lines
from sightline.measures.agreement import agreement, random_agreement
from sightline.measures.distributions import entropy, normalize
from sightline.measures.rows import PerRow
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.verbs.explaining import explain


class AttentionRecorder:
    """Measures a model on some pairs at some steps, for `train(..., callbacks=[recorder])`.

    `steps` are the numbers of steps, or the number of steps between two measurements, from 0. `methods` are
    those to compare attention with.
    """

    def __init__(
        self,
        path: str | Path,
        sources: Sequence[str],
        targets: Sequence[str],
        steps: Collection[int] | int,
        methods: Sequence[str] = ("gradient",),
        seed: int = 0,
    ) -> None:
        self.path = Path(path)
        self.sources = list(sources)
        self.targets = list(targets)
        self.steps = steps
        self.methods = tuple(methods)
        self.seed = seed
        self._opened = False

    def __call__(self, step: int, model: LoadedModel) -> None:
        """Measure the model if this step is one of the chosen."""
        chosen = step % self.steps == 0 if isinstance(self.steps, int) else step in self.steps
        if chosen:
            self._write({"step": step} | self.measure(model))

    def measure(self, model: LoadedModel) -> dict[str, Any]:
        """Return, layer by layer, the means over all target positions."""
        attention = self._explain(model, "attention")
        figures: dict[str, Any] = {"entropy": _mean_by_layer([entropy(normalize(one)) for one in attention])}
        for name in self.methods:
            other = [one.flat() for one in self._explain(model, name)]
            pairs = list(zip(attention, other, strict=True))
            figures[f"agreement with {name}"] = _mean_by_layer([agreement(u, v) for u, v in pairs])
            by_chance = [random_agreement(u, v, seed=self.seed + i) for i, (u, v) in enumerate(pairs)]
            figures[f"agreement with {name} by chance"] = _mean_by_layer(by_chance)
        return figures

    def _explain(self, model: LoadedModel, method: str) -> list[Attribution]:
        return explain(model, self.sources, self.targets, method=method, progress=False)

    def _write(self, figures: dict[str, Any]) -> None:
        if not self._opened:  # what an interrupted run wrote after its last checkpoint is happening again
            remedy = "Record into another file, or remove this one."
            lines = read_json_lines(self.path, {"step": int}, remedy) if self.path.exists() else ()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, "".join(f"{line}\n" for line, earlier in lines if earlier["step"] < figures["step"]))
            self._opened = True
        append_line(self.path, json.dumps(figures))


def _mean_by_layer(values: Sequence[PerRow]) -> list[float]:
    """Average (layer, target) arrays over the targets of all examples."""
    return np.concatenate(values, axis=-1).mean(-1).tolist()


class RecorderCallback(TrainerCallback):
    """The same recorder in transformers' Trainer: `Trainer(..., callbacks=[RecorderCallback(recorder)])`."""

    def __init__(self, recorder: AttentionRecorder) -> None:
        self.recorder = recorder

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._record(state, kwargs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._record(state, kwargs)

    def _record(self, state: Any, kwargs: dict[str, Any]) -> None:
        if state.is_world_process_zero:
            self.recorder(state.global_step, load(kwargs["model"], kwargs["processing_class"]))
