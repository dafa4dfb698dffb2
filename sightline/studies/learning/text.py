"""Snell et al. 2021 on text: when attention forms, and whether it follows what single words were learned to mean.

For each data set these runs are trained, their attention and probes recorded at the paper's checkpoints (A.8):

    first     the standard model; alpha and Delta are its attention and its saliency where it is best
    second    the same from other seeds: alpha(tau), beta(tau), and the performance p(tau) that xi is read from
    uniform   with attention frozen uniform: beta^uf(tau)
    proxy     the bag of words: beta^px(tau)
    frozen    (classification) only the attention learns: alpha^fr(tau) (A.6)
    linear    (translation) with a linear output: the optimal attention beside beta (A.1)

`comparing` has what is compared. Probes are logits, as in the released code: probabilities round to 1, and tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from transformers import AutoTokenizer

from sightline.data.corpora import TextPair
from sightline.models.proxy import BagOfWords, ProxySettings, proxy_loss, train_proxy
from sightline.studies.learning.comparing import SECOND, compare_runs
from sightline.studies.learning.frames import Sides, choose_example, count_probe, cut_frames, rounded
from sightline.studies.learning.traces import Traced, Tracer, measure_proxy
from sightline.studies.study import Step, Work
from sightline.training.batches import EncodedPairs, Ragged, encode_pairs
from sightline.training.classification import encode_labelled, label_names
from sightline.training.corpus import Corpora, read_corpora
from sightline.training.loop import train
from sightline.training.recipe import Recipe, read_recipe

Task = Literal["classify", "translate"]
SEEDS = {"first": 1, "second": 2, "uniform": 3, "frozen": 4, "linear": 5}
FURTHER_SEEDS = 10
"""Further second runs, "second 2" and so on, have the seeds after this one."""
LONG = ("first", "uniform")
"""The runs that A(alpha, beta^uf) is measured on, which may be longer than the others (claim 2)."""
TRANSLATIONS: dict[str, dict[str, Any]] = {
    "multi30k": {
        "train": {"source": "multi30k/train.en.gz", "target": "multi30k/train.de.gz"},
        "dev": {"source": "multi30k/val.en.gz", "target": "multi30k/val.de.gz"},
        "languages": ["en", "de"],
    },
    "hansard-en-fr": {
        "train": {"source": "hansard-en-fr/train.en.gz", "target": "hansard-en-fr/train.fr.gz"},
        "dev": {"source": "hansard-en-fr/test.en", "target": "hansard-en-fr/test.fr"},
        "languages": ["en", "fr"],
        "clean": "hansard",
    },
    "generated": {
        "train": {"generated": {"stems": 300, "clauses": 1}, "sentences": 20_000},
        "dev": {"generated": {"stems": 300, "clauses": 1}},
    },
}


@dataclass(frozen=True)
class TextSettings:
    """The sizes of the runs on text; `classify` and `translate` differ in what they train."""

    sets: tuple[str, ...]
    width: int
    embedding_width: int
    layers: int
    vocabulary: int
    steps: int
    batch: int
    learning_rate: float
    dropout: float
    max_words: int
    measured: int
    """Examples of the validation set, and as many of the training set, on which everything is measured."""
    train_sentences: int | None = None
    bleu_sentences: int = 0
    long_steps: Mapping[str, int] = field(default_factory=dict)
    """By set, the steps of the runs that are longer than the others."""
    second_runs: int = 1
    """Runs that xi is the mean of."""

    def steps_of(self, name: str, role: str) -> int:
        """Return the number of steps of a run."""
        return self.long_steps.get(name, self.steps) if role in LONG else self.steps


def checkpoints(task: Task, steps: int) -> list[int]:
    """List the steps at which runs are recorded (A.8): dense in the beginning, then regular, and the last."""
    first, every = {
        "classify": ((0, 10, 50, 100, 150, 200, 250), 250),
        "translate": ((0, 50, 100, 500, 1000, 1500), 2000),
    }[task]
    regular = range(first[-1] + every, steps + 1, every)
    return sorted({*(step for step in first if step <= steps), *regular, steps})


def build_text_steps(task: Task, settings: TextSettings, data: Path | None) -> list[Step]:
    """List the steps: one for each set that is there; without any real data, one on generated text."""
    found = [name for name in settings.sets if data is not None and (data / name).is_dir()] or ["generated"]
    measure = partial(_measure_set, task=task, settings=settings, data=data)
    return [Step(f"{task} {name}", partial(measure, name=name)) for name in found]


def build_recipe(task: Task, name: str, settings: TextSettings, role: str, data: Path | None) -> dict[str, Any]:
    """Return the recipe of a run; all that a role changes is the seed and the form of the model."""
    place = "" if data is None or name == "generated" else f"{data.resolve()}/"
    steps = settings.steps_of(name, role)
    recipe: dict[str, Any] = {
        "seed": SEEDS[role] if role in SEEDS else FURTHER_SEEDS + int(role.removeprefix(SECOND)),
        "tokenizer": {"vocabulary": settings.vocabulary},
        "training": {
            "steps": steps,
            "batch_texts": settings.batch,
            "batch_tokens": 1_000_000,
            "learning_rate": settings.learning_rate,
            "schedule": "constant",
            "warmup": 0,
            "betas": [0.9, 0.999],
            "label_smoothing": 0.0,
            "clip": None,
            "log_every": 100,
            "checkpoint_every": steps,
            "average": 1,
        },
        "evaluation": {"beam": 1},
    }
    if task == "classify":
        recipe["data"] = {
            "train": {"labelled": place + name} | _limit(settings.train_sentences),
            "dev": {"held_out": 100},
            "test": {"labelled": place + name} | _limit(settings.measured),
            "max_words": settings.max_words,
        }
        recipe["tokenizer"]["kind"] = "words"
        recipe["model"] = {
            "architecture": "classifier",
            "alignment": "uniform" if role == "uniform" else "mlp",
            "trained": "attention" if role == "frozen" else "all",
            "embedding_width": settings.embedding_width,
        }
    else:
        text = dict(TRANSLATIONS[name])
        for part, limit in (("train", settings.train_sentences), ("dev", settings.measured)):
            if "source" in text[part]:
                text[part] = {side: place + file for side, file in text[part].items()}
            text[part] = text[part] | _limit(limit)
        recipe["data"] = text | {"max_words": settings.max_words}
        recipe["model"] = {
            "architecture": "lstm",
            "attention": "uniform" if role == "uniform" else "learned",
            "combination": "linear" if role == "linear" else "relu",
        }
    recipe["model"] |= {
        "width": settings.width,
        "layers": settings.layers,
        "dropout": settings.dropout,
        "max_positions": 4 * settings.max_words,
    }
    return recipe


def _limit(sentences: int | None) -> dict[str, int]:
    return {} if sentences is None else {"sentences": sentences}


# Training and recording


def _measure_set(work: Work, task: Task, name: str, settings: TextSettings, data: Path | None) -> dict[str, Any]:
    """Train the runs of a set, and compare them on its validation and its training examples."""
    further = [f"{SECOND} {number}" for number in range(2, settings.second_runs + 1)]
    roles = ["first", SECOND, *further, "uniform", "frozen" if task == "classify" else "linear"]
    recipe = read_recipe(build_recipe(task, name, settings, "first", data))
    corpora = read_corpora(recipe.data, recipe.folder, recipe.seed)
    examples = {
        "validation": (corpora.test or corpora.dev)[: settings.measured],
        "training": corpora.train[: settings.measured],
    }
    for role in roles:
        work.keep(f"run {role}", lambda role=role: _train(work, task, name, settings, role, examples, data))  # type: ignore[misc]
        work.say(f"{name}: {role} is trained")
    work.keep("run proxy", lambda: _train_proxy(work, task, recipe, settings, corpora, examples))
    return work.keep(
        "figures",
        lambda: (
            {part: _compare(_runs(work.folder, part, roles)) for part in examples}
            | {"frames": _show_example(work.folder, task, recipe, corpora, examples)}
            | {"statistics": _count(*_encode(work.folder, task, recipe, corpora, examples))}
        ),
    )


def _compare(runs: Mapping[str, Traced]) -> dict[str, Any]:
    """Compare the runs of a set; where BLEU is measured, also with the first run chosen by it (tables 4, 6 and 8)."""
    figures = compare_runs(runs)
    return figures | ({"by bleu": compare_runs(runs, "bleu")} if "bleu" in figures["performance"] else {})


def _runs(folder: Path, part: str, roles: Iterable[str]) -> dict[str, Traced]:
    found = {role: Traced(folder / "traces" / role / part) for role in [*roles, "proxy"]}
    return {role: run for role, run in found.items() if run.folder.is_dir()}


def _train(
    work: Work,
    task: Task,
    name: str,
    settings: TextSettings,
    role: str,
    examples: Mapping[str, Sequence[TextPair]],
    data: Path | None,
) -> dict[str, Any]:
    """Train one run and record it on all examples."""
    methods, at_best = {
        "first": (("attention",), ("word_saliency",)),
        SECOND: (("attention", "lexical_probe"), ()),
        "uniform": (("lexical_probe",), ()),
        "frozen": (("attention",), ()),
        "linear": ((), ("lexical_probe", "best_attention")),
    }.get(role, (("attention",), ()))
    # The optimal attention costs as much as a whole run: once, at the end.
    steps = [settings.steps] if role == "linear" else checkpoints(task, settings.steps_of(name, role))
    bleu_sentences = settings.bleu_sentences if role == "first" or role.startswith(SECOND) else 0
    tracers = [
        Tracer(work.folder / "traces" / role / part, pairs, steps, methods, at_best, bleu_sentences)
        for part, pairs in examples.items()
        if part == "validation" or role != "linear"
    ]
    result = train(
        build_recipe(task, name, settings, role, data),
        output=work.folder / "runs" / role,
        quiet=True,
        callbacks=tracers,
    )
    return {"accuracy": result.dev.accuracy, "parameters": result.parameters, "minutes": result.minutes}


def _train_proxy(
    work: Work,
    task: Task,
    recipe: Recipe,
    settings: TextSettings,
    corpora: Corpora,
    examples: Mapping[str, Sequence[TextPair]],
) -> dict[str, Any]:
    """Train the bag of words on the same ids, and record its probe at the same steps."""
    tokenizer, labels, sides = _encode(work.folder, task, recipe, corpora, examples)
    steps = checkpoints(task, settings.steps)

    def record(step: int, model: BagOfWords) -> None:
        if step in steps:
            with torch.no_grad():
                loss, outputs = proxy_loss(model, *sides["validation"])
            for part in examples:
                folder = work.folder / "traces" / "proxy" / part
                measure_proxy(folder, step, model, *sides[part], loss=float(loss / outputs))

    outputs = len(labels) or len(tokenizer)
    form = ProxySettings(settings.width, settings.batch, settings.steps, settings.learning_rate)
    train_proxy(*sides["train"], (len(tokenizer), outputs), form, seed=6, callback=record)
    return {"steps": steps}


def _encode(
    folder: Path, task: Task, recipe: Recipe, corpora: Corpora, examples: Mapping[str, Sequence[TextPair]]
) -> tuple[Any, list[str], dict[str, Sides]]:
    """Return the tokenizer of the runs, the labels (of a classifier), and all texts as the ids that the runs had."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "runs" / "first")
    labels = label_names(corpora.train) if task == "classify" else []
    texts = {"train": corpora.train} | dict(examples)
    return tokenizer, labels, {part: _ids(task, pairs, tokenizer, recipe, labels) for part, pairs in texts.items()}


def _ids(
    task: Task, pairs: Sequence[TextPair], tokenizer: Any, recipe: Recipe, labels: Sequence[str]
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the pairs as the ids that the other runs read and say."""
    longest = recipe.model.max_positions
    encoded: EncodedPairs = (
        encode_labelled(pairs, tokenizer, longest, labels)[0]
        if task == "classify"
        else encode_pairs(pairs, tokenizer, longest)[0]
    )
    return _lists(encoded.source), _lists(encoded.target)


def _count(tokenizer: Any, labels: Sequence[str], sides: Mapping[str, Sides]) -> dict[str, Any]:
    """Count what table 9 has of a set; lengths are without the end token, and of both sides where there are two."""

    def median(part: str) -> float | str:
        source, target = (float(np.median([len(one) - 1 for one in side])) for side in sides[part])
        return source if labels else f"{source:g} / {target:g}"

    return {
        "training texts": len(sides["train"][0]),
        "median length, training": median("train"),
        "validation texts": len(sides["validation"][0]),
        "median length, validation": median("validation"),
        "vocabulary": len(tokenizer),
    }


def _lists(ragged: Ragged) -> list[list[int]]:
    return [row.tolist() for row in np.split(ragged.values, ragged.starts[1:-1])]


# Showing


def _show_example(
    folder: Path, task: Task, recipe: Recipe, corpora: Corpora, examples: Mapping[str, Sequence[TextPair]]
) -> dict[str, Any] | None:
    """Pick a short example, and give its attention and its probe at every step of the second run, and its counts."""
    tokenizer, labels, sides = _encode(folder, task, recipe, corpora, examples)
    sources, targets = sides["validation"]
    number = choose_example(sides["validation"], tokenizer.unk_token_id)
    if number is None:
        return None
    source, target = sources[number], targets[number]
    said = [labels[one] for one in target] if labels else tokenizer.convert_ids_to_tokens(target)
    return {
        "source": [token.replace("▁", "") for token in tokenizer.convert_ids_to_tokens(source)],
        "target": [token.replace("▁", "") for token in said],
        "counts": rounded(count_probe(sides["train"], source, target)),
    } | cut_frames(Traced(folder / "traces" / "second" / "validation").traces, targets, number, len(source))
