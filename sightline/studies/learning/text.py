"""Snell et al. 2021 on text: when attention forms, and whether it follows what single words were learned to mean.

For each data set these runs are trained, their attention and probes recorded at the paper's checkpoints (A.8):

    first     the standard model; alpha and Delta are its attention and its saliency where it is best
    second    the same from another seed: alpha(tau), beta(tau), and the performance p(tau) that xi is read from
    uniform   with attention frozen uniform: beta^uf(tau)
    proxy     the bag of words: beta^px(tau)
    frozen    (classification) only the attention learns: alpha^fr(tau) (A.6)
    linear    (translation) with a linear output: the optimal attention beside beta (A.1)

Where the paper maximises over checkpoints (beta, beta^uf, beta^px, alpha^fr) the step is kept with the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from transformers import AutoTokenizer

from sightline.data.corpora import TextPair
from sightline.measures import agreement, contextualize, kendall_tau, random_agreement, summarize
from sightline.models.proxy import BagOfWords, ProxySettings, train_proxy
from sightline.studies.learning.frames import Sides, choose_example, count_probe, cut_frames, rounded
from sightline.studies.learning.traces import Trace, Traced, Tracer, measure_proxy
from sightline.studies.study import Step, Work
from sightline.training.batches import EncodedPairs, Ragged, encode_pairs
from sightline.training.classification import encode_labelled, label_names
from sightline.training.corpus import Corpora, read_corpora
from sightline.training.loop import train
from sightline.training.recipe import Recipe, read_recipe

Task = Literal["classify", "translate"]
SEEDS = {"first": 1, "second": 2, "uniform": 3, "frozen": 4, "linear": 5}
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
METRICS: dict[str, Callable[..., Any]] = {"agreement": agreement, "tau": kendall_tau}


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
    """Give the recipe of a run; all that a role changes is the seed and the form of the model."""
    place = "" if data is None or name == "generated" else f"{data.resolve()}/"
    recipe: dict[str, Any] = {
        "seed": SEEDS[role],
        "tokenizer": {"vocabulary": settings.vocabulary},
        "training": {
            "steps": settings.steps,
            "batch_texts": settings.batch,
            "batch_tokens": 1_000_000,
            "learning_rate": settings.learning_rate,
            "schedule": "constant",
            "warmup": 0,
            "betas": [0.9, 0.999],
            "label_smoothing": 0.0,
            "clip": None,
            "precision": "float32",
            "log_every": 100,
            "checkpoint_every": settings.steps,
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
    roles = ["first", "second", "uniform", "frozen" if task == "classify" else "linear"]
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
            {part: compare_runs(_runs(work.folder, part, roles)) for part in examples}
            | {"frames": _show_example(work.folder, task, recipe, corpora, examples)}
        ),
    )


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
        "second": (("attention", "lexical_probe"), ()),
        "uniform": (("lexical_probe",), ()),
        "frozen": (("attention",), ()),
        "linear": ((), ("lexical_probe", "best_attention")),
    }[role]
    # The optimal attention costs as much as a whole run: once, at the end.
    steps = [settings.steps] if role == "linear" else checkpoints(task, settings.steps)
    bleu_sentences = settings.bleu_sentences if role == "second" else 0
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
            for part in examples:
                measure_proxy(work.folder / "traces" / "proxy" / part, step, model, *sides[part])

    outputs = len(labels) or len(tokenizer)
    form = ProxySettings(settings.width, settings.batch, settings.steps, settings.learning_rate)
    train_proxy(*sides["train"], (len(tokenizer), outputs), form, seed=6, callback=record)
    return {"steps": steps}


def _encode(
    folder: Path, task: Task, recipe: Recipe, corpora: Corpora, examples: Mapping[str, Sequence[TextPair]]
) -> tuple[Any, list[str], dict[str, Sides]]:
    """Give the tokenizer of the runs, the labels (of a classifier), and all texts as the ids that the runs had."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "runs" / "first")
    labels = label_names(corpora.train) if task == "classify" else []
    texts = {"train": corpora.train} | dict(examples)
    return tokenizer, labels, {part: _ids(task, pairs, tokenizer, recipe, labels) for part, pairs in texts.items()}


def _ids(
    task: Task, pairs: Sequence[TextPair], tokenizer: Any, recipe: Recipe, labels: Sequence[str]
) -> tuple[list[list[int]], list[list[int]]]:
    """Give the pairs as the ids that the other runs read and say."""
    longest = recipe.model.max_positions
    encoded: EncodedPairs = (
        encode_labelled(pairs, tokenizer, longest, labels)[0]
        if task == "classify"
        else encode_pairs(pairs, tokenizer, longest)[0]
    )
    return _lists(encoded.source), _lists(encoded.target)


def _lists(ragged: Ragged) -> list[list[int]]:
    return [row.tolist() for row in np.split(ragged.values, ragged.starts[1:-1])]


# Comparing


def compare_runs(runs: Mapping[str, Traced]) -> dict[str, Any]:
    """Give all agreements of a set, by either metric, with the steps that were chosen, and xi.

    A(alpha, .), A(beta^uf, beta^px), A(Delta, beta^uf) as in the paper's table 2.
    """
    first, second = runs["first"].best, runs["second"]
    figures: dict[str, Any] = {"alpha step": first.step, "performance": {}, "random": _random(first, second)}
    for name, measure in METRICS.items():
        own = [_mean(measure, first, "attention", trace, "attention") for trace in second.traces]
        pairs = _compared(measure, runs, first)
        figures[name] = {
            "columns": {column: max(curve) for column, (_, curve) in pairs.items()},
            "steps": {column: steps[int(np.argmax(curve))] for column, (steps, curve) in pairs.items()},
            "curves": {column: {"step": steps, "value": curve} for column, (steps, curve) in pairs.items()},
            "own curve": {"step": second.steps, "value": own},
        }
        for kind in second.traces[0].performance:
            performances = second.performance(kind)
            figures["performance"][kind] = performances
            reached = {column: contextualize(max(curve), own, performances) for column, (_, curve) in pairs.items()}
            figures[name][f"xi {kind}"] = {column: list(value) for column, value in reached.items()}
            figures[name][f"xi {kind}"]["final"] = [performances[-1], True]
    if "linear" in runs:
        linear = runs["linear"].best
        figures["optimal"] = {
            name: _mean(measure, linear, "best_attention", linear, "lexical_probe") for name, measure in METRICS.items()
        } | {"accuracy": linear.performance["accuracy"]}
    return figures


Curves = dict[str, tuple[list[int], list[float]]]


def _compared(measure: Callable[..., Any], runs: Mapping[str, Traced], first: Trace) -> Curves:
    """Give each column's curve over the checkpoints that it is maximised over."""
    second, uniform, proxy = runs["second"], runs["uniform"], runs["proxy"]

    def over(run: Traced, fixed: Trace, u: str, v: str) -> tuple[list[int], list[float]]:
        return run.steps, [_mean(measure, fixed, u, trace, v) for trace in run.traces]

    curves = {
        "α, β": over(second, first, "attention", "lexical_probe"),
        "α, β uf": over(uniform, first, "attention", "lexical_probe"),
        "Δ, β uf": over(uniform, first, "word_saliency", "lexical_probe"),
    }
    chosen = uniform.traces[int(np.argmax(curves["α, β uf"][1]))]
    curves["β uf, β px"] = over(proxy, chosen, "lexical_probe", "lexical_probe")
    if "frozen" in runs:
        curves["α, α fr"] = over(runs["frozen"], first, "attention", "attention")
    return curves


def _mean(measure: Callable[..., Any], u: Trace, u_name: str, v: Trace, v_name: str) -> float:
    """Average a measure over all rows, in percent; rows where it is undefined are left out."""
    assert (u.mask == v.mask).all(), "all runs of a set read the same ids"
    mean = summarize(measure(u.scores[u_name], v.scores[v_name], mask=u.mask)).mean
    return 100 * mean if np.isfinite(mean) else 0.0


def _random(first: Trace, second: Traced) -> float:
    """Measure the random baseline of the agreement."""
    values = random_agreement(first.scores["attention"], second.best.scores["lexical_probe"], seed=0, mask=first.mask)
    return 100 * float(np.mean(values))


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
