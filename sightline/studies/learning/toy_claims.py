"""What the toy experiments of Snell et al. 2021 show: the claims on copying, heads and keywords, judged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sightline.studies.learning.toy_models import LEARNED, Curve, has_learned
from sightline.studies.learning.toy_steps import SCENARIOS
from sightline.studies.study import Finding, Results

MERGE = "mean"
"""How heads become one in the claim, as in the released code."""
KEYWORD_CURVES = ("keyword", "one behind", "mean", "last")


def learned(curves: Sequence[Curve]) -> str:
    """Return, in words, how many of the runs learned."""
    return f"{sum(map(has_learned, curves))} of {len(curves)} learn"


def mean_steps(curves: Sequence[Curve]) -> float:
    """Return the mean of the steps at which runs learned; those that did not count with their last one."""
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
    by_scenario = {scenario: found.get(f"{scenario}, {MERGE}") for scenario in SCENARIOS}
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
