"""The figures of the study, as plots."""

from __future__ import annotations

from functools import partial
from typing import Any

from sightline.studies.saliency.published import (
    ARCHITECTURES,
    ATTENTION,
    LI_SMOOTH,
    OURS_GRAD,
    OURS_SMOOTH,
    PRINTED_METHODS,
)
from sightline.studies.saliency.results import DECODINGS, directions, joined_rate, noise_of, of_model, rate_of
from sightline.studies.saliency.steps import FORCED, FREE
from sightline.studies.study import Results

WORDS = "Rows are target words, columns source words; negative scores are white. Gold links have a frame."


def draw_plots(results: Results) -> list[dict[str, Any]]:
    """Draw figures 1 to 3, and tables 1 to 3 as charts."""
    return [
        _shown(results, "conv", (ATTENTION, OURS_GRAD, OURS_SMOOTH), "Figure 1: attention and word saliency of FConv"),
        _shown(
            results, "conv", (LI_SMOOTH, OURS_SMOOTH), "Figure 2: Li's measure, without polarity, and word saliency"
        ),
        _noise_shown(results),
        *_rates(results),
        *(_by_noise(results, figure) for figure in ("entropy", "rate")),
    ]


def _example(results: Results, architecture: str) -> dict[str, Any]:
    return of_model(results, architecture, directions(results)[0])["example"]


def _table(example: dict[str, Any], title: str, values: list[list[float]]) -> dict[str, Any]:
    return {
        "title": title,
        "rows": example["target"],
        "columns": example["source"],
        "values": values,
        "framed": example["gold"],
    }


def _shown(results: Results, architecture: str, methods: tuple[str, ...], title: str) -> dict[str, Any]:
    example = _example(results, architecture)
    return {
        "kind": "heat_map",
        "title": title,
        "tables": [_table(example, method, example["methods"][method]) for method in methods],
        "note": WORDS,
    }


def _noise_shown(results: Results) -> dict[str, Any]:
    example = _example(results, "transformer")
    return {
        "kind": "heat_map",
        "title": "Figure 3: word saliency of the Transformer by noise",
        "tables": [_table(example, name, values) for name, values in example["noise"].items()],
        "note": WORDS,
    }


def _rates(results: Results) -> list[dict[str, Any]]:
    both = directions(results)

    def mean(decoding: str, architecture: str, method: str) -> float:
        return sum(rate_of(results, decoding, architecture, one, method) for one in both) / len(both)

    charts = {
        "forced decoding (table 1)": partial(mean, FORCED),
        "forced decoding, both directions joined (table 1)": partial(joined_rate, results),
        "free decoding (table 2)": partial(mean, FREE),
    }
    return [
        {
            "kind": "bars",
            "title": f"Alignment error rate, {title}",
            "groups": [method.replace(", ", ",\n").replace(" attention", "\nattention") for method in PRINTED_METHODS],
            "y": {"label": "AER"},
            "series": [
                {"name": name, "y": [measured(architecture, method) for method in PRINTED_METHODS]}
                for architecture, name in ARCHITECTURES.items()
            ],
            "note": "" if "joined" in title else "The mean of both directions.",
        }
        for title, measured in charts.items()
    ]


def _by_noise(results: Results, figure: str) -> dict[str, Any]:
    names = {"entropy": "Entropy by noise (table 3)", "rate": "Alignment error rate by noise"}
    series = []
    for architecture, name in ARCHITECTURES.items():
        for decoding in DECODINGS:
            by_sigma = {
                float(column.split()[1]): found[figure]
                for column, found in noise_of(results, architecture, decoding).items()
                if column != ATTENTION
            }
            series.append({"name": f"{name}, {decoding}", "x": list(by_sigma), "y": list(by_sigma.values())})
    return {
        "kind": "lines",
        "title": names[figure],
        "x": {"label": "sigma"},
        "y": {"label": "nats" if figure == "entropy" else "AER"},
        "series": series,
        "note": "Word saliency with SmoothGrad on the first pairs, in one direction.",
    }
