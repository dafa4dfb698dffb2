"""The figures of the study, as plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sightline.studies.learning.copying import draw_toy_plots
from sightline.studies.learning.exact import COUNTED_PAIRS
from sightline.studies.learning.results import measured_sets
from sightline.studies.study import Results


def draw_plots(results: Results) -> list[dict[str, Any]]:
    """Draw the learning curves of every set, the proxy's first step, the toys, and attention as it forms."""
    plots: list[dict[str, Any]] = []
    for name, figures in measured_sets(results).items():
        plots.append(_learning_curves(name, figures["validation"]))
        if figures["frames"]:
            plots.append(_attention_as_it_forms(name, figures["frames"]))
    plots += draw_toy_plots(results)
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
        "note": f"Agreement in percent on the validation set; by chance {figures['random']:.1f}.",
        "x": {"label": "step"},
        "y": {"label": "percent"},
        "series": series,
    }


def _attention_as_it_forms(name: str, frames: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": "frames",
        "title": f"Attention as it forms: {name}",
        "note": "A target word a row. The probe is the probability of the word if only one position were attended to.",
        "label": "step",
        "frames": [
            {
                "name": str(step),
                "tables": [
                    {"title": "attention", "rows": frames["target"], "columns": frames["source"], "values": attention},
                    {"title": "probe", "rows": frames["target"], "columns": frames["source"], "values": probe},
                ],
            }
            for step, attention, probe in zip(frames["step"], frames["attention"], frames["probe"], strict=True)
        ],
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
        "note": f"An input word a row, an output word a column; {COUNTED_PAIRS} pairs of 6 words, the control's of 9.",
        "label": "task",
        "frames": frames,
    }
