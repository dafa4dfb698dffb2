"""The translation models of the study: which there are, on what they are trained, and how.

    small baseline, fixed, anneal, gate    each fusion of the paper, and none, on a small text
    large baseline, gate                   the same on a larger one: the paper gains most where there is little
    alpha A                                the gate at other prices of the mask, on the small text (figure 4)
    variant V                              the gate trained in other ways, on the small text

A step trains one system from several seeds, and keeps each run when it is measured. Systems with the same seed see the
same text in the same order and start from the same translation model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sightline.alignment.parallel import read_pairs
from sightline.attend.settings import RELEASED
from sightline.data.corpora import TextPair
from sightline.data.language import GeneratedLanguage, LanguageSettings
from sightline.errors import InputError
from sightline.files import write_text
from sightline.studies.calibration.measuring import measure_run
from sightline.studies.calibration.settings import GENERATED, Settings
from sightline.studies.calibration.significance import measure_gain
from sightline.studies.study import Step, Work
from sightline.training import train

GAINS = "gains"
"""The last step, which compares the systems that the others have trained."""
SIZES = ("small", "large")
FUSIONS = ("fixed", "anneal", "gate")
SYSTEMS = {"small": ("baseline", *FUSIONS), "large": ("baseline", "gate")}
LANGUAGE = LanguageSettings(stems=60, clauses=1, seed=1)
VARIANTS: dict[str, dict[str, Any]] = {
    "released": RELEASED,
    "squared": {"penalty": "squared"},
    "sum": {"renormalize": "sum"},
    "softmax": {"renormalize": "softmax"},
    "no warm-up": {"alpha_warmup": 0.0},
    "no bound": {"bound": None},
    "last layer": {"layers": "last"},
}
"""What differs from the gate with the defaults."""


def build_steps(settings: Settings, data: Path | None) -> list[Step]:
    """List one step for every system."""
    chosen: list[tuple[str, str, int, dict[str, Any] | None]] = []
    for number, size in enumerate(SIZES):
        for system in SYSTEMS[size]:
            calibration = None if system == "baseline" else {"fusion": system, "alpha": settings.alpha}
            chosen.append((f"{size} {system}", size, settings.seeds[number], calibration))
    for alpha in settings.alphas:
        chosen.append((f"alpha {alpha:g}", "small", settings.alpha_seeds, {"fusion": "gate", "alpha": alpha}))
    for variant in settings.variants:
        changed = {"fusion": "gate", "alpha": settings.alpha} | VARIANTS[variant]
        chosen.append((f"variant {variant}", "small", settings.variant_seeds, changed))
    run = partial(_run_system, settings=settings, data=data)
    steps = [Step(name, partial(run, name=name, size=size, seeds=n, calibration=c)) for name, size, n, c in chosen]
    calibrated = [name for name, _, _, calibration in chosen if calibration is not None]
    return [*steps, Step(GAINS, partial(_compare, names=calibrated, settings=settings))]


def build_recipe(
    texts: Path, settings: Settings, size: str, seed: int, calibration: dict[str, Any] | None
) -> dict[str, Any]:
    """Build the recipe of one run."""
    steps = settings.steps[SIZES.index(size)]
    recipe: dict[str, Any] = {
        "data": {
            role: {side: str(texts / f"{role}.{side}") for side in ("source", "target")} for role in ("train", "dev")
        }
        | {"languages": list(settings.languages)},
        "tokenizer": {"vocabulary": settings.vocabulary},
        "model": {
            "architecture": "transformer",
            "encoder_layers": settings.layers,
            "decoder_layers": settings.layers,
            "width": settings.width,
            "heads": settings.heads,
            "feed_forward": settings.feed_forward,
            "norm": settings.norm,
            "dropout": settings.dropout,
        },
        "training": {
            "steps": steps,
            "batch_tokens": settings.batch_tokens,
            "learning_rate": settings.learning_rate,
            "schedule": settings.schedule,
            "warmup": settings.warmup,
            "checkpoint_every": max(steps // settings.checkpoints, 1),
            "average": settings.average,
            "precision": "float32",
        },
        "evaluation": {"beam": 1},
        "seed": seed,
    }
    if calibration is not None:
        recipe["calibration"] = calibration
        if calibration.get("penalty") == "released":
            recipe["training"]["clip"] = None
    return recipe


def _run_system(
    work: Work,
    name: str,
    size: str,
    seeds: int,
    calibration: dict[str, Any] | None,
    settings: Settings,
    data: Path | None,
) -> dict[str, Any]:
    """Train a system from every seed, and measure each run."""
    texts = (work.folder / "texts").resolve()
    parts = _read_texts(settings, size, data)
    _write_texts(texts, {role: parts[role] for role in ("train", "dev")})
    runs = []
    for seed in range(1, seeds + 1):

        def measured(seed: int = seed) -> dict[str, Any]:
            recipe = build_recipe(texts, settings, size, seed, calibration)
            result = train(recipe, output=work.folder / "models" / f"seed-{seed}", quiet=True)
            return measure_run(result, parts["test"], settings)

        runs.append(work.keep(f"seed {seed}", measured))
        work.say(f"{name}, seed {seed}: BLEU {runs[-1]['bleu']:.1f}")
    return {
        "runs": runs,
        "calibration": calibration,
        "references": [target for _, target in parts["test"]],
        "pairs": len(parts["train"]),
    }


def _compare(work: Work, names: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Compare every system with the baseline that was trained on the same text from the same seeds."""
    gains = {}
    for name in names:
        baseline = work.results["large baseline" if name.startswith("large") else "small baseline"]
        system = work.results[name]
        before, after = ([run["translations"] for run in one["runs"]] for one in (baseline, system))
        count = min(len(before), len(after))
        gain = measure_gain(before[:count], after[:count], system["references"], settings.bootstraps, settings.seed)
        gains[name] = dataclasses.asdict(gain)
        work.say(f"{name}: {gain}")
    return gains


def _read_texts(settings: Settings, size: str, data: Path | None) -> dict[str, list[TextPair]]:
    """Read the pairs to train on, to choose checkpoints by, and to test on; none of the last is among the others."""
    count, dev = settings.pairs[SIZES.index(size)], settings.dev_pairs
    if settings.corpus == GENERATED:
        language = GeneratedLanguage(LANGUAGE)
        streams: dict[str, Iterator[TextPair]] = {
            role: ((one.source, one.target) for one in language.stream(role)) for role in ("train", "test")
        }
    else:
        streams = {"train": _stream(settings, "train", data), "test": _stream(settings, "val", data)}
    test = list(islice(streams["test"], settings.test_pairs))
    tested = {source for source, _ in test}
    known = [pair for pair in islice(streams["train"], dev + count) if pair[0] not in tested]
    return {"dev": known[:dev], "train": known[dev:], "test": test}


def _stream(settings: Settings, part: str, data: Path | None) -> Iterator[TextPair]:
    folder = Path(settings.corpus) if data is None else data / settings.corpus
    paths = []
    for language in settings.languages:
        places = [folder / f"{part}.{language}{ending}" for ending in ("", ".gz")]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise InputError(
                f"This preset needs {places[0]} (or .gz): name the folder of real corpora with --data, or choose the "
                "preset quick, which needs none."
            )
        paths.append(found)
    return read_pairs(*paths)


def _write_texts(folder: Path, parts: dict[str, list[TextPair]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for role, pairs in parts.items():
        for number, side in enumerate(("source", "target")):
            write_text(folder / f"{role}.{side}", "".join(f"{pair[number]}\n" for pair in pairs))
