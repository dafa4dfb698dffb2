"""The figures of the study, as plots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sightline.studies.calibration.measuring import ENTROPIES
from sightline.studies.calibration.results import CALIBRATED, by_entropy_bins, by_layer, over_seeds, priced, runs
from sightline.studies.study import Results

TAU = "Kendall's τ with the gradients"


def draw_plots(results: Results) -> list[dict[str, Any]]:
    """Draw figures 1, 2 and 4 to 7."""
    gate = "small gate"
    return [
        *_example(results, gate),
        _by_layer(results, "Attention and gradients, without calibration (figure 2)", TAU, {
            "small text": ("small baseline", "tau weights"),
            "large text": ("large baseline", "tau weights"),
        }),
        _prices(results, "mask", "Mean mask and the price of the mask (figure 4)", "mean of m"),
        _prices(results, "bleu", "BLEU and the price of the mask (figure 4)", "BLEU"),
        _by_layer(results, "Attention and masks against gradients, gate (figure 5)", TAU, {
            "attention": (gate, "tau weights"),
            "1 - m": (gate, "tau masks"),
        }),
        _by_layer(
            results,
            "Weights before and after calibration (figure 6)",
            "Jensen-Shannon divergence",
            {system: (system, "divergence") for system in CALIBRATED},
        ),
        _by_entropy(results, gate),
    ]  # fmt: skip


def _example(results: Results, system: str) -> list[dict[str, Any]]:
    """Draw one sentence before and after calibration, with the mask, layer by layer."""
    shown = runs(results, system)[0]["example"]
    if shown is None:
        return []
    tables = (("before calibration", "before"), ("after calibration", "after"), ("1 - m, what the mask takes", "mask"))
    frames = [
        {
            "name": str(layer + 1),
            "tables": [
                {"title": title, "rows": shown["target"], "columns": shown["source"], "values": shown[part][layer]}
                for title, part in tables
            ],
        }
        for layer in range(len(shown["before"]))
    ]
    return [
        {
            "kind": "frames",
            "title": "A sentence before and after calibration, and its mask (figure 1)",
            "label": "layer",
            "frames": frames,
            "note": "Means over heads, of the gate's first seed.",
        }
    ]


def _by_layer(results: Results, title: str, label: str, wanted: dict[str, tuple[str, str]]) -> dict[str, Any]:
    series = [{"name": name, "y": by_layer(results, *place).tolist()} for name, place in wanted.items()]
    groups = [f"layer {number}" for number in range(1, len(series[0]["y"]) + 1)]
    return {
        "kind": "bars",
        "title": title,
        "groups": groups,
        "y": {"label": label},
        "series": series,
        "note": "Means over seeds and test sentences.",
    }


def _prices(results: Results, figure: str, title: str, label: str) -> dict[str, Any]:
    alphas, systems = zip(*priced(results), strict=True)
    places = list(range(len(alphas)))
    if figure == "mask":
        values = [by_layer(results, system, "mask") for system in systems]
        series = [{"name": "all layers", "x": places, "y": [float(one.mean()) for one in values]}] + [
            {"name": f"layer {layer + 1}", "x": places, "y": [float(one[layer]) for one in values]}
            for layer in range(len(values[0]))
        ]
    else:
        baseline, _ = over_seeds(results, "small baseline", figure)
        means = [over_seeds(results, system, figure) for system in systems]
        series = [_with_band("gate", places, means), {"name": "baseline", "x": places, "y": [baseline] * len(places)}]
    return {
        "kind": "lines",
        "title": title,
        "x": {"label": "α", "ticks": [[place, f"{alpha:g}"] for place, alpha in zip(places, alphas, strict=True)]},
        "y": {"label": label},
        "series": series,
        "note": "Means over seeds" + (", with their standard deviation." if figure == "bleu" else "."),
    }


def _with_band(name: str, places: Sequence[int], figures: Sequence[Sequence[float]]) -> dict[str, Any]:
    bounds = {
        bound: [mean + sign * deviation for mean, deviation in figures] for bound, sign in (("low", -1), ("high", 1))
    }
    return {"name": name, "x": list(places), "y": [mean for mean, _ in figures]} | bounds


def _by_entropy(results: Results, system: str) -> dict[str, Any]:
    bins = by_entropy_bins(results, system)
    labels = [f"{low:g} to {high:g}" for low, high in pairwise(ENTROPIES)]
    ticks = [[place, label] for place, label in enumerate([*labels, f"from {ENTROPIES[-1]:g}"])]
    series = [
        {
            "name": f"layer {number}",
            "x": list(range(len(row))),
            "y": [None if value != value else value for value in row],
        }
        for number, row in enumerate(bins.tolist(), start=1)
    ]
    return {
        "kind": "lines",
        "title": "Calibration by the entropy of attention, gate (figure 7)",
        "x": {"label": "entropy of the original weights, nats", "ticks": ticks},
        "y": {"label": "Jensen-Shannon divergence"},
        "series": series,
        "note": "Means over heads, seeds and test sentences; bins with too few rows are left out.",
    }
