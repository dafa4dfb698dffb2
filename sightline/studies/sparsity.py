"""Is sparse attention more interpretable? (Meister et al. 2021)

Classifiers with attention are trained with softmax and with sparsegen at several lambdas, on IMDb, 20 Newsgroups and
SST where they are found; `sightline.studies.sparsity_models` says what is measured on them. Here is what the paper
claims, its tables 1, 2, 3, 5 and 6, and its figures 1 to 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sightline.measures import kendall_tau
from sightline.studies.sparsity_models import ENCODERS, Settings, build_steps, projection_name
from sightline.studies.study import Claim, Figures, Finding, Results, Study, Table

NAMES = {"imdb": "IMDb", "20news-sports": "20-News", "sst": "SST", "generated": "generated"}
ENCODER_NAMES = {"lstm": "BiLSTM", "transformer": "Transformer"}
COMPARED = ("softmax", "sparsemax")
HIGH_ENTROPY = 0.4
"""Of a largest possible entropy of 1; the lowest in the paper's table 1 is 0.46."""
SMALL_LOSS = 0.02
"""Of accuracy; the paper's unfrozen adversaries lose at most this."""
LEARNED = 0.65
"""The accuracy (of two labels) from which on a base model has something that its adversary can lose."""
FAR = 0.3
"""A Jensen-Shannon divergence (at most 0.69) from which on attention is elsewhere."""


def _figures(columns: Sequence[str], rows: dict[str, Sequence[Any]]) -> Figures:
    return {row: dict(zip(columns, values, strict=True)) for row, values in rows.items()}


SETS = ("IMDb", "20-News", "SST")
TABLE_1 = _figures(
    SETS,
    {
        "BiLSTM softmax": ((0.71, 0.09), (0.75, 0.12), (0.93, 0.05)),
        "BiLSTM sparsemax": ((0.72, 0.10), (0.68, 0.12), (0.91, 0.07)),
        "Transformer softmax": ((0.76, 0.08), (0.48, 0.06), (0.73, 0.09)),
        "Transformer sparsemax": ((0.72, 0.09), (0.46, 0.06), (0.63, 0.08)),
    },
)
TABLE_2 = _figures(SETS, {"BiLSTM": (-0.935, -0.675, -0.866), "Transformer": (-0.830, -0.409, -0.810)})
TABLE_3 = _figures(
    ("train", "test", "accuracy Transformer", "accuracy BiLSTM"),
    {"IMDb": (25000, 4356, 0.89, 0.90), "20-News": (1426, 334, 0.91, 0.91), "SST": (6355, 1725, 0.79, 0.82)},
)
TABLE_5 = _figures(
    ("IMDb JSD", "IMDb accuracy", "SST JSD", "SST accuracy", "20-News JSD", "20-News accuracy"),
    {
        "BiLSTM frozen": (0.67, 0.76, 0.62, 0.76, 0.67, 0.78),
        "BiLSTM unfrozen": (0.67, 0.90, 0.61, 0.82, 0.67, 0.91),
        "Transformer frozen": (0.62, 0.71, 0.57, 0.76, 0.62, 0.87),
        "Transformer unfrozen": (0.64, 0.87, 0.57, 0.78, 0.62, 0.92),
    },
)
_TABLE_6_COLUMNS = tuple(f"{name} {way}" for name in SETS for way in ("gradient", "leave-one-out"))
TABLE_6_INPUTS = _figures(
    _TABLE_6_COLUMNS,
    {
        "BiLSTM softmax": ((0.36, 0.12), (0.31, 0.08), (0.24, 0.24), (0.17, 0.17), (0.25, 0.28), (0.35, 0.18)),
        "BiLSTM sparsemax": ((0.31, 0.08), (0.25, 0.06), (0.25, 0.13), (0.23, 0.09), (0.45, 0.13), (0.34, 0.15)),
        "Transformer softmax": ((0.67, 0.08), (0.20, 0.10), (0.54, 0.11), (0.05, 0.10), (0.72, 0.11), (0.33, 0.20)),
        "Transformer sparsemax": ((0.44, 0.08), (0.21, 0.09), (0.47, 0.10), (0.14, 0.15), (0.67, 0.12), (0.30, 0.23)),
    },
)
TABLE_6_STATES = _figures(
    _TABLE_6_COLUMNS,
    {
        "BiLSTM softmax": ((0.77, 0.05), (0.79, 0.05), (0.78, 0.15), (0.70, 0.19), (0.80, 0.13), (0.49, 0.17)),
        "BiLSTM sparsemax": ((0.98, 0.02), (0.98, 0.02), (0.98, 0.06), (0.99, 0.01), (0.97, 0.06), (0.98, 0.04)),
        "Transformer softmax": ((0.76, 0.04), (0.1, 0.07), (0.62, 0.13), (0.05, 0.11), (0.89, 0.07), (0.16, 0.18)),
        "Transformer sparsemax": ((0.92, 0.05), (0.19, 0.09), (0.76, 0.15), (0.15, 0.16), (0.88, 0.11), (0.25, 0.23)),
    },
)


def _compared(results: Results) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (data set, `BiLSTM softmax` and so on, figures) of the models that the tables compare."""
    for name, found in results.items():
        for encoder in ENCODERS:
            for projection in COMPARED:
                model = found["models"].get(f"{encoder} {projection}")
                if model is not None:
                    yield NAMES[name], f"{ENCODER_NAMES[encoder]} {projection}", model


def _spectrum(models: dict[str, Any], encoder: str) -> list[tuple[float, dict[str, Any]]]:
    """List the models of an encoder with sparsegen, by their lambda."""
    prefix = f"{encoder} sparsegen:"
    found = [(float(label.removeprefix(prefix)), model) for label, model in models.items() if label.startswith(prefix)]
    return sorted([*found, (0.0, models[f"{encoder} sparsemax"])], key=lambda pair: pair[0])


def trend(spectrum: Sequence[tuple[float, dict[str, Any]]], figure: str) -> float:
    """Give tau-b of lambda with the mean of a figure over documents."""
    lambdas, means = zip(
        *((value, model[figure][0]) for value, model in spectrum if model[figure][0] is not None), strict=True
    )
    return float(kendall_tau(np.array(lambdas), np.array(means)))


def _trends(results: Results, figure: str) -> dict[tuple[str, str], float]:
    """Give the trend of a figure by encoder and data set."""
    return {
        (ENCODER_NAMES[encoder], NAMES[name]): trend(_spectrum(found["models"], encoder), figure)
        for name, found in results.items()
        for encoder in ENCODERS
    }


# Tables


def _table_1(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for name, label, model in _compared(results):
        table.setdefault(label, {})[name] = model["entropy state"][:2]
    return table


def _table_2(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for (encoder, name), value in _trends(results, "entropy gradient x").items():
        table.setdefault(encoder, {})[name] = value
    return table


def _table_3(results: Results) -> Figures:
    return {
        NAMES[name]: {
            "train": found["train"],
            "test": found["test"],
            "accuracy Transformer": found["models"]["transformer softmax"]["accuracy"],
            "accuracy BiLSTM": found["models"]["lstm softmax"]["accuracy"],
        }
        for name, found in results.items()
    }


def _table_5(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for name, found in results.items():
        for encoder, shown in ENCODER_NAMES.items():
            for kind in ("frozen", "unfrozen"):
                adversary = found["models"][f"{encoder} {kind}"]
                row = table.setdefault(f"{shown} {kind}", {})
                row[f"{NAMES[name]} JSD"] = adversary["divergence"]
                row[f"{NAMES[name]} accuracy"] = adversary["accuracy"]
    return table


def _table_6(results: Results, what: str) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for name, label, model in _compared(results):
        row = table.setdefault(label, {})
        row[f"{name} gradient"] = model[f"tau gradient {what}"][:2]
        row[f"{name} leave-one-out"] = model[f"tau loo {what}"][:2]
    return table


# Claims


def _judge_states(results: Results, way: str, encoder: str = "") -> Finding | None:
    """Judge whether attention correlates more with the states' importance than with the inputs', in every model."""
    pairs = [
        (model[f"tau {way} h"][0], model[f"tau {way} x"][0])
        for _, label, model in _compared(results)
        if label.startswith(encoder)
    ]
    pairs = [pair for pair in pairs if None not in pair]
    if not pairs:
        return None
    higher = sum(states > inputs for states, inputs in pairs)
    states, inputs = np.mean(pairs, axis=0)
    return Finding(
        higher == len(pairs), f"{states:.2f} against {inputs:.2f} on average, in {higher} of {len(pairs)} models"
    )


def _judge_dispersion(results: Results) -> Finding | None:
    values = [model["entropy state"][0] for _, _, model in _compared(results)]
    return _between(values, lowest=HIGH_ENTROPY)


def _judge_input_entropy(results: Results) -> Finding | None:
    values = [
        model[f"entropy {way} x"][0]
        for found in results.values()
        for model in found["models"].values()
        for way in ("gradient", "loo")
        if f"entropy {way} x" in model
    ]
    return _between(values, lowest=HIGH_ENTROPY)


def _between(values: Sequence[float | int | None], lowest: float) -> Finding | None:
    known = [value for value in values if value is not None]
    return Finding(min(known) > lowest, f"{min(known):.2f} to {max(known):.2f}") if known else None


def _judge_falling(results: Results) -> Finding | None:
    """Judge whether attention's correlation with the inputs' importance falls as lambda rises, on IMDb."""
    if "imdb" not in results:
        return None
    found = {
        (shown, way): trend(_spectrum(results["imdb"]["models"], encoder), f"tau {way} x")
        for encoder, shown in ENCODER_NAMES.items()
        for way in ("gradient", "loo")
    }
    ours = ", ".join(f"{shown} {way} {value:+.2f}" for (shown, way), value in found.items())
    return Finding(all(value < 0 for value in found.values()), f"trend with lambda: {ours}")


def _judge_entropy_trend(results: Results) -> Finding | None:
    return _negative(_trends(results, "entropy gradient x"))


def _judge_support(results: Results) -> Finding | None:
    return _negative(_trends(results, "support"))


def _negative(trends: dict[tuple[str, str], float]) -> Finding | None:
    ours = ", ".join(f"{encoder} {name} {value:+.2f}" for (encoder, name), value in trends.items())
    return Finding(all(value < 0 for value in trends.values()), f"trend with lambda: {ours}") if trends else None


def _judge_adversaries(results: Results, kind: str) -> Finding | None:
    """Judge what adversaries lose of their base models' accuracy, where those have learned their task."""
    pairs = [
        (found["models"][f"{encoder} softmax"], found["models"][f"{encoder} {kind}"])
        for found in results.values()
        for encoder in ENCODERS
        if found["models"][f"{encoder} softmax"]["accuracy"] >= LEARNED
    ]
    if not pairs:
        return None
    losses = [base["accuracy"] - adversary["accuracy"] for base, adversary in pairs]
    loss, divergence = float(np.mean(losses)), float(np.mean([adversary["divergence"] for _, adversary in pairs]))
    as_claimed = loss > SMALL_LOSS if kind == "frozen" else loss <= SMALL_LOSS
    models = f"over {len(pairs)} models" if len(pairs) > 1 else "in 1 model"
    ours = f"loses {loss:.2f} of accuracy on average (at most {max(losses):.2f}), JSD {divergence:.2f}, {models}"
    return Finding(as_claimed and divergence > FAR, ours)


CLAIMS = (
    Claim(
        "states",
        "By gradients, attention correlates more with the importance of states than of inputs, in every model.",
        "0.62 to 0.98 against 0.24 to 0.72 (table 6, figure 1)",
        lambda results: _judge_states(results, "gradient"),
    ),
    Claim(
        "states-loo",
        "By leave-one-out too, in every BiLSTM (the paper's own figures for the Transformer go the other way).",
        "0.49 to 0.99 against 0.17 to 0.35 (table 6, figure 4)",
        lambda results: _judge_states(results, "loo", "BiLSTM"),
    ),
    Claim(
        "dispersion",
        "The inputs' importance for a state is dispersed, with softmax and sparsemax: its normalised entropy is above "
        f"{HIGH_ENTROPY} in every model.",
        "0.46 to 0.93 (table 1)",
        _judge_dispersion,
    ),
    Claim(
        "input-entropy",
        "The inputs' importance for the output is dispersed too, whatever the projection: its normalised entropy is "
        f"above {HIGH_ENTROPY} in every model.",
        "quite high across all models and settings (figure 2)",
        _judge_input_entropy,
    ),
    Claim(
        "entropy-trend",
        "That entropy falls as lambda rises (table 2 is negative; the paper's text says that it rises).",
        "-0.41 to -0.94 (table 2)",
        _judge_entropy_trend,
    ),
    Claim(
        "falling",
        "Attention's correlation with the inputs' importance falls as lambda rises, on IMDb.",
        "a downward trend (figure 3)",
        _judge_falling,
    ),
    Claim(
        "frozen",
        f"Adversaries with a frozen encoder attend elsewhere (JSD above {FAR} on average), and lose accuracy (more "
        f"than {SMALL_LOSS}).",
        "0.03 to 0.18 lost, JSD 0.57 to 0.67 (table 5)",
        lambda results: _judge_adversaries(results, "frozen"),
    ),
    Claim(
        "unfrozen",
        f"Adversaries that are trained anew attend elsewhere too, and lose none (at most {SMALL_LOSS}).",
        "0.02 lost to 0.01 gained, JSD 0.57 to 0.67 (table 5)",
        lambda results: _judge_adversaries(results, "unfrozen"),
    ),
    Claim(
        "support",
        "A larger lambda attends to fewer positions.",
        "so by definition (section 2, eq. 3)",
        _judge_support,
    ),
)


# Plots


def _draw_plots(results: Results) -> list[dict[str, Any]]:
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
    models = list(_compared(results))
    series = []
    for what, name in (("x", "inputs"), ("h", "states")):
        figures = [model[f"tau {way} {what}"] for _, _, model in models]
        low, high = ([_moved(figure, sign) for figure in figures] for sign in (-1, 1))
        series.append({"name": name, "y": [figure[0] for figure in figures], "low": low, "high": high})
    short = {"BiLSTM": "LSTM", "Transformer": "Transf.", "softmax": "soft", "sparsemax": "sparse"}
    groups = []
    for name, label, _ in models:
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
    lambdas = [value for value, _ in _spectrum(next(iter(results.values()))["models"], "lstm")]
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


STUDY = Study(
    name="sparsity",
    title="Is sparse attention more interpretable?",
    paper="Meister, Lazov, Augenstein and Cotterell 2021: Is Sparse Attention more Interpretable? (ACL 2021)",
    presets={
        "quick": Settings(
            train_texts=3000,
            dev_texts=100,
            test_texts=200,
            max_words=30,
            steps=120,
            checkpoint_every=40,
            learning_rates=(3e-3, 1e-3),
            attention_rates=(1.0, 10.0),
            adversary_steps=80,
            adversary_rate=3e-3,
            adversary_strength=1.0,
            explained=30,
            erased=30,
            dispersed=15,
            lambdas=(-10, 0, 0.9),
            embedding_width=128,
        ),
        "standard": Settings(
            train_texts=5000,
            dev_texts=300,
            test_texts=1000,
            max_words=200,
            steps=480,
            checkpoint_every=80,
            learning_rates=(1e-3, 1e-3),
            attention_rates=(1.0, 10.0),
            adversary_steps=320,
            adversary_rate=1e-3,
            adversary_strength=1.0,
            explained=300,
            erased=60,
            dispersed=30,
        ),
        "paper": Settings(
            train_texts=25_000,
            dev_texts=1000,
            test_texts=4356,
            max_words=400,
            steps=6000,
            checkpoint_every=700,
            learning_rates=(1e-4, 1e-5),
            attention_rates=(1.0, 10.0),
            adversary_steps=6000,
            adversary_rate=1e-4,
            adversary_strength=1.0,
            explained=4356,
            erased=4356,
            dispersed=4356,
            vocabulary=20_000,
        ),
    },
    steps=build_steps,
    claims=CLAIMS,
    tables=(
        Table("Entropy of the inputs' importance for states", "table 1", TABLE_1, _table_1),
        Table("Trend with lambda of the entropy of the inputs' importance, tau-b", "table 2", TABLE_2, _table_2),
        Table("Data sets and accuracy on test texts", "table 3", TABLE_3, _table_3),
        Table("Adversaries: divergence of attention, and accuracy", "table 5", TABLE_5, _table_5),
        Table(
            "Kendall's tau-b of attention with the importance of inputs",
            "table 6",
            TABLE_6_INPUTS,
            lambda r: _table_6(r, "x"),
        ),
        Table(
            "Kendall's tau-b of attention with the importance of states",
            "table 6",
            TABLE_6_STATES,
            lambda r: _table_6(r, "h"),
        ),
    ),
    plots=_draw_plots,
    deviations=(
        "The paper does not name its values of lambda: the grid is ours.",
        "Table 2 is tau-b of lambda with the mean entropy of each model; how the paper pools documents is not said.",
        "Presets other than `paper` train on fewer and shorter texts, at higher learning rates, with one seed.",
        "20 Newsgroups is the split by date (1,194 / 794 messages); IMDb's test texts are a sample of all 25,000.",
        "Weight decay is AdamW's. The learning rate of attention is that of the rest in BiLSTMs, 10 times that in "
        "Transformers and adversaries; the paper does not say where it is which.",
        "A frozen adversary trains the parameters of attention only, and from scratch.",
    ),
)
