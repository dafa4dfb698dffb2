"""A run's attention and probes at chosen steps of its training, on fixed examples, kept as files.

`train(..., callbacks=[Tracer(...)])` writes FOLDER/STEP.npz: the scores of each method, a row per output word, and how
good the model is then. What other methods say is added where a model is the best so far by its accuracy
(FOLDER/best.npz) or by another performance (FOLDER/best-bleu.npz).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from sacrebleu.metrics import BLEU

from sightline.alignment.saved import DAMAGED
from sightline.data.corpora import TextPair
from sightline.errors import InputError
from sightline.files import writing
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.proxy import BagOfWords
from sightline.verbs.explaining import explain, map_examples
from sightline.verbs.translating import translate

BEST = "best"
METHOD_SETTINGS: dict[str, dict[str, Any]] = {"lexical_probe": {"of": "logit"}}
"""A probe's logit orders positions as its probability does, but does not round to 1."""


@dataclass(frozen=True)
class Trace:
    """What was recorded at one step: scores by method, the mask of real positions, and performances by name."""

    step: int
    scores: Mapping[str, Float[np.ndarray, "row source"]]
    mask: Bool[np.ndarray, "row source"]
    performance: Mapping[str, float]


class Tracer:
    """Records a model at some steps; for the best of them also the methods of `at_best`."""

    def __init__(
        self,
        folder: Path,
        pairs: Sequence[TextPair],
        steps: Collection[int],
        methods: Sequence[str],
        at_best: Sequence[str] = (),
        bleu_sentences: int = 0,
    ) -> None:
        self.folder = folder
        self.pairs = list(pairs)
        self.steps = frozenset(steps)
        self.methods = tuple(methods)
        self.at_best = tuple(at_best)
        self.bleu_sentences = bleu_sentences

    def __call__(self, step: int, model: LoadedModel) -> None:
        """Record the model if this step is one of the chosen."""
        if step not in self.steps:
            return
        performance = {"accuracy": measure_accuracy(model, self.pairs)}
        if self.bleu_sentences:
            performance["bleu"] = _measure_bleu(model, self.pairs[: self.bleu_sentences])
        scores = {name: self._explain(model, name) for name in self.methods}
        mask = real_positions(model, self.pairs)
        earlier = [trace for trace in read_traces(self.folder) if trace.step < step]
        _write(self.folder / f"{step}.npz", Trace(step, scores, mask, performance))
        best = [kind for kind, value in performance.items() if all(value > one.performance[kind] for one in earlier)]
        if best:
            scores = scores | {name: self._explain(model, name) for name in self.at_best}
        for kind in best:
            _write(_best_file(self.folder, kind), Trace(step, scores, mask, performance))

    def _explain(self, model: LoadedModel, method: str) -> Float[np.ndarray, "row source"]:
        sources, targets = (list(side) for side in zip(*self.pairs, strict=True))
        settings = METHOD_SETTINGS.get(method, {})
        found = explain(model, sources, targets, method=method, progress=False, **settings)
        return to_rows([one.flat().scores for one in found])


@torch.no_grad()
def measure_accuracy(model: LoadedModel, pairs: Sequence[TextPair]) -> float:
    """Return the percentage of outputs that are the most probable one after a true prefix."""

    def count(examples: list[Example]) -> list[tuple[int, int]]:
        with model.evaluating():
            batch = model.batch(examples)
            right = (model.logits(batch).argmax(-1) == batch.outputs) & batch.row_mask
        return list(zip(right.sum(1).tolist(), batch.row_mask.sum(1).tolist(), strict=True))

    counts = list(map_examples(model, (model.encode(*pair) for pair in pairs), count))
    right, outputs = np.sum(counts, axis=0)
    return 100 * float(right / outputs)


def _measure_bleu(model: LoadedModel, pairs: Sequence[TextPair]) -> float:
    """Return BLEU of greedy translations; of tokenised text where the set has that, without sacreBLEU's warning."""
    sources, references = zip(*pairs, strict=True)
    translations = translate(model, list(sources), progress=False, num_beams=1)
    return BLEU(force=True).corpus_score([one.text for one in translations], [list(references)]).score


def real_positions(model: LoadedModel, pairs: Sequence[TextPair]) -> Bool[np.ndarray, "row source"]:
    """Return which source positions the rows of some pairs have."""
    examples = [model.encode(*pair) for pair in pairs]
    return to_rows([np.ones((len(one.outputs), len(one.ids))) for one in examples]).astype(bool)


def to_rows(matrices: Sequence[Float[np.ndarray, "_ _"]]) -> Float[np.ndarray, "row source"]:
    """Put matrices of many examples below one another, filled up with zeros on the right."""
    width = max(matrix.shape[1] for matrix in matrices)
    filled = [np.pad(matrix, ((0, 0), (0, width - matrix.shape[1]))) for matrix in matrices]
    return np.concatenate(filled).astype(np.float32)


def measure_proxy(
    folder: Path,
    step: int,
    model: BagOfWords,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    loss: float,
) -> None:
    """Record the probe of a bag of words, as a tracer records a model's, with its validation loss."""
    probes = [model.log_odds(source, target) for source, target in zip(sources, targets, strict=True)]
    mask = to_rows([np.ones_like(probe) for probe in probes]).astype(bool)
    _write(folder / f"{step}.npz", Trace(step, {"lexical_probe": to_rows(probes)}, mask, {"loss": loss}))


def _best_file(folder: Path, performance: str) -> Path:
    return folder / (f"{BEST}.npz" if performance == "accuracy" else f"{BEST}-{performance}.npz")


def _write(path: Path, trace: Trace) -> None:
    """Write a trace, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {f"scores {name}": values for name, values in trace.scores.items()}
    arrays |= {f"performance {name}": np.array(value) for name, value in trace.performance.items()}
    with writing(path, "wb") as file:
        np.savez_compressed(file, step=np.array(trace.step), mask=trace.mask, **arrays)


def read_trace(path: Path) -> Trace:
    """Read what was recorded at one step."""
    split: dict[str, dict[str, Any]] = {"scores": {}, "performance": {}}
    try:
        with np.load(path, allow_pickle=False) as file:
            named = {name: file[name] for name in file.files}
        for name, values in named.items():
            kind, _, rest = name.partition(" ")
            if kind in split:
                split[kind][rest] = values if kind == "scores" else float(values)
        return Trace(int(named["step"]), split["scores"], named["mask"], split["performance"])
    except (*DAMAGED, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): remove the folder of its step, which is then computed again."
        ) from error


def read_traces(folder: Path) -> list[Trace]:
    """Read all steps of a run, in order; without the best, which is one of them."""
    return sorted(
        (read_trace(path) for path in folder.glob("[0-9]*.npz")),
        key=lambda trace: trace.step,
    )


class Traced:
    """A run that was traced: its steps, and the best of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def traces(self) -> list[Trace]:
        return read_traces(self.folder)

    def best_by(self, performance: str) -> Trace:
        """Return the step at which a performance was best, with all that was recorded there."""
        return read_trace(_best_file(self.folder, performance))

    @property
    def steps(self) -> list[int]:
        return [trace.step for trace in self.traces]

    def performance(self, name: str) -> list[float]:
        """Return how good the model was, step by step."""
        return [trace.performance[name] for trace in self.traces]
