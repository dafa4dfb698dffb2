"""The classifiers of the study of sparse attention: how they are trained, and what is measured on them.

For each data set and each encoder there is a model with every projection, and two adversaries of the one with softmax.
What is measured on a model, over documents that it was not trained on (Meister et al. 2021, section 3.1):

    tau      Kendall's tau-b of attention with the importance of inputs x and of states h, by gradients (eq. 4) and by
             leave-one-out (eq. 6)
    entropy  the normalised entropy of the importance of inputs, and of inputs for each state (eq. 5)
    support  the share of positions that get any attention

A correlation that is undefined, since a row is constant, is skipped and counted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from sightline.attribution import Attribution
from sightline.data.labelled import Labelled, read_labelled
from sightline.files import write_text
from sightline.measures import entropy, js_divergence, kendall_tau, normalize, summarize, support_size
from sightline.measures.rows import PerRow
from sightline.models.loading import load
from sightline.studies.study import Step, Work
from sightline.training import TrainingResult, train
from sightline.verbs.explaining import explain

DATA_SETS = ("sst", "20news-sports", "imdb")
"""The paper's, the quickest first."""
ENCODERS: dict[str, dict[str, Any]] = {
    "lstm": {"encoder": "lstm", "layers": 1, "alignment": "additive"},
    "transformer": {"encoder": "transformer", "layers": 2, "alignment": "dot"},
}
FEWEST_WORDS = 3  # a correlation over fewer says nothing


@dataclass(frozen=True)
class Settings:
    """The sizes of the study."""

    train_texts: int
    dev_texts: int
    test_texts: int
    max_words: int
    steps: int
    checkpoint_every: int
    learning_rates: tuple[float, float]
    """Of the LSTM and of the Transformer."""
    attention_rates: tuple[float, float]
    """Of their attention, times that of the rest; the paper's appendix B has 1 or 10."""
    adversary_steps: int
    adversary_rate: float
    adversary_strength: float
    explained: int
    """Documents whose importances are measured by gradients."""
    erased: int
    """Documents whose importances are measured by leave-one-out, which needs a pass for every word."""
    dispersed: int
    """Documents of which the importance of every word for every state is measured."""
    lambdas: tuple[float | int, ...] = (-100, -10, -1, 0, 0.5, 0.9)
    width: int = 128
    embedding_width: int = 300
    vocabulary: int = 10_000
    seed: int = 1


def projection_name(value: float | int) -> str:
    """Name sparsegen at a lambda; at 0 it is sparsemax."""
    return "sparsemax" if value == 0 else f"sparsegen:{value:g}"


def build_steps(settings: Settings, data: Path | None) -> list[Step]:
    """Give one step for each data set that is found; without any, one on generated reviews."""
    found = [name for name in DATA_SETS if data is not None and (data / name).is_dir()] or ["generated"]
    return [Step(name, lambda work, name=name: _study_set(work, name, data, settings)) for name in found]  # type: ignore[misc]


def _study_set(work: Work, name: str, data: Path | None, settings: Settings) -> dict[str, Any]:
    """Train all models of a data set, and measure each of them."""
    texts = _prepare_texts(work.folder / "texts", name, data, settings)
    documents = [one.text for one in texts["test"] if len(one.text.split()) >= FEWEST_WORDS]
    projections = ["softmax", *map(projection_name, settings.lambdas)]
    models: dict[str, Any] = {}
    for number, encoder in enumerate(ENCODERS):
        for projection in projections:
            label = f"{encoder} {projection}"

            def measured(encoder: str = encoder, projection: str = projection, number: int = number) -> dict[str, Any]:
                folder = work.folder / "models" / f"{encoder}-{projection.replace(':', '-')}"
                recipe = _recipe(work.folder / "texts", settings, encoder, projection)
                recipe["training"]["learning_rate"] = settings.learning_rates[number]
                recipe["training"]["attention_rate"] = settings.attention_rates[number]
                return _measure(train(recipe, output=folder, quiet=True), documents, settings, projection)

            models[label] = work.keep(label, measured)
            work.say(f"{name}, {label}: accuracy {models[label]['accuracy']:.2f}")
        for kind in ("frozen", "unfrozen"):

            def adversary(encoder: str = encoder, kind: str = kind) -> dict[str, float]:
                return _train_adversary(work.folder, settings, encoder, kind, documents)

            models[f"{encoder} {kind}"] = work.keep(f"{encoder} {kind}", adversary)
            figures = models[f"{encoder} {kind}"]
            work.say(f"{name}, {encoder} {kind}: accuracy {figures['accuracy']:.2f}, JSD {figures['divergence']:.2f}")
    return {"train": len(texts["train"]), "test": len(texts["test"]), "models": models}


def _prepare_texts(folder: Path, name: str, data: Path | None, settings: Settings) -> dict[str, list[Labelled]]:
    """Read the texts of a set, cut them to size, and write them where the recipes find them."""
    train_texts = read_labelled(name, "train", data or Path())
    seen = {one.text for one in train_texts}
    test_texts = [one for one in read_labelled(name, "test", data or Path()) if one.text not in seen]
    parts = {
        "train": train_texts[settings.dev_texts :][: settings.train_texts],
        "dev": train_texts[: settings.dev_texts],
        "test": test_texts[: settings.test_texts],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for part, examples in parts.items():
        parts[part] = [Labelled(" ".join(one.text.split()[: settings.max_words]), one.label) for one in examples]
        write_text(folder / f"{part}.jsonl", "".join(f"{json.dumps(one._asdict())}\n" for one in parts[part]))
    return parts


def _recipe(texts: Path, settings: Settings, encoder: str, projection: str) -> dict[str, Any]:
    """Write the recipe of a model, but for its learning rates."""
    return {
        "data": {part: {"labelled": str((texts / f"{part}.jsonl").resolve())} for part in ("train", "dev", "test")}
        | {"max_words": settings.max_words},
        "tokenizer": {"kind": "words", "vocabulary": settings.vocabulary},
        "model": {
            "architecture": "classifier",
            "projection": projection,
            "width": settings.width,
            "embedding_width": settings.embedding_width,
            "max_positions": settings.max_words + 1,
        }
        | ENCODERS[encoder],
        "training": {
            "steps": settings.steps,
            "batch_texts": 32,
            "batch_tokens": 32 * (settings.max_words + 1),
            "schedule": "constant",
            "warmup": 0,
            "amsgrad": True,
            "betas": [0.9, 0.999],
            "weight_decay": 1e-5,
            "label_smoothing": 0,
            "checkpoint_every": settings.checkpoint_every,
            "average": 1,
            "precision": "float32",
        },
        "seed": settings.seed,
    }


def _train_adversary(
    folder: Path, settings: Settings, encoder: str, kind: str, documents: Sequence[str]
) -> dict[str, float]:
    """Train an adversary of the model with softmax; give its accuracy and how far its attention is from the base's."""
    base = folder / "models" / f"{encoder}-softmax"
    recipe = _recipe(folder / "texts", settings, encoder, "softmax")
    recipe["training"] |= {
        "steps": settings.adversary_steps,
        "checkpoint_every": settings.adversary_steps,
        "learning_rate": settings.adversary_rate,
        "attention_rate": 10.0,
    }
    recipe["adversary"] = {
        "of": str(base.resolve()),
        "strength": settings.adversary_strength,
        "frozen": kind == "frozen",
    }
    result = train(recipe, output=folder / "models" / f"{encoder}-{kind}", quiet=True)
    p, q = (_attention(model, documents[: settings.explained]) for model in (base, result.folder))
    return {"accuracy": _accuracy(result), "divergence": summarize(js_divergence(p.values, q.values, p.mask)).mean}


def _accuracy(result: TrainingResult) -> float:
    assert result.test is not None
    return result.test.accuracy


@dataclass(frozen=True)
class Importances:
    """One row of scores for each document, over its words."""

    values: Float[np.ndarray, "document word"]
    mask: Bool[np.ndarray, "document word"]

    @classmethod
    def of(cls, attributions: Sequence[Attribution]) -> Importances:
        """Stack the only row of each attribution, without special tokens."""
        rows = [np.asarray(one.flat().scores, dtype=float)[0, ~one.source.special] for one in attributions]
        lengths = np.array([len(row) for row in rows])
        mask = np.arange(lengths.max()) < lengths[:, None]
        values = np.zeros(mask.shape)
        values[mask] = np.concatenate(rows)
        return cls(values, mask)


def _attention(model: Any, documents: Sequence[str]) -> Importances:
    return Importances.of(explain(load(model), list(documents), method="attention", progress=False))


def _measure(result: TrainingResult, documents: Sequence[str], settings: Settings, projection: str) -> dict[str, Any]:
    """Measure a trained model on documents that it has not seen."""
    model = load(result.folder)
    attention = _attention(model, documents[: settings.explained])
    ways = {
        "gradient x": ("gradient", {"norm": "l2"}, settings.explained),
        "gradient h": ("hidden_gradient", {}, settings.explained),
        "loo x": ("erasure", {}, settings.erased),
        "loo h": ("hidden_erasure", {}, settings.erased),
    }
    measured: dict[str, Any] = {
        "accuracy": _accuracy(result),
        "support": _share(support_size(attention.values, attention.mask) / attention.mask.sum(-1)),
        "attention entropy": _share(entropy(attention.values, attention.mask, normalized=True)),
    }
    for name, (method, changes, count) in ways.items():
        importances = Importances.of(explain(model, list(documents[:count]), method=method, progress=False, **changes))
        rows = slice(len(importances.values))
        width = importances.values.shape[1]
        correlation = kendall_tau(attention.values[rows, :width], importances.values, importances.mask)
        measured[f"tau {name}"] = _share(correlation)
        shares = normalize(importances.values, importances.mask)
        measured[f"entropy {name}"] = _share(entropy(shares, importances.mask, normalized=True))
    if projection in ("softmax", "sparsemax"):
        measured["entropy state"] = _share(_dispersions(model, documents[: settings.dispersed]))
    return measured


def _dispersions(model: Any, documents: Sequence[str]) -> PerRow:
    """Give, for each document, the mean over its states of the entropy of the inputs' importance for the state."""
    found = explain(model, list(documents), method="hidden_gradient", toward="state", progress=False)
    means = []
    for one in found:
        words = ~one.source.special
        importances = np.asarray(one.flat().scores, dtype=float)[words][:, words]
        means.append(summarize(entropy(normalize(importances), normalized=True)).mean)
    return np.array(means)


def _share(values: PerRow) -> list[float | int]:
    """Give mean and deviation, then how many values were defined and undefined."""
    return list(summarize(values))
