"""Is sparse attention more interpretable? (Meister et al. 2021).

Classifiers with attention are trained with softmax and with sparsegen at several lambdas, on IMDb, 20 Newsgroups and
SST where they are found: `steps` trains them, `measuring` measures them, and `published` has the paper's figures. Here
is what it claims, with its tables 1, 2, 3, 5 and 6; `plots` draws its figures 1 to 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sightline.studies.sparsity.plots import draw_plots
from sightline.studies.sparsity.published import TABLE_1, TABLE_2, TABLE_3, TABLE_5, TABLE_6_INPUTS, TABLE_6_STATES
from sightline.studies.sparsity.results import (
    ENCODER_NAMES,
    NAMES,
    averaged,
    compared,
    of_all_seeds,
    spectrum,
    trend,
    trends,
)
from sightline.studies.sparsity.settings import PAPER, QUICK, STANDARD
from sightline.studies.sparsity.steps import ENCODERS, FAR, SMALL_LOSS, build_steps
from sightline.studies.study import Claim, Figures, Finding, Results, Study, Table

HIGH_ENTROPY = 0.4
"""Of a largest possible entropy of 1; the lowest in the paper's table 1 is 0.46."""
LEARNED = 0.65
"""The accuracy (of two labels) from which on a base model has something that its adversary can lose."""
ALIKE = 0.9
"""A tau-b from which on two measures are nearly identical."""


# Tables


def _table_of(results: Results, figures: Mapping[str, str]) -> Figures:
    """Tabulate figures of the models that the tables compare; `figures` is by column, after the data set."""
    table: dict[str, dict[str, Any]] = {}
    for column, figure in figures.items():
        for (name, label), value in averaged(results, figure).items():
            table.setdefault(label, {})[f"{name} {column}".strip()] = value
    return table


def _table_1(results: Results) -> Figures:
    return _table_of(results, {"": "entropy state"})


def _table_2(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for (encoder, name), value in trends(results, "entropy gradient x").items():
        table.setdefault(encoder, {})[name] = value
    return table


def _table_3(results: Results) -> Figures:
    return {
        NAMES[name]: {
            "train": found["train"],
            "test": found["test"],
            "accuracy Transformer": _mean(found["models"], "transformer softmax", "accuracy"),
            "accuracy BiLSTM": _mean(found["models"], "lstm softmax", "accuracy"),
        }
        for name, found in results.items()
    }


def _table_5(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for name, found in results.items():
        for encoder, shown in ENCODER_NAMES.items():
            for kind in ("frozen", "unfrozen"):
                row = table.setdefault(f"{shown} {kind}", {})
                row[f"{NAMES[name]} JSD"] = _mean(found["models"], f"{encoder} {kind}", "divergence")
                row[f"{NAMES[name]} accuracy"] = _mean(found["models"], f"{encoder} {kind}", "accuracy")
    return table


def _mean(models: dict[str, Any], label: str, figure: str) -> float:
    """Return the mean over seeds of a plain figure."""
    return float(np.mean([model[figure] for model in of_all_seeds(models, label)]))


def _table_6(results: Results, what: str) -> Figures:
    return _table_of(results, {"gradient": f"tau gradient {what}", "leave-one-out": f"tau loo {what}"})


# Claims


def _judge_states(results: Results, way: str, encoder: str = "") -> Finding | None:
    """Judge whether attention correlates more with the states' importance than with the inputs', in every model."""
    pairs = [
        (model[f"tau {way} h"][0], model[f"tau {way} x"][0])
        for _, label, model in compared(results)
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
    values = [model["entropy state"][0] for _, _, model in compared(results)]
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
        (shown, name): trend(spectrum(results["imdb"]["models"], encoder), f"tau {way} x")
        for encoder, shown in ENCODER_NAMES.items()
        for way, name in (("gradient", "by gradients"), ("loo", "by leave-one-out"))
    }
    ours = ", ".join(f"{shown} {way} {value:+.2f}" for (shown, way), value in found.items())
    return Finding(all(value < 0 for value in found.values()), f"trend with lambda: {ours}")


def _judge_entropy_trend(results: Results) -> Finding | None:
    return _negative(trends(results, "entropy gradient x"))


def _judge_support(results: Results) -> Finding | None:
    return _negative(trends(results, "support"))


def _negative(trends: dict[tuple[str, str], float]) -> Finding | None:
    ours = ", ".join(f"{encoder} {name} {value:+.2f}" for (encoder, name), value in trends.items())
    return Finding(all(value < 0 for value in trends.values()), f"trend with lambda: {ours}") if trends else None


def _judge_adversaries(results: Results, kind: str) -> Finding | None:
    """Judge what each adversary loses of its base model's accuracy, where that one has learned its task."""
    pairs = [
        (base, adversary)
        for found in results.values()
        for encoder in ENCODERS
        for base, adversary in zip(
            *(of_all_seeds(found["models"], f"{encoder} {name}") for name in ("softmax", kind)), strict=True
        )
        if base["accuracy"] >= LEARNED
    ]
    if not pairs:
        return None
    losses = [base["accuracy"] - adversary["accuracy"] for base, adversary in pairs]
    divergences = [adversary["divergence"] for _, adversary in pairs]
    far = [divergence > FAR for divergence in divergences]
    as_claimed = [loss > SMALL_LOSS if kind == "frozen" else loss <= SMALL_LOSS for loss in losses]
    both = sum(is_far and is_so for is_far, is_so in zip(far, as_claimed, strict=True))
    lose = f"lose {'more' if kind == 'frozen' else 'no more'} than {SMALL_LOSS}"
    ours = (
        f"{both} of {len(pairs)} adversaries do both: {sum(far)} attend elsewhere (JSD {min(divergences):.2f} to "
        f"{max(divergences):.2f}), and {sum(as_claimed)} {lose} ({min(losses):+.2f} to {max(losses):+.2f}, "
        f"{np.mean(losses):+.2f} on average)"
    )
    return Finding(both == len(pairs), ours)


def _judge_facets(results: Results) -> Finding | None:
    """Judge whether the importance for a state's norm is nearly that for the state itself, in every model."""
    figures = [
        (model["facets tau"][0], model["facets difference"][0])
        for _, _, model in compared(results)
        if model.get("facets tau", [None])[0] is not None
    ]
    if not figures:
        return None
    taus, differences = zip(*figures, strict=True)
    apart = f"entropies differ by {min(differences):+.3f} to {max(differences):+.3f}"
    return Finding(min(taus) > ALIKE, f"tau-b {min(taus):.2f} to {max(taus):.2f}, {apart}")


CLAIMS = (
    Claim(
        "states",
        "By gradients, attention correlates more with the importance of states than of inputs, in every model.",
        "0.62 to 0.98 against 0.24 to 0.72 (table 6, figure 1)",
        lambda results: _judge_states(results, "gradient"),
    ),
    Claim(
        "states-loo",
        "By leave-one-out too, attention correlates more with the importance of states than of inputs, in every BiLSTM "
        "(the paper's own figures for the Transformer go the other way).",
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
        "The entropy of the inputs' importance for the output falls as lambda rises (table 2 is negative; the paper's "
        "text says that it rises).",
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
        f"Every adversary with a frozen encoder attends elsewhere (JSD above {FAR}), and loses accuracy (more than "
        f"{SMALL_LOSS}).",
        "0.03 to 0.18 lost, JSD 0.57 to 0.67 (table 5)",
        lambda results: _judge_adversaries(results, "frozen"),
    ),
    Claim(
        "unfrozen",
        f"Every adversary that is trained anew attends elsewhere too (JSD above {FAR}), and loses no accuracy (at most "
        f"{SMALL_LOSS}).",
        "0.02 lost to 0.01 gained, JSD 0.57 to 0.67 (table 5)",
        lambda results: _judge_adversaries(results, "unfrozen"),
    ),
    Claim(
        "facets",
        "The inputs' importance for a state's norm is nearly identical to that for the state itself (its Jacobian): "
        f"tau-b above {ALIKE} in every model.",
        "nearly identical results (appendix A)",
        _judge_facets,
    ),
    Claim(
        "support",
        "A larger lambda attends to fewer positions.",
        "so by definition (section 2, eq. 3)",
        _judge_support,
    ),
)


STUDY = Study(
    name="sparsity",
    title="Is sparse attention more interpretable?",
    paper="Meister, Lazov, Augenstein and Cotterell 2021: Is Sparse Attention more Interpretable? (ACL 2021)",
    presets={"quick": QUICK, "standard": STANDARD, "paper": PAPER},
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
    plots=draw_plots,
    deviations=(
        "The paper does not name its values of lambda: the grid is ours.",
        "Table 2 is tau-b of lambda with the mean entropy of each model; how the paper pools documents is not said.",
        "Presets other than `paper` train on fewer and shorter texts, at higher learning rates.",
        "The models of tables 1, 3, 5 and 6 are trained with several seeds and averaged; trends with lambda are those "
        "of the first seed.",
        "Leave-one-out is computed in double precision; differences below a millionth of the largest count as ties.",
        "20 Newsgroups is the split by date (1,194 / 794 messages); IMDb's test texts are a sample of all 25,000.",
        "Weight decay is AdamW's. The learning rate of attention is that of the rest in BiLSTMs, 10 times that in "
        "Transformers and adversaries; the paper does not say where it is which.",
        "A frozen adversary trains the parameters of attention only, and from scratch. Adversaries are trained "
        f"on, to twice as many steps, until they attend elsewhere and lose at most {SMALL_LOSS} of accuracy on the dev "
        "texts, or too often for that.",
        "The full Jacobian of appendix A is measured on the beginnings of some documents.",
    ),
)
