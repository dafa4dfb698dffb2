"""The figures of the study, as plots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sightline.studies.norms.results import translators
from sightline.studies.norms.translation import QUANTITIES, READINGS
from sightline.studies.study import Results

LEAST = 1e-8
ALPHA, LENGTH, NORM = "α", "‖f(x)‖", "‖αf(x)‖"


def draw_plots(results: Results) -> list[dict[str, Any]]:
    """Draw figures 3 to 6 and 9 to 12 of the encoder, and figures 7, 8 and 13 to 17 of the translation models."""
    encoder = results["encoder"]
    plots = [
        _shares(encoder, "weights", f"{ALPHA} by category (figure 3a)", ALPHA),
        _shares(encoder, "norms", f"{NORM} by category (figure 3b)", NORM),
        _heads(encoder, "[SEP]", "figure 4"),
        _scatter(encoder),
        *_frequency(encoder),
        _frequency_by_layer(encoder),
        _singular_values(encoder),
        _heads(encoder, "[CLS]", "figure 10"),
        _heads(encoder, "comma & period", "figure 11"),
        _heads(encoder, "others", "figure 12"),
    ]
    models = translators(results)
    if models:
        plots += [_rates(models), _head_rates(models), _example(models)]
    return plots


def _shares(encoder: dict[str, Any], quantity: str, title: str, label: str) -> dict[str, Any]:
    shares = encoder["shares"][quantity]
    return {
        "kind": "lines",
        "title": title,
        "x": {"label": "layer", "ticks": _numbered(len(shares["others"]))},
        "y": {"label": label},
        "series": [
            {"name": name, "x": list(range(1, len(values) + 1)), "y": values} for name, values in shares.items()
        ],
        "note": "Summed over the tokens of a category; mean over queries, heads and inputs.",
    }


def _numbered(count: int) -> list[list[Any]]:
    return [[number, str(number)] for number in range(1, count + 1)]


def _heads(encoder: dict[str, Any], category: str, where: str) -> dict[str, Any]:
    found = encoder["categories"][category]["by head"]
    rows = [f"layer {number}" for number in range(1, len(found["weights"]) + 1)]
    columns = [f"head {number}" for number in range(1, len(found["weights"][0]) + 1)]
    return {
        "kind": "heat_map",
        "title": f"{category}, head by head ({where})",
        "tables": [
            {"title": title, "rows": rows, "columns": columns, "values": found[name]}
            for name, title in (("weights", ALPHA), ("lengths", LENGTH))
        ],
        "note": f"Rank correlation over heads {found['rho']:+.2f}. Colours go from 0 to the greatest value of a table.",
    }


def _scatter(encoder: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "points",
        "title": f"{ALPHA} and {LENGTH} of single pairs (figure 5)",
        "x": {"label": ALPHA, "scale": "log"},
        "y": {"label": LENGTH},
        "series": [
            {"name": name, "x": [max(one[0], LEAST) for one in drawn], "y": [one[1] for one in drawn]}
            for name, drawn in encoder["scatter"].items()
        ],
        "note": "Pairs of a query and a token, drawn at random, about as many of each category; weights below "
        f"{LEAST:g} are drawn there.",
    }


def _frequency(encoder: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, found in encoder["frequency"].items():
        for place, (figure, label, letter) in enumerate((("weights", ALPHA, "a"), ("lengths", LENGTH, "b")), start=1):
            yield {
                "kind": "points",
                "title": f"{label} and frequency, ranked by {name} (figure 6{letter})",
                "x": {"label": "rank", "scale": "log"},
                "y": {"label": label} | ({"scale": "log"} if figure == "weights" else {}),
                "series": [
                    {
                        "name": f"tokens, rho {found[figure]:+.2f}",
                        "x": [one[0] for one in found["drawn"]],
                        "y": [one[place] for one in found["drawn"]],
                    }
                ],
                "note": f"Means over all heads; some of {found['tokens']:,} tokens, drawn at random.",
            }


def _frequency_by_layer(encoder: dict[str, Any]) -> dict[str, Any]:
    series = [
        {"name": f"{label}, by {name}", "x": list(range(1, len(values) + 1)), "y": values}
        for name, found in encoder["frequency"].items()
        for label, values in zip((ALPHA, LENGTH), found["by layer"].values(), strict=True)
    ]
    return {
        "kind": "lines",
        "title": "Rank correlation with the rank by frequency, layer by layer",
        "x": {"label": "layer", "ticks": _numbered(len(series[0]["x"]))},
        "y": {"label": "Spearman's rho"},
        "series": series,
        "note": "Means over the heads of a layer; the paper has means over all heads only.",
    }


def _singular_values(encoder: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "lines",
        "title": "Singular values of f (figure 9)",
        "x": {"label": "place, greatest first"},
        "y": {"label": "singular value"},
        "series": [
            {
                "name": f"{layer}-{found['head'] + 1}",
                "x": list(range(1, len(found["values"]) + 1)),
                "y": found["values"],
            }
            for layer, found in enumerate(encoder["singular values"], start=1)
        ],
        "note": "Of the linear map with the bias in it (equations 5 to 7), for a head of each layer, drawn at random: "
        "layer-head.",
    }


def _rates(models: dict[str, Any]) -> dict[str, Any]:
    series = []
    for quantity in QUANTITIES:
        for reading in READINGS:
            rates = np.array([found["by layer"][f"{quantity} {reading}"] for found in models.values()])
            one: dict[str, Any] = {
                "name": f"{quantity}, {reading}",
                "x": list(range(1, rates.shape[1] + 1)),
                "y": rates.mean(0).tolist(),
            }
            if len(rates) > 1:
                one |= {"low": rates.min(0).tolist(), "high": rates.max(0).tolist()}
            series.append(one)
    return {
        "kind": "lines",
        "title": "Alignment error rate by layer (figure 7)",
        "x": {"label": "layer", "ticks": _numbered(len(series[0]["x"]))},
        "y": {"label": "AER"},
        "series": series,
        "note": f"Mean over {len(models)} models, in a band from the least to the greatest. AWO reads the step whose "
        "output is the word, AWI the step whose input it is.",
    }


def _head_rates(models: dict[str, Any]) -> dict[str, Any]:
    """Draw the first model: heads of different models do not correspond."""
    name, model = next(iter(models.items()))
    tables = []
    for quantity in QUANTITIES:
        for reading in READINGS:
            rates = np.array(model["by head"][f"{quantity} {reading}"])
            rows = [f"layer {number}" for number in range(1, rates.shape[0] + 1)]
            columns = [f"head {number}" for number in range(1, rates.shape[1] + 1)]
            title = f"{quantity}, {reading}"
            tables.append({"title": title, "rows": rows, "columns": columns, "values": (100 - rates).tolist()})
    return {
        "kind": "heat_map",
        "title": "100 - AER, head by head",
        "tables": tables,
        "note": f"Of the model {name}; darker is better.",
    }


def _example(models: dict[str, Any]) -> dict[str, Any]:
    """Draw one pair in every layer of the first model."""
    example = next(iter(models.values()))["example"]
    ways = [f"{quantity} {reading}" for quantity in QUANTITIES for reading in READINGS]
    frames = []
    for layer in range(len(example["layers"][ways[0]])):
        tables = [
            {
                "title": way,
                "rows": example["target"],
                "columns": example["source"],
                "values": example["layers"][way][layer],
                "framed": example["gold"],
            }
            for way in ways
        ]
        frames.append({"name": str(layer + 1), "tables": tables})
    return {
        "kind": "frames",
        "title": "A sentence pair in every layer (figures 8, 13 to 17)",
        "label": "layer",
        "frames": frames,
        "note": "Rows are target words, columns source words. Gold links have a frame.",
    }
