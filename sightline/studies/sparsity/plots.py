"""The figures of the study, as plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sightline.studies.sparsity.results import ENCODER_NAMES, NAMES, averaged, spectrum
from sightline.studies.sparsity.steps import projection_name
from sightline.studies.study import Results


def draw_plots(results: Results) -> list[dict[str, Any]]:
    """Draw figures 1 to 4, and how many positions get any attention."""
    entropy, tau = "Entropy of the inputs' importance", "Kendall's τ with attention"
    in_figure_3 = {"imdb": results["imdb"]} if "imdb" in results else results
    sets = " and ".join(NAMES[name] for name in in_figure_3)
    return [
        _bars(results, "gradient", "Attention and importance by gradients (figure 1)"),
        _lines(results, ("entropy gradient x",), f"{entropy} by gradients (figure 2)", "normalised entropy"),
        _lines(results, ("entropy loo x",), f"{entropy} by leave-one-out (figure 2)", "normalised entropy"),
        _lines(in_figure_3, ("tau gradient x", "tau loo x"), f"Attention and inputs, {sets} (figure 3)", tau),
        _bars(results, "loo", "Attention and importance by leave-one-out (figure 4)"),
        _lines(results, ("support",), "Positions that get any attention", "share of positions"),
    ]


def _bars(results: Results, way: str, title: str) -> dict[str, Any]:
    series = []
    for what, name in (("x", "inputs"), ("h", "states")):
        by_model = averaged(results, f"tau {way} {what}")
        figures = list(by_model.values())
        low, high = ([_moved(figure, sign) for figure in figures] for sign in (-1, 1))
        series.append({"name": name, "y": [figure[0] for figure in figures], "low": low, "high": high})
    short = {"BiLSTM": "LSTM", "Transformer": "Transf.", "softmax": "soft", "sparsemax": "sparse"}
    groups = []
    for name, label in by_model:
        encoder, projection = label.split()
        groups.append(f"{name.removeprefix('20-')}\n{short[encoder]}\n{short[projection]}")
    return {
        "kind": "bars",
        "title": title,
        "groups": groups,
        "y": {"label": "Kendall's τ with attention"},
        "series": series,
        "note": "Mean over documents, with its standard deviation.",
    }


def _lines(results: Results, figures: Sequence[str], title: str, label: str) -> dict[str, Any]:
    lambdas = [value for value, _ in spectrum(next(iter(results.values()))["models"], "lstm")]
    places = {"softmax": 0} | {projection_name(value): place for place, value in enumerate(lambdas, start=1)}
    series = []
    for name, found in results.items():
        for encoder, shown in ENCODER_NAMES.items():
            for figure in figures:
                row = [found["models"][f"{encoder} {projection}"][figure] for projection in places]
                way = (
                    {"gradient": ", gradient", "loo": ", leave-one-out"}[figure.split()[1]] if len(figures) > 1 else ""
                )
                one = {
                    "name": f"{NAMES[name]} {shown}{way}",
                    "x": list(places.values()),
                    "y": [value[0] for value in row],
                }
                if len(results) == 1:
                    one |= {bound: [_moved(value, sign) for value in row] for bound, sign in (("low", -1), ("high", 1))}
                series.append(one)
    ticks = [[0, "softmax"], *([place, f"{value:g}"] for place, value in enumerate(lambdas, start=1))]
    return {
        "kind": "lines",
        "title": title,
        "x": {"label": "λ of sparsegen (0 is sparsemax)", "ticks": ticks},
        "y": {"label": label},
        "series": series,
        "note": "Mean over documents" + (", with its standard deviation." if len(results) == 1 else "."),
    }


def _moved(figure: Sequence[float | int | None], deviations: int) -> float | None:
    mean, deviation = figure[:2]
    return None if mean is None or deviation is None else mean + deviations * deviation
