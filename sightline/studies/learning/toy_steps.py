"""The toy experiments of Snell et al. 2021 as steps of the study: which seeds learn to copy, and which heads help.

Figures 3 (sections 3.3 and A.3), 6 (section 5.2) and 7 (section 6.1), and the reordering of section 6.2. `toy_models`
has the models and trains them, `toy_claims` judges what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from sightline.data.toys import PairSampler, copying, copying_mixture, reordering
from sightline.studies.learning.toy_models import (
    CopySettings,
    Curve,
    KeywordSettings,
    combine_heads,
    judge_head,
    train_copying,
    train_keyword,
)
from sightline.studies.study import Step, Work

SCENARIOS = ("bad", "one good", "random")
ORDER_SEED = 7
JUDGING_ORDER = 1000
"""The orders of data by which heads are judged begin here: others than those of the runs that they are combined in."""


@dataclass(frozen=True)
class ToySettings:
    """The sizes of the toy experiments."""

    length: int
    words: int
    """The vocabulary of the control, which sources of `length` words are drawn from."""
    seeds: int
    copy: CopySettings
    keyword: KeywordSettings
    heads: int
    head_seeds: int
    """The runs that judge a head's initialisation."""
    wanted_heads: int
    """The good and the bad initialisations that the pool should have."""
    candidates: int
    """The initialisations that are tried for it, at most."""
    merges: tuple[Literal["sum", "mean"], ...] = ("mean", "sum")
    """The ways in which heads become one: the released code averages them, the paper sums them (eq. 21)."""
    head_weights: int = 0
    """The seed of all other weights, which every run with heads shares, as in the released code."""


def build_toy_steps(settings: ToySettings) -> list[Step]:
    """List the toy experiments."""
    steps = [Step(f"toy {name}", partial(_copy, settings=settings, name=name)) for name in tasks(settings)]
    return [
        *steps,
        Step("toy keyword", lambda work: _find_keyword(work, settings)),
        Step("toy head pool", lambda work: find_heads(work, settings)),
        Step("toy heads", lambda work: _combine(work, settings)),
    ]


def tasks(settings: ToySettings) -> dict[str, tuple[PairSampler, int]]:
    """Name the tasks, each with the size of its vocabulary."""
    length, words = settings.length, settings.words
    order = np.random.default_rng(ORDER_SEED).permutation(length).tolist()
    return {
        "permutations": (copying(length, length), length),
        "control": (copying(length, words), words),
        "mixture": (copying_mixture(length), 2 * length),
        "reordering": (reordering(length, words, order), words),
    }


def _copy(work: Work, settings: ToySettings, name: str) -> list[Curve]:
    task, words = tasks(settings)[name]
    curves = []
    for seed in range(settings.seeds):
        train = lambda seed=seed: train_copying(task, words, settings.copy, seed)  # noqa: E731
        curves.append(work.keep(f"seed {seed}", train))
        work.say(f"{name}, seed {seed}: accuracy {curves[-1]['accuracy'][-1]:.2f}")
    return curves


def _find_keyword(work: Work, settings: ToySettings) -> list[Curve]:
    return [
        work.keep(f"seed {seed}", lambda seed=seed: train_keyword(settings.keyword, seed))  # type: ignore[misc]
        for seed in range(settings.seeds)
    ]


def find_heads(work: Work, settings: ToySettings) -> dict[str, list[int]]:
    """Collect good and bad initialisations by rejection sampling; the numbers are their seeds.

    A candidate is given up as soon as its runs so far are neither all good nor all bad.
    """
    task, words = tasks(settings)["permutations"]
    pool: dict[str, list[int]] = {"good": [], "bad": [], "tried": []}
    for head in range(settings.candidates):
        if min(len(pool["good"]), len(pool["bad"])) >= settings.wanted_heads:
            break
        curves: list[Curve] = []
        for seed in range(settings.head_seeds):
            train = lambda head=head, seed=seed: train_copying(  # noqa: E731
                task, words, settings.copy, settings.head_weights, [head], order=JUDGING_ORDER + seed
            )
            curves.append(work.keep(f"head {head} seed {seed}", train))
            kind = judge_head(curves)
            if kind is None or len(pool[kind]) >= settings.wanted_heads:
                break
        else:
            assert kind is not None
            pool[kind].append(head)
        pool["tried"].append(head)
        work.say(f"head {head}: {', '.join(format(curve['accuracy'][-1], '.2f') for curve in curves)}")
    return pool


def _combine(work: Work, settings: ToySettings) -> dict[str, list[Curve]]:
    """Train models of many heads: all bad, one good, drawn at random; for each way to merge them."""
    task, words = tasks(settings)["permutations"]
    found: dict[str, list[Curve]] = {}
    for merge in settings.merges:
        for scenario in SCENARIOS:
            for seed in range(settings.seeds):
                heads = combine_heads(scenario, work.results["toy head pool"], settings.heads, seed)
                if heads is None:
                    continue
                train = lambda seed=seed, heads=heads, merge=merge: train_copying(  # noqa: E731
                    task, words, settings.copy, settings.head_weights, heads, merge, order=seed
                )
                curve = work.keep(f"{merge} {scenario} seed {seed}", train)
                found.setdefault(f"{scenario}, {merge}", []).append(curve)
                work.say(f"{scenario} heads, {merge}, seed {seed}: accuracy {curve['accuracy'][-1]:.2f}")
    return found
