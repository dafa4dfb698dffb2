"""Snell et al. 2021: how attention learns. What the paper claims, how it is measured, its figures beside ours.

Attention follows what single words were learned to mean: runs on text (`text`), toys that deprive the model of it
(`toy_steps`), and the bag-of-words proxy, whose first step is IBM Model 1's count table (`exact`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sightline.studies.learning import exact, toy_claims
from sightline.studies.learning.comparing import AS_PRINTED
from sightline.studies.learning.plots import draw_plots
from sightline.studies.learning.published import (
    AGREEMENTS,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    TABLE_6,
    TABLE_7,
    TABLE_8,
    TABLE_9,
    TABLE_10,
)
from sightline.studies.learning.results import measured_sets
from sightline.studies.learning.settings import PAPER, QUICK, STANDARD, LearningSettings
from sightline.studies.learning.text import build_text_steps
from sightline.studies.learning.toy_steps import build_toy_steps
from sightline.studies.study import Claim, Figure, Finding, Results, Step, Study, Table

FAR_ABOVE = 1.5
"""An agreement is far above chance when it is at least this many times as great."""
ERRORS = 2.0
"""A rise or a fall counts when it is more than this many times its standard error."""
CHANCE = {"chance": "α, β uf", "chance (β uf, β px)": "β uf, β px", "chance (Δ)": "Δ, β uf"}
"""The columns of chance: the paper has one, of alpha; the others have another first part."""


def build_steps(settings: LearningSettings, data: Path | None) -> list[Step]:
    """List the measurements, the quickest first."""
    return [
        Step("proxy", lambda work: exact.measure_proxy(settings)),
        Step("counter-example", lambda work: exact.solve_counter_example()),
        *build_text_steps("classify", settings.classify, data),
        *build_text_steps("translate", settings.translate, data),
        *build_toy_steps(settings.toys),
    ]


# Judging


def _judge_far_above(results: Results) -> Finding | None:
    sets = measured_sets(results)
    if not sets:
        return None
    least: dict[str, float] = {}
    for figures in sets.values():
        validation = figures["validation"]
        for column in ("α, β", "α, β uf", "β uf, β px"):
            ratio = validation["agreement"]["columns"][column] / max(validation["chance"][column], 1e-9)
            least[column] = min(ratio, least.get(column, np.inf))
    shown = ", ".join(f"A({column}) {ratio:.1f}" for column, ratio in least.items())
    return Finding(min(least.values()) >= FAR_ABOVE, f"least ratio to chance ({', '.join(sets)}): {shown}")


def _judge_rise_and_fall(results: Results) -> Finding | None:
    sets = measured_sets(results)
    if not sets:
        return None
    turns = {name: figures["validation"]["turn"] for name, figures in sets.items()}
    clear = [all(turn[part][0] > ERRORS * turn[part][1] for part in ("rise", "fall")) for turn in turns.values()]
    shown = ", ".join(
        f"{name} {turn['rise'][0]:+.1f} ± {turn['rise'][1]:.1f} to step {turn['step']:g}, then "
        f"{-turn['fall'][0]:+.1f} ± {turn['fall'][1]:.1f}"
        for name, turn in turns.items()
    )
    return Finding(all(clear), shown)


def _judge_frozen(results: Results) -> Finding | None:
    sets = measured_sets(results, "classify")
    if not sets:
        return None
    pairs = {
        name: [figures["validation"]["agreement"]["columns"][column] for column in ("α, α fr", "α, β uf")]
        for name, figures in sets.items()
    }
    shown = ", ".join(f"{name} {frozen:.0f} < {uniform:.0f}" for name, (frozen, uniform) in pairs.items())
    return Finding(all(frozen < uniform for frozen, uniform in pairs.values()), shown.replace("<", "against"))


def _judge_optimal(results: Results) -> Finding | None:
    found = results["counter-example"]
    exact = bool(np.allclose(found["weights"], [0, 0.5, 0.5], atol=1e-4))
    sets = measured_sets(results, "translate")
    if not sets:
        return None
    parts = []
    holds = exact
    for name, figures in sets.items():
        optimal = figures["validation"]["optimal"]
        ours = optimal["agreement"]
        holds = holds and ours > FAR_ABOVE * optimal["chance"]
        parts.append(f"A(α opt, β) {ours / 100:.2f} on {name}")
    weights = ", ".join(f"{abs(weight):.2f}" for weight in found["weights"])
    return Finding(holds, f"{'; '.join(parts)}; counter-example: weights {weights}")


CLAIMS = (
    Claim(
        "1-agreement",
        "Attention agrees with the lexical probe, A(α, β), and with that of a model whose attention is uniform, "
        "A(α, β uf), which agrees with a bag of words', A(β uf, β px): each is at least "
        f"{FAR_ABOVE:g} times the random baseline.",
        "table 2: 20 to 82, against 5 to 8 by chance",
        _judge_far_above,
    ),
    Claim(
        "2-rise-and-fall",
        "The agreement of attention with the probe of a model whose attention is uniform, A(α, β uf), rises, then "
        f"falls over training, each by more than {ERRORS:g} standard errors.",
        "A.7: on all data sets",
        _judge_rise_and_fall,
    ),
    Claim(
        "3-permutations",
        "Copying permutations of the whole vocabulary fails on some seeds; copying as many words out of a larger one "
        "is always learned.",
        "figure 3: some of 20 seeds fail, against none",
        toy_claims.judge_copying,
    ),
    Claim(
        "4-heads",
        "Of models with eight heads, less than half learn to copy with eight bad initialisations, more than half with "
        "one good one among bad ones, and at least 80 % with random ones.",
        "figure 6, 20 seeds each",
        toy_claims.judge_heads,
    ),
    Claim(
        "5-derivative",
        "The bag of words' logits start to move as 2(C - row mean), C being the count table: the error falls with "
        "about the root of its width.",
        "eq. 54, in the limit",
        exact.judge_derivative,
    ),
    Claim("6-counts", "Under permutations the count table is uniform.", "figure 4", exact.judge_uniform_counts),
    Claim(
        "7-mixture",
        "Copying a mixture of permutations fails on some seeds as well, and takes longer than words out of more.",
        "figure 3 right",
        toy_claims.judge_mixture,
    ),
    Claim(
        "8-reordering",
        "A fixed random order of the words is not learned in the time in which copying is.",
        "section 6.2: always fails, against always learns",
        toy_claims.judge_reordering,
    ),
    Claim(
        "9-keyword",
        "Under uniform attention the keyword's log-odds lead early, those of the last position late.",
        "figure 7",
        toy_claims.judge_keyword,
    ),
    Claim(
        "10-frozen",
        "With all other weights frozen, attention does not learn where to look: A(α, α fr) is below A(α, β uf).",
        "table 10: 8 to 19, against 18 to 65",
        _judge_frozen,
    ),
    Claim(
        "11-optimal",
        f"The optimal attention agrees with β, more than {FAR_ABOVE:g} times as often as by chance, though it need "
        "not: in the counter-example the highest β gets nothing.",
        "A.1: 0.53 on Multi30k; weights 0, 0.5, 0.5",
        _judge_optimal,
    ),
    Claim(
        "12-identity", "The probability of a label follows from α and β alone.", "eq. 12, exact", exact.judge_identity
    ),
    Claim(
        "13-log-odds",
        "Log-odds under uniform attention: keyword > one behind it > mean of all positions at first; last position > "
        "one behind > both mean and keyword in the end.",
        "eq. 24 and 25, figure 7",
        toy_claims.judge_log_odds,
    ),
)


# Tables and plots


def _measured(
    part: str, metric: str, performance: str, task: str = "", columns: tuple[str, ...] = AGREEMENTS
) -> Callable[[Results], Mapping[str, Mapping[str, Figure]]]:
    """Return the function that fills a table of the paper's form."""

    def fill(results: Results) -> Mapping[str, Mapping[str, Figure]]:
        table: dict[str, dict[str, Figure]] = {}
        for name, figures in measured_sets(results, task).items():
            measured = figures[part] if performance == "accuracy" else figures[part].get("by bleu")
            if measured is None:
                continue
            row: dict[str, Figure] = {f"A({column})": measured[metric]["columns"][column] for column in columns}
            if metric == "agreement":
                row |= {name: measured["chance"][column] for name, column in CHANCE.items()}
                row[f"A({AS_PRINTED})"] = measured[metric]["columns"][AS_PRINTED]
            else:
                row["chance"] = 0.0
            reached = measured[metric].get(f"xi {performance}")
            if reached:
                row |= {f"ξ({column})": _starred(reached[column]) for column in columns}
                row["ξ*"] = reached["final"][0]
            table[name] = row
        return table

    return fill


def _starred(reached: list[Any]) -> Figure:
    """Mark what no checkpoint reached, as the paper does."""
    value, was_reached = reached
    return float(value) if was_reached else f"{value:.2f}*"


def _measured_frozen(results: Results) -> Mapping[str, Mapping[str, Figure]]:
    return {
        name: {
            "A(α, α fr)": figures["validation"]["agreement"]["columns"]["α, α fr"],
            "A(α, β uf)": figures["validation"]["agreement"]["columns"]["α, β uf"],
        }
        for name, figures in measured_sets(results, "classify").items()
    }


def _statistics(results: Results) -> Mapping[str, Mapping[str, Figure]]:
    return {name: figures["statistics"] for name, figures in measured_sets(results).items()}


def _chosen_steps(results: Results) -> Mapping[str, Mapping[str, Figure]]:
    """Return the checkpoints that the figures were chosen at."""
    return {
        name: {"α": figures["validation"]["alpha step"]}
        | {f"A({column})": figures["validation"]["agreement"]["steps"][column] for column in AGREEMENTS}
        for name, figures in measured_sets(results).items()
    }


TABLES = (
    Table(
        "Agreement, and the accuracy at which attention agrees more",
        "tables 2 and 5",
        TABLE_5,
        _measured("validation", "agreement", "accuracy"),
    ),
    Table(
        "The same by Kendall's τ", "table 3", TABLE_3, _measured("validation", "tau", "accuracy", "", AGREEMENTS[:3])
    ),
    Table(
        "Kendall's τ and BLEU", "table 4", TABLE_4, _measured("validation", "tau", "bleu", "translate", AGREEMENTS[:3])
    ),
    Table("Agreement and BLEU", "table 6", TABLE_6, _measured("validation", "agreement", "bleu", "translate")),
    Table("On the training set", "table 7", TABLE_7, _measured("training", "agreement", "accuracy")),
    Table(
        "On the training set, with BLEU",
        "table 8",
        TABLE_8,
        _measured("training", "agreement", "bleu", "translate", AGREEMENTS[:3]),
    ),
    Table("The data sets", "table 9", TABLE_9, _statistics),
    Table("Attention where all else is frozen", "table 10", TABLE_10, _measured_frozen),
    Table("The steps at which the figures were chosen", "A.7; the paper does not tell its own", {}, _chosen_steps),
)


STUDY = Study(
    name="learning",
    title="How attention learns",
    paper="Snell, Zhong, Klein and Steinhardt 2021: Approximating How Single Head Attention Learns",
    presets={"quick": QUICK, "standard": STANDARD, "paper": PAPER},
    steps=build_steps,
    claims=CLAIMS,
    tables=TABLES,
    plots=draw_plots,
    deviations=(
        "The Hansards stand in for IWSLT'14 and News Commentary, in the preset `paper` alone; Amazon reviews, the SMS "
        "collection of A.9 and GloVe vectors are not there.",
        "AG News and Yelp have far fewer training texts than the paper's 60,000 and 88,821: table 9 has all sizes.",
        "What is far above chance, and what a rise or a fall is, the paper does not say: the claims have our limits.",
        "Chance is measured for each column by shuffling the second run's attention, as released; the paper has one.",
        "A(β uf, β px) has the released direction: the proxy at its lowest validation loss, the maximum over the "
        "uniform run's checkpoints. The printed direction has a column of its own.",
        "A(α opt, β) is far above the paper's 0.53 on Multi30k; why is open.",
        "Byte-pair encoding instead of SentencePiece's; texts end with one token and begin with none.",
        "The vocabulary layer of the translation model has no bias.",
        "The classifier's loss is balanced between the labels.",
        "Toy models are trained with Adam at 1e-3; a run that copies all but perfectly ends there. The rate matters: "
        "at 3e-3, width 64, permutations were learned on 3 of 3 seeds; claims 3 and 7 hold for this rate and budget.",
        "Copiers with heads are LSTMs, where the released ones are GRUs; all of them share one set of other weights, "
        "and seeds are the order of the data, as released. The claim is judged where contexts are averaged, as "
        "released; the preset `paper` has summed ones (eq. 21) too.",
        "A head is bad when none of its runs learns, as in the text; the released code asks for less than 0.6, where "
        "runs that do not learn end here.",
        "Probes are maximised over checkpoints on the examples they are judged on, as in the paper; chance is not.",
        "Δ is the saliency of the first run where it is best, as α is.",
        "Log-odds of the keyword task leave out texts whose keyword stands at the last two positions.",
    ),
)
