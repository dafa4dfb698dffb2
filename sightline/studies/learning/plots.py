"""The figures of the study, as plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sightline.studies.learning.exact import COUNTED_PAIRS
from sightline.studies.learning.results import measured_sets
from sightline.studies.learning.toy_claims import KEYWORD_CURVES, learned, mean_log_odds
from sightline.studies.learning.toy_models import LEARNED, Curve
from sightline.studies.study import Results


def draw_plots(results: Results) -> list[dict[str, Any]]:
    """Draw the learning curves of every set, the proxy's first step, the toys, and attention as it forms."""
    plots: list[dict[str, Any]] = []
    for name, figures in measured_sets(results).items():
        plots.append(_learning_curves(name, figures["validation"]))
        if figures["frames"]:
            plots.append(_attention_as_it_forms(name, figures["frames"]))
    plots += _toy_plots(results)
    plots.append(
        {
            "kind": "lines",
            "title": "The proxy's first step against the count table (eq. 54)",
            "note": "Root mean square difference between the derivative of the logits and 2(C - row mean).",
            "x": {"label": "width", "scale": "log"},
            "y": {"label": "difference", "scale": "log"},
            "series": [
                {"name": name, "x": results["proxy"]["widths"], "y": results["proxy"][name]["errors"]}
                for name in ("permutations", "control", "mixture")
            ],
        }
    )
    return [*plots, _count_tables(results)]


def _learning_curves(name: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    curves = figures["agreement"]["curves"] | {"α, α of run 2": figures["agreement"]["own curve"]}
    series = [{"name": f"A({column})", "x": curve["step"], "y": curve["value"]} for column, curve in curves.items()]
    accuracy = figures["performance"]["accuracy"]
    series.append({"name": "accuracy of run 2", "x": figures["agreement"]["own curve"]["step"], "y": accuracy})
    return {
        "kind": "lines",
        "title": f"How attention learns: {name}",
        "note": f"Agreement in percent on the validation set; by chance {figures['chance']['α, β uf']:.1f}.",
        "x": {"label": "step"},
        "y": {"label": "percent"},
        "series": series,
    }


def _attention_as_it_forms(name: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    frames = []
    for number, step in enumerate(shown["step"]):
        tables = {
            "attention": shown["attention"][number],
            "probe": shown["probe"][number],
            "counts (at every step)": shown["counts"],
        }
        frames.append(
            {
                "name": str(step),
                "tables": [
                    {"title": title, "rows": shown["target"], "columns": shown["source"], "values": values}
                    for title, values in tables.items()
                ],
            }
        )
    return {
        "kind": "frames",
        "title": f"Attention as it forms: {name} (figures 1 and 5)",
        "note": "An output a row. The probe is its probability if only one position were attended to; the counts are "
        "IBM Model 1's first estimate of it, from which words meet in the training set.",
        "label": "step",
        "frames": frames,
    }


def _count_tables(results: Results) -> dict[str, Any]:
    frames = []
    for name in ("permutations", "control", "mixture"):
        values = results["proxy"][name]["counts"]
        words = [str(number + 1) for number in range(len(values))]
        frames.append(
            {"name": name, "tables": [{"title": "count table C", "rows": words, "columns": words, "values": values}]}
        )
    return {
        "kind": "frames",
        "title": "Why permutations are hard: the count table (figures 4 and 8)",
        "note": f"An input word a row, an output word a column; {COUNTED_PAIRS} pairs of 6 words, "
        "out of 6, in the control out of 9, in the mixture out of either of two sets of 6.",
        "label": "task",
        "frames": frames,
    }


def _toy_plots(results: Results) -> list[dict[str, Any]]:
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
        "note": f"Mean over seeds, in a band from the least to the greatest; a run has learned above {LEARNED}.",
        "x": {"label": "step"},
        "y": {"label": "accuracy", "range": [0, 1]},
        "series": series,
    }
