"""The steps of the study of sparse attention: the classifiers that are trained, on which text.

For each data set and each encoder there is a model with every projection, and two adversaries of the one with softmax;
those that the tables compare, and the adversaries, with several seeds. `measuring` measures each of them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sightline.data.labelled import Labelled, read_labelled
from sightline.files import write_text
from sightline.json_files import read_json
from sightline.measures import js_divergence, summarize
from sightline.studies.sparsity.measuring import measure_model, read_attention
from sightline.studies.sparsity.settings import Settings
from sightline.studies.study import Step, Work
from sightline.training import TrainingResult, train
from sightline.training.run_folder import RESULT

DATA_SETS = ("sst", "20news-sports", "imdb")
"""The paper's, the quickest first."""
ENCODERS: dict[str, dict[str, Any]] = {
    "lstm": {"encoder": "lstm", "layers": 1, "alignment": "additive"},
    "transformer": {"encoder": "transformer", "layers": 2, "alignment": "dot"},
}
COMPARED = ("softmax", "sparsemax")
"""The projections that the paper's tables compare."""
FEWEST_WORDS = 3  # a correlation over fewer says nothing
FAR = 0.3
"""A Jensen-Shannon divergence (at most 0.69) from which on attention is elsewhere."""
SMALL_LOSS = 0.02
"""A loss of accuracy that counts as none; the paper's adversaries that are trained anew lose at most this."""


def projection_name(value: float | int) -> str:
    """Name sparsegen at a lambda; at 0 it is sparsemax."""
    return "sparsemax" if value == 0 else f"sparsegen:{value:g}"


def build_steps(settings: Settings, data: Path | None) -> list[Step]:
    """Build one step for each data set that is found; without any, one on generated reviews."""
    found = [name for name in DATA_SETS if data is not None and (data / name).is_dir()] or ["generated"]
    return [Step(name, lambda work, name=name: _study_set(work, name, data, settings)) for name in found]  # type: ignore[misc]


def _study_set(work: Work, name: str, data: Path | None, settings: Settings) -> dict[str, Any]:
    """Train all models of a data set, and measure each of them."""
    texts = _prepare_texts(work.folder / "texts", name, data, settings)
    documents = [one.text for one in texts["test"] if len(one.text.split()) >= FEWEST_WORDS]
    projections = ["softmax", *map(projection_name, settings.lambdas)]
    models: dict[str, Any] = {}
    for encoder, seed in itertools.product(ENCODERS, settings.seeds):
        for projection in projections if seed == settings.seeds[0] else COMPARED:
            label = model_label(encoder, projection, seed, settings)
            measure = partial(_train_model, work.folder, settings, encoder, projection, seed, documents)
            models[label] = work.keep(label, measure)
            work.say(f"{name}, {label}: accuracy {models[label]['accuracy']:.2f}")
        for kind in ("frozen", "unfrozen"):
            label = model_label(encoder, kind, seed, settings)
            models[label] = work.keep(
                label, partial(_find_adversary, work.folder, settings, encoder, kind, seed, documents)
            )
            figures = models[label]
            work.say(f"{name}, {label}: accuracy {figures['accuracy']:.2f}, JSD {figures['divergence']:.2f}")
    return {"train": len(texts["train"]), "test": len(texts["test"]), "models": models}


def model_label(encoder: str, kind: str, seed: int, settings: Settings) -> str:
    """Name a model by its encoder and its projection or kind of adversary; of all seeds but the first with the seed."""
    return f"{encoder} {kind}" if seed == settings.seeds[0] else f"{encoder} {kind}, seed {seed}"


def _train_model(
    folder: Path, settings: Settings, encoder: str, projection: str, seed: int, documents: Sequence[str]
) -> dict[str, Any]:
    """Train a model and measure it."""
    number = list(ENCODERS).index(encoder)
    recipe = _recipe(folder / "texts", settings, encoder, projection, seed)
    recipe["training"]["steps"] = settings.steps[number]
    recipe["training"]["learning_rate"] = settings.learning_rates[number]
    recipe["training"]["attention_rate"] = settings.attention_rates[number]
    result = train(recipe, output=_model_folder(folder, encoder, projection, seed), quiet=True)
    return {"accuracy": _accuracy(result)} | measure_model(result.folder, documents, settings, projection)


def _model_folder(folder: Path, encoder: str, kind: str, seed: int) -> Path:
    return folder / "models" / f"{encoder}-{kind.replace(':', '-')}-{seed}"


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


def _recipe(texts: Path, settings: Settings, encoder: str, projection: str, seed: int) -> dict[str, Any]:
    """Write the recipe of a model, but for its steps and learning rates."""
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
        },
        "seed": seed,
    }


def _find_adversary(
    folder: Path, settings: Settings, encoder: str, kind: str, seed: int, documents: Sequence[str]
) -> dict[str, float | int]:
    """Train an adversary of the model with softmax, and measure it.

    Training goes on until it attends elsewhere and, on the dev texts, classifies as well as the model, or too often.
    """
    base = _model_folder(folder, encoder, "softmax", seed)
    recipe = _recipe(folder / "texts", settings, encoder, "softmax", seed)
    recipe["training"] |= {
        "checkpoint_every": settings.adversary_steps,
        "learning_rate": settings.adversary_rate,
        "attention_rate": 10.0,
    }
    recipe["adversary"] = {
        "of": str(base.resolve()),
        "strength": settings.adversary_strength,
        "frozen": kind == "frozen",
    }
    output = _model_folder(folder, encoder, kind, seed)
    wanted = _dev_accuracy(base)
    for doublings in range(settings.adversary_tries):
        steps = settings.adversary_steps * 2**doublings
        result = train(recipe, output=output, set={"training.steps": steps}, quiet=True)
        divergence = _divergence(base, result.folder, documents[: settings.explained])
        if divergence > FAR and result.dev.accuracy >= wanted - SMALL_LOSS:
            break
    return {"accuracy": _accuracy(result), "divergence": divergence, "steps": steps}


def _divergence(base: Path, adversary: Path, documents: Sequence[str]) -> float:
    """Return how far an adversary attends from its base, on average over documents."""
    p, q = (read_attention(model, documents) for model in (base, adversary))
    return summarize(js_divergence(p.values, q.values, p.mask)).mean


def _dev_accuracy(model: Path) -> float:
    remedy = "Remove the folder it is in, and what was kept of that model."
    return read_json(model / RESULT, {"dev": dict}, remedy)["dev"]["accuracy"]


def _accuracy(result: TrainingResult) -> float:
    assert result.test is not None
    return result.test.accuracy
