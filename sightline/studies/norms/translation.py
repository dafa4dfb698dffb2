"""The translation part of the study: word alignments read off cross-attention, by weights and by norms.

Every layer and every head of a model is read in four ways: its weights alpha or its norms || alpha f(x) ||, at the
step that outputs a word (AWO, "alignment with output") or at the step that reads it (AWI, "alignment with input"). A
layer's weights are the mean over heads, its norm that of the sum over heads. Pieces are summed over the source and
averaged over the target; each target word is linked to its best source word, to none where the end token is best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sightline.alignment.error_rate import score_alignments, score_files
from sightline.alignment.extraction import extract_alignment
from sightline.alignment.links import Alignment
from sightline.attribution import Attribution
from sightline.data.europarl import read_test_set
from sightline.data.language import GeneratedLanguage, LanguageSettings
from sightline.errors import InputError
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.studies.norms.settings import Settings, TrainingSettings
from sightline.studies.study import Step, Work
from sightline.training import train
from sightline.verbs.explaining import explain

READINGS = {"AWO": "output", "AWI": "input"}
QUANTITIES = ("weights", "norms")
TRANSLATE = "translate "
"""How the names of the steps begin that each measure one model."""
GOLD, GENERATED = "rwth-de-en", "generated"
LANGUAGE = {"stems": 60, "clauses": 1, "seed": 1}
HELD_OUT = 1000
EXAMPLE_WORDS = range(7, 13)
"""The lengths of the sentence pair that is shown."""


class Pairs(NamedTuple):
    """Sentence pairs with gold alignments, and the name of these."""

    name: str
    sources: list[str]
    targets: list[str]
    gold: list[Alignment]


def build_translation_steps(settings: Settings, data: Path | None) -> list[Step]:
    """Build a step for every model that is given, or else trained, and one for published alignments.

    Without models and without the data to train them, one step that measures nothing.
    """
    steps = [Step("aligners", partial(_score_aligners, data=data))]
    training = settings.training
    if settings.models:
        folders = find_models(Path(settings.models))
        if data is None or not (data / GOLD).is_dir():
            raise InputError(f"The models need the gold alignments {GOLD} in the folder of corpora: see --data.")
        for name, folder in folders.items():
            steps.append(Step(TRANSLATE + name, partial(_measure_given, folder=folder, data=data)))
    elif training is not None and (training.generated or (data is not None and (data / GOLD).is_dir())):
        for seed in settings.seeds:
            run = partial(_measure_trained, training=training, data=data, seed=seed)
            steps.append(Step(f"{TRANSLATE}seed {seed}", run))
    else:
        steps.append(Step(f"{TRANSLATE}none", lambda work: None))
    return steps


def find_models(folder: Path) -> dict[str, Path]:
    """List the models that a folder holds, by name: itself, or the folders in it that have a config.json."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}: --models names a folder of translation models.")
    found = [one for one in (folder, *sorted(folder.iterdir())) if (one / "config.json").is_file()]
    if not found:
        raise InputError(
            f"{folder} holds no model: a folder with a config.json is one, as `sightline train` writes it."
        )
    return {one.name: one for one in found}


def _score_aligners(work: Work, data: Path | None) -> dict[str, float] | None:
    """Score the alignments that others published for the gold standard, from German to English."""
    if data is None or not (data / GOLD / "published").is_dir():
        return None
    files = {"fast_align": "fast_align/test.deen.talp", "GIZA++": "giza/test.deen.talp"}
    gold = data / GOLD / "test.gold"
    return {
        name: score_files(data / GOLD / "published" / file, gold, base=0, gold_base=1).aer.value
        for name, file in files.items()
    }


def _measure_given(work: Work, folder: Path, data: Path) -> dict[str, Any]:
    return measure_model(load_translator(folder), read_gold_pairs(data))


def load_translator(folder: Path) -> LoadedModel:
    """Load a translation model; one that translates both ways, in the direction of the gold standard."""
    model = load(folder)
    if not model.translates:
        raise InputError(f"{folder} holds a {type(model.module).__name__}: --models names translation models.")
    return model if model.other_way is None else load(folder, source_lang="de", target_lang="en")


def read_gold_pairs(data: Path) -> Pairs:
    """Read the German-English pairs of Vilar et al. 2006, in the form of the cleaned training text."""
    test = read_test_set(data / GOLD)
    sources, targets = ([" ".join(pair[side]) for pair in test.pairs] for side in (0, 1))
    return Pairs(GOLD, sources, targets, list(test.gold))


def _measure_trained(work: Work, training: TrainingSettings, data: Path | None, seed: int) -> dict[str, Any]:
    """Train a model, and measure it."""
    if training.generated:
        language = GeneratedLanguage(LanguageSettings(**LANGUAGE))  # type: ignore[arg-type]
        generated = language.pairs(training.test_pairs, "test")
        pairs = Pairs(
            GENERATED,
            [pair.source for pair in generated],
            [pair.target for pair in generated],
            [Alignment(pair.links) for pair in generated],
        )
        corpus: dict[str, Any] = {
            "train": {"generated": LANGUAGE, "sentences": training.pairs},
            "dev": {"generated": LANGUAGE, "sentences": 200},
        }
    else:
        assert data is not None
        pairs = read_gold_pairs(data)
        corpus = europarl_data(data, training.pairs)
    result = train(build_recipe(corpus, training, seed), output=work.folder / "model", quiet=True)
    work.say(f"seed {seed}: trained, accuracy {result.dev.accuracy:.2f}")
    return measure_model(load(result.folder), pairs)


def europarl_data(data: Path, count: int) -> dict[str, Any]:
    """Build a recipe's `data` of Europarl pairs, in the form of the gold standard's."""
    return {
        "train": {
            "pairs": str((data / "europarl-de-en" / "pairs.tsv.gz").resolve()),
            "columns": [0, 1],
            "sentences": count + HELD_OUT,
        },
        "dev": {"held_out": HELD_OUT},
        "languages": ["de", "en"],
        "clean": "europarl",
    }


def build_recipe(corpus: dict[str, Any], training: TrainingSettings, seed: int) -> dict[str, Any]:
    """Build the recipe of a model."""
    return {
        "data": corpus,
        "tokenizer": {"vocabulary": training.vocabulary},
        "model": {
            "architecture": "transformer",
            "encoder_layers": training.layers,
            "decoder_layers": training.layers,
            "width": training.width,
            "heads": training.heads,
            "feed_forward": training.feed_forward,
            "dropout": 0.0 if training.generated else 0.1,
            "norm": training.norm,
        },
        "training": {
            "steps": training.steps,
            "batch_tokens": training.batch_tokens,
            "learning_rate": training.learning_rate,
            "schedule": training.schedule,
            "warmup": training.warmup,
            "checkpoint_every": max(training.steps // 10, 1),
            "average": 2,
        },
        "evaluation": {"beam": 1},
        "seed": seed,
    }


def measure_model(model: LoadedModel, pairs: Pairs) -> dict[str, Any]:
    """Measure the alignment error rate of every layer and head, and the mean norm of every layer."""
    by_layer: dict[str, list[float]] = {}
    by_head: dict[str, list[list[float]]] = {}
    norms: list[float] = []
    for reading, value in READINGS.items():
        run = partial(_explain, model, pairs, reading=value)
        by_layer[f"weights {reading}"], by_head[f"weights {reading}"] = _rates_of(
            run(method="attention", head="all"), pairs.gold, merge=lambda layer: layer.heads()
        )
        _, by_head[f"norms {reading}"] = _rates_of(run(method="norms", head="all"), pairs.gold)
        sums = _Means(run(method="norms"))
        by_layer[f"norms {reading}"], _ = _rates_of(sums, pairs.gold, merge=lambda layer: layer)
        if reading == "AWO":  # all steps; by input the last is left out
            norms = sums.means()
    return {
        "gold": pairs.name,
        "pairs": len(pairs.gold),
        "by layer": by_layer,
        "by head": by_head,
        "mean norms": norms,
        "example": _show_example(model, pairs),
    }


def _explain(model: LoadedModel, pairs: Pairs, **settings: Any) -> Iterator[Attribution]:
    return explain(model, iter(pairs.sources), iter(pairs.targets), **settings)


class _Means:
    """The mean score of every layer over all that passes through."""

    def __init__(self, attributions: Iterator[Attribution]) -> None:
        self.attributions = attributions
        self.total: Any = 0.0
        self.count = 0

    def __iter__(self) -> Iterator[Attribution]:
        for why in self.attributions:
            self.total = self.total + why.scores.sum((-2, -1), dtype=np.float64)
            self.count += why.scores.shape[-2] * why.scores.shape[-1]
            yield why

    def means(self) -> list[float]:
        return (self.total / self.count).tolist()


def _rates_of(
    attributions: Any, gold: Sequence[Alignment], merge: Callable[[Attribution], Attribution] | None = None
) -> tuple[list[float], list[list[float]]]:
    """Compute the error rates of every layer, read as `merge` gives it, and of every head where there are heads."""
    layers: dict[int, list[Alignment]] = {}
    heads: dict[tuple[int, int], list[Alignment]] = {}
    for why in attributions:
        for number in range(why.scores.shape[0]):
            layer = why.layer(number)
            if merge is not None:
                layers.setdefault(number, []).append(extract_alignment(merge(layer), "argmax"))
            for head in range(layer.scores.shape[0] if "head" in layer.axes else 0):
                heads.setdefault((number, head), []).append(extract_alignment(layer.heads(head), "argmax"))
    by_layer = [score_alignments(layers[number], gold).aer.value for number in sorted(layers)]
    by_head: list[list[float]] = []
    for number, head in sorted(heads):
        if head == 0:
            by_head.append([])
        by_head[-1].append(score_alignments(heads[number, head], gold).aer.value)
    return by_layer, by_head


def _show_example(model: LoadedModel, pairs: Pairs) -> dict[str, Any]:
    """Keep the matrices of one pair, word by word, with its gold links (figures 8 and 13 to 17)."""
    fitting = [
        number
        for number, (source, target) in enumerate(zip(pairs.sources, pairs.targets, strict=True))
        if len(source.split()) in EXAMPLE_WORDS and len(target.split()) in EXAMPLE_WORDS
    ]
    chosen = fitting[0] if fitting else 0
    source, target = pairs.sources[chosen], pairs.targets[chosen]
    layers: dict[str, Any] = {}
    for reading, value in READINGS.items():
        weights = explain(model, source, target, method="attention", reading=value).words()
        norms = explain(model, source, target, method="norms", reading=value).words()
        for quantity, why in (("weights", weights), ("norms", norms)):
            rows = np.flatnonzero(~why.target.special)
            layers[f"{quantity} {reading}"] = why.scores[:, rows].tolist()
    return {
        "source": list(weights.source.pieces),
        "target": target.split(),
        "layers": layers,
        "gold": sorted([target_word, source_word] for source_word, target_word in pairs.gold[chosen].links),
    }
