"""Comparing the runs of a set (Snell et al. 2021): agreements, chance, and the performance at which attention agrees.

alpha and Delta are the first run's attention and saliency where it is best. What the paper maximises over checkpoints
(beta, beta^uf, alpha^fr) is kept with the step. A(beta^uf, beta^px) is measured as the released code has it: beta^px is
the proxy's probe at its lowest validation loss, and the maximum is over the checkpoints of the uniform run. As printed,
beta^uf would be fixed (here where it agrees best with alpha), and the proxy's checkpoints gone through.

Chance is what a column's first part agrees with attention of the second run that is shuffled row by row, as released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from sightline.measures import agreement, contextualize, kendall_tau, random_agreement, summarize
from sightline.studies.learning.traces import Trace, Traced

METRICS: dict[str, Callable[..., Any]] = {"agreement": agreement, "tau": kendall_tau}
AS_PRINTED = "β uf, β px as printed"
SECOND = "second"
"""How the names of the runs begin whose performance xi is read from."""

Curves = dict[str, tuple[list[int], list[float]]]


def compare_runs(runs: Mapping[str, Traced], chosen_by: str = "accuracy") -> dict[str, Any]:
    """Return all agreements of a set, by either metric, with the steps that were chosen, chance, and xi.

    A(alpha, .), A(beta^uf, beta^px), A(Delta, beta^uf) as in the paper's table 2; `chosen_by` is the performance by
    which the first run's best checkpoint is chosen.
    """
    first, second = runs["first"].best_by(chosen_by), runs[SECOND]
    seconds = [run for role, run in runs.items() if role.startswith(SECOND)]
    figures: dict[str, Any] = {
        "alpha step": first.step,
        "performance": {kind: second.performance(kind) for kind in second.traces[0].performance},
        "chance": _chances(runs, first),
        "turn": measure_turn(runs["uniform"], first),
    }
    for name, measure in METRICS.items():
        owns = [[_mean(measure, first, "attention", trace, "attention") for trace in run.traces] for run in seconds]
        pairs = _compared(measure, runs, first)
        figures[name] = {
            "columns": {column: max(curve) for column, (_, curve) in pairs.items()},
            "steps": {column: steps[int(np.argmax(curve))] for column, (steps, curve) in pairs.items()},
            "curves": {column: {"step": steps, "value": curve} for column, (steps, curve) in pairs.items()},
            "own curve": {"step": second.steps, "value": owns[0]},
        }
        for kind in second.traces[0].performance:
            performances = [run.performance(kind) for run in seconds]
            figures[name][f"xi {kind}"] = {
                column: reach(max(curve), owns, performances) for column, (_, curve) in pairs.items()
            } | {"final": [float(np.mean([one[-1] for one in performances])), True]}
    if "linear" in runs:
        linear = runs["linear"].best_by("accuracy")
        figures["optimal"] = {
            name: _mean(measure, linear, "best_attention", linear, "lexical_probe") for name, measure in METRICS.items()
        } | {
            "accuracy": linear.performance["accuracy"],
            "chance": _chance(linear, "best_attention", second),
        }
    return figures


def reach(
    value: float, agreements: Sequence[Sequence[float]], performances: Sequence[Sequence[float]]
) -> list[float | bool]:
    """Return xi, the mean over runs of the performance at which attention agrees more, and whether all agree more."""
    found = [contextualize(value, own, reached) for own, reached in zip(agreements, performances, strict=True)]
    return [float(np.mean([one for one, _ in found])), all(got_there for _, got_there in found)]


def measure_turn(uniform: Traced, first: Trace) -> dict[str, Any]:
    """Measure how far A(alpha, beta^uf) rises to its maximum and falls after it, each with its standard error.

    The error is that of the mean difference over rows, which are taken as independent.
    """
    rows = np.array([_rows(agreement, first, "attention", trace, "lexical_probe") for trace in uniform.traces])
    top = int(np.argmax(np.nanmean(rows, axis=1)))
    return {"step": uniform.steps[top]} | {
        name: _difference(rows[top], rows[other]) for name, other in (("rise", 0), ("fall", -1))
    }


def _difference(high: Float64[np.ndarray, " row"], low: Float64[np.ndarray, " row"]) -> list[float]:
    differences = (high - low)[np.isfinite(high - low)]
    return [float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))]


def _compared(measure: Callable[..., Any], runs: Mapping[str, Traced], first: Trace) -> Curves:
    """Return each column's curve over the checkpoints that it is maximised over."""
    second, uniform, proxy = runs[SECOND], runs["uniform"], runs["proxy"]

    def over(run: Traced, fixed: Trace, u: str, v: str) -> tuple[list[int], list[float]]:
        return run.steps, [_mean(measure, fixed, u, trace, v) for trace in run.traces]

    curves = {
        "α, β": over(second, first, "attention", "lexical_probe"),
        "α, β uf": over(uniform, first, "attention", "lexical_probe"),
        "Δ, β uf": over(uniform, first, "word_saliency", "lexical_probe"),
        "β uf, β px": over(uniform, best_proxy(proxy), "lexical_probe", "lexical_probe"),
    }
    fixed = uniform.traces[int(np.argmax(curves["α, β uf"][1]))]
    curves[AS_PRINTED] = over(proxy, fixed, "lexical_probe", "lexical_probe")
    if "frozen" in runs:
        curves["α, α fr"] = over(runs["frozen"], first, "attention", "attention")
    return curves


def best_proxy(proxy: Traced) -> Trace:
    """Return the proxy where its validation loss is lowest."""
    return min(proxy.traces, key=lambda trace: trace.performance["loss"])


def _chances(runs: Mapping[str, Traced], first: Trace) -> dict[str, float]:
    """Return the random baseline of every column."""
    second, uniform = runs[SECOND], runs["uniform"]
    by_attention = _chance(first, "attention", second)
    best = uniform.traces[int(np.argmax(_compared(agreement, runs, first)["α, β uf"][1]))]
    columns = {
        "α, β": by_attention,
        "α, β uf": by_attention,
        "Δ, β uf": _chance(first, "word_saliency", second),
        "β uf, β px": _chance(best_proxy(runs["proxy"]), "lexical_probe", second),
        AS_PRINTED: _chance(best, "lexical_probe", second),
    }
    return columns | ({"α, α fr": by_attention} if "frozen" in runs else {})


def _chance(u: Trace, u_name: str, second: Traced) -> float:
    """Measure the agreement with the second run's attention, each row of it shuffled, in percent."""
    shuffled = second.best_by("accuracy").scores["attention"]
    return 100 * summarize(random_agreement(u.scores[u_name], shuffled, seed=0, mask=u.mask)).mean


def _mean(measure: Callable[..., Any], u: Trace, u_name: str, v: Trace, v_name: str) -> float:
    """Average a measure over all rows, in percent; rows where it is undefined are left out."""
    rows = _rows(measure, u, u_name, v, v_name)
    return float(np.nanmean(rows)) if np.isfinite(rows).any() else 0.0


def _rows(measure: Callable[..., Any], u: Trace, u_name: str, v: Trace, v_name: str) -> Float64[np.ndarray, " row"]:
    assert (u.mask == v.mask).all(), "all runs of a set read the same ids"
    return 100 * np.asarray(measure(u.scores[u_name], v.scores[v_name], mask=u.mask), dtype=np.float64)
