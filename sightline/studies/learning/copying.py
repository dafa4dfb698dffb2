"""Snell et al. 2021, the toy experiments as steps of the study: which seeds learn to copy, and which heads help.

Figures 3 (sections 3.3 and A.3), 6 (section 5.2) and 7 (section 6.1), and the reordering of section 6.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from sightline.data.tasks import PairSampler, copying, copying_mixture, reordering
from sightline.studies.learning.toys import (
    LEARNED,
    CopySettings,
    Curve,
    KeywordSettings,
    combine_heads,
    has_learned,
    judge_head,
    train_copying,
    train_keyword,
)
from sightline.studies.study import Finding, Results, Step, Work

SCENARIOS = ("bad", "one good", "random")
ORDER_SEED = 7
KEYWORD_CURVES = ("keyword", "one behind", "mean", "last")


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
    merges: tuple[Literal["sum", "mean"], ...] = ("sum",)
    """The ways in which heads become one: the paper sums them (eq. 21), its released code averages."""


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
            # Other weights than those of the experiments below, which the heads must not be chosen on, and of other
            # heads: there are some with which hardly any head learns, and no head would be good.
            others = 1000 + settings.head_seeds * head + seed
            train = lambda head=head, others=others: train_copying(task, words, settings.copy, others, [head])  # noqa: E731
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
                    task, words, settings.copy, seed, heads, merge
                )
                curve = work.keep(f"{merge} {scenario} seed {seed}", train)
                found.setdefault(f"{scenario}, {merge}", []).append(curve)
                work.say(f"{scenario} heads, {merge}, seed {seed}: accuracy {curve['accuracy'][-1]:.2f}")
    return found


# Judging


def learned(curves: Sequence[Curve]) -> str:
    """Say how many of the runs learned."""
    return f"{sum(map(has_learned, curves))} of {len(curves)} learn"


def mean_steps(curves: Sequence[Curve]) -> float:
    """Give the mean of the steps at which runs learned; those that did not count with their last one."""
    firsts = []
    for curve in curves:
        reached = [step for step, accuracy in zip(curve["step"], curve["accuracy"], strict=True) if accuracy > LEARNED]
        firsts.append(reached[0] if reached else curve["step"][-1])
    return float(np.mean(firsts))


def judge_copying(results: Results) -> Finding | None:
    """Claim 3: permutations fail on some seeds, words out of more always learn."""
    hard, easy = results["toy permutations"], results["toy control"]
    holds = not all(map(has_learned, hard)) and all(map(has_learned, easy))
    return Finding(holds, f"permutations: {learned(hard)}; out of more words: {learned(easy)}")


def judge_mixture(results: Results) -> Finding | None:
    """Claim 7: a mixture of permutations fails on some seeds as well."""
    hard, easy = results["toy mixture"], results["toy control"]
    holds = not all(map(has_learned, hard)) and mean_steps(hard) > mean_steps(easy)
    return Finding(holds, f"mixture: {learned(hard)}, against {learned(easy)}")


def judge_reordering(results: Results) -> Finding | None:
    """Claim 8: a fixed random order is not learned in the time in which copying is."""
    other, copied = results["toy reordering"], results["toy control"]
    return Finding(
        not any(map(has_learned, other)) and all(map(has_learned, copied)),
        f"reordering: {learned(other)} (accuracy {_last_mean(other):.2f}); copying: {learned(copied)}",
    )


def judge_heads(results: Results) -> Finding | None:
    """Claim 4: bad heads fail, one good among them learns, random ones nearly always learn."""
    found = results.get("toy heads") or {}
    by_scenario = {scenario: found.get(f"{scenario}, sum") for scenario in SCENARIOS}
    if not all(by_scenario.values()):
        return None
    bad, one_good, random = ([has_learned(curve) for curve in by_scenario[name] or ()] for name in SCENARIOS)
    holds = np.mean(bad) < 0.5 < np.mean(one_good) and np.mean(random) >= 0.8
    pool = results["toy head pool"]
    shares = "; ".join(f"{name}: {learned(by_scenario[name] or ())}" for name in SCENARIOS)
    return Finding(bool(holds), f"{shares} ({len(pool['good'])} good and {len(pool['bad'])} bad heads found)")


def judge_keyword(results: Results) -> Finding | None:
    """Claim 9: the keyword's log-odds lead early, those of the last position late."""
    odds = mean_log_odds(results)
    keyword, last = np.array(odds["keyword"]), np.array(odds["last"])
    ahead = keyword > last
    early = bool(ahead[1 : len(ahead) // 4 + 1].any())
    steps = np.array(odds["step"])
    overtaken = steps[np.flatnonzero(ahead)[-1]] if ahead.any() else 0
    return Finding(
        early and bool(last[-1] > keyword[-1]),
        f"the keyword leads up to step {overtaken:g}; at the end {keyword[-1]:.1f} against {last[-1]:.1f} at the last",
    )


def judge_log_odds(results: Results) -> Finding | None:
    """Claim 13: first keyword > one behind > mean (hypothesis 2), in the end last > one behind > mean (eq. 25)."""
    odds = mean_log_odds(results)
    early = next((n for n, value in enumerate(odds["accuracy"]) if value > 0.6), 1)
    first = {name: odds[name][early] for name in KEYWORD_CURVES}
    end = {name: odds[name][-1] for name in KEYWORD_CURVES}
    holds = first["keyword"] > first["one behind"] > first["mean"] and (
        end["last"] > end["one behind"] > max(end["mean"], end["keyword"])
    )
    shown = ["/".join(f"{at[name]:.1f}" for name in KEYWORD_CURVES) for at in (first, end)]
    return Finding(
        holds, f"keyword/one behind/mean/last: {shown[0]} at step {odds['step'][early]:g}, {shown[1]} at end"
    )


def mean_log_odds(results: Results) -> Curve:
    """Average the curves of the keyword task over its seeds."""
    runs = results["toy keyword"]
    return {name: np.mean([run[name] for run in runs], axis=0).tolist() for name in runs[0]}


def _last_mean(curves: Sequence[Curve]) -> float:
    return float(np.mean([curve["accuracy"][-1] for curve in curves]))


# Drawing


def draw_toy_plots(results: Results) -> list[dict[str, Any]]:
    """Draw figures 3, 6 and 7, one line a group of runs with the least and the greatest as its band."""
    plots = [
        _accuracies(
            "Learning to copy (figure 3, section 6.2)",
            {name: results[f"toy {name}"] for name in ("permutations", "control", "mixture", "reordering")},
        )
    ]
    if results.get("toy heads"):
        plots.append(_accuracies("Heads among which one is good (figure 6)", results["toy heads"]))
    odds = mean_log_odds(results)
    plots.append(
        {
            "kind": "lines",
            "title": "Log-odds under uniform attention (figure 7)",
            "note": "Means over seeds and over texts with the keyword; eq. 22-25.",
            "x": {"label": "step"},
            "y": {"label": "log-odds gamma"},
            "series": [{"name": name, "x": odds["step"], "y": odds[name]} for name in KEYWORD_CURVES],
        }
    )
    return plots


def _accuracies(title: str, groups: dict[str, list[Curve]]) -> dict[str, Any]:
    series = []
    for name, curves in groups.items():
        steps = max((curve["step"] for curve in curves), key=len)
        runs = np.array(
            [[*curve["accuracy"], *[curve["accuracy"][-1]] * (len(steps) - len(curve["step"]))] for curve in curves]
        )
        series.append(
            {"name": f"{name}: {learned(curves)}", "x": steps, "y": runs.mean(0).tolist()}
            | {"low": runs.min(0).tolist(), "high": runs.max(0).tolist()}
        )
    return {
        "kind": "lines",
        "title": title,
        "note": f"Mean over seeds, from the least to the greatest; a run learns above {LEARNED}.",
        "x": {"label": "step"},
        "y": {"label": "accuracy", "range": [0, 1]},
        "series": series,
    }
