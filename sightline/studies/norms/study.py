"""Attention is not only a weight: vector norms (Kobayashi et al. 2020).

An encoder is run over texts of two segments (`encoder`), and translation models are read for word alignments
(`translation`): the ones that are named, or, at the least size, ones that are trained on a generated language.
`published` has the paper's figures. Here is what it claims, with its tables 1 to 4; `plots` draws its figures 3 to 12.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from sightline.studies.norms.encoder import measure_encoder
from sightline.studies.norms.plots import draw_plots
from sightline.studies.norms.published import FIGURE_6, PRINTED, TABLE_1, TABLE_2, TABLE_3, TABLE_4
from sightline.studies.norms.results import (
    SPECIAL,
    best_rates,
    dispersion_table,
    mean_rates,
    special_shares,
    translators,
)
from sightline.studies.norms.settings import PAPER, QUICK, STANDARD, Settings
from sightline.studies.norms.translation import GOLD, QUANTITIES, READINGS, build_translation_steps
from sightline.studies.study import Claim, Figure, Figures, Finding, Results, Step, Study, Table

WIDE = 0.1
"""A coefficient of variation from which on norms are not constant; the least of a head in the paper is 0.12."""
CLEAR = 0.2
"""A rank correlation from which on there is one; the paper's for punctuation is -0.25, that for other tokens -0.06."""
STRONG = 0.5
"""A strong rank correlation; the paper's of frequency and norms is 0.75."""
OVER = 2.0
"""How many times an even share of attention is remarkably much."""
STRETCH = 1.8
"""The least ratio of a head's greatest to its least singular value in the paper."""
COMPETITIVE = 3.0
"""Points of AER; the paper's norms and fast_align differ by 0.1."""


def build_steps(settings: Settings, data: Path | None) -> list[Step]:
    """Build the encoder's step, and those of the translation models."""
    return [
        Step("encoder", partial(measure_encoder, settings=settings, data=data)),
        *build_translation_steps(settings, data),
    ]


# Tables


def _table_2(results: Results) -> Figures:
    categories = results["encoder"]["categories"]
    return {name: {"vectors": found["pairs"], "Spearman's rho": found["rho"]} for name, found in categories.items()}


def _table_3(results: Results) -> Figures:
    table: dict[str, dict[str, Figure]] = {}
    names = {"weights": "attention weights", "norms": "vector norms"}
    if translators(results):
        for quantity in QUANTITIES:
            for row, rates in (("best layer", best_rates), ("mean of layers", mean_rates)):
                table[f"{names[quantity]}, {row}"] = {
                    reading: _over_models(rates(results, f"{quantity} {reading}")) for reading in READINGS
                }
    for name, rate in (results["aligners"] or {}).items():
        table[name] = {PRINTED: rate}
    return table


def _over_models(rates: list[float]) -> tuple[float, float]:
    return float(np.mean(rates)), float(np.std(rates))


def _figure_6(results: Results) -> Figures:
    frequency = results["encoder"]["frequency"]
    rows = {"weights": "weights", "norms of f(x)": "lengths"}
    return {row: {name: found[figure] for name, found in frequency.items()} for row, figure in rows.items()}


# Claims about the encoder


def _judge_dispersion(results: Results) -> Finding:
    cv = np.array(results["encoder"]["dispersion"]["cv"])
    ours = f"CV {cv.mean():.2f} on average, {cv.min():.2f} to {cv.max():.2f} by head"
    return Finding(bool(cv.mean() > WIDE), ours)


def _judge_inputs(results: Results) -> Finding:
    of_f, of_x = (float(np.mean(results["encoder"][name]["cv"])) for name in ("dispersion", "input dispersion"))
    return Finding(of_x < of_f, f"CV {of_x:.2f} of x, {of_f:.2f} of f(x)")


def _judge_stretch(results: Results) -> Finding:
    ratios = [ratio for layer in results["encoder"]["singular values"] for ratio in layer["ratios"]]
    enough = sum(ratio >= STRETCH for ratio in ratios)
    ours = f"{min(ratios):.1f} to {max(ratios):.1f} times, enough in {enough} of {len(ratios)} heads"
    return Finding(enough == len(ratios), ours)


def _judge_weights(results: Results) -> Finding:
    weights = float(np.mean([weight for weight, _ in special_shares(results)]))
    even = sum(results["encoder"]["categories"][name]["share"] for name in SPECIAL)
    by_name = ", ".join(
        f"{name} {np.mean(results['encoder']['shares']['weights'][name]):.2f}"
        f" ({results['encoder']['categories'][name]['share']:.2f} of the tokens)"
        for name in SPECIAL
    )
    return Finding(weights > OVER * even, f"{weights:.2f} of the weight for {even:.2f} of the tokens: {by_name}")


def _judge_norms(results: Results) -> Finding:
    shares = list(special_shares(results))
    lower = sum(norm < weight for weight, norm in shares)
    weight, norm = np.mean(shares, axis=0)
    ours = f"{norm:.2f} of the norms, {weight:.2f} of the weight, lower in {lower} of {len(shares)} layers"
    return Finding(lower == len(shares), ours)


def _judge_cancelling(results: Results) -> Finding:
    rho = {name: results["encoder"]["categories"][name]["rho"] for name in SPECIAL}
    ours = ", ".join(f"{name} {value:+.2f}" for name, value in rho.items())
    return Finding(all(rho[name] <= -CLEAR for name in SPECIAL), ours)


def _judge_others(results: Results) -> Finding:
    rho = results["encoder"]["categories"]["others"]["rho"]
    return Finding(abs(rho) < CLEAR, f"{rho:+.2f}")


def _judge_heads(results: Results) -> Finding:
    rho = {name: results["encoder"]["categories"][name]["by head"]["rho"] for name in SPECIAL}
    ours = ", ".join(f"{name} {value:+.2f}" for name, value in rho.items())
    return Finding(all(rho[name] <= -CLEAR for name in SPECIAL), ours)


def _judge_frequency(results: Results, of: str) -> Finding:
    by_rank = {rank: found[of] for rank, found in results["encoder"]["frequency"].items()}
    ours = ", ".join(f"{rho:+.2f} by {rank}" for rank, rho in by_rank.items())
    holds = [rho > STRONG if of == "lengths" else abs(rho) < CLEAR for rho in by_rank.values()]
    return Finding(all(holds), ours)


# Claims about translation


def _judge_lower(results: Results, of: str) -> Finding | None:
    """Judge whether norms align better than weights, in every model and in both readings."""
    rates = {"best": best_rates, "mean": mean_rates}[of]
    if not translators(results):
        return None
    better, count, phrases = 0, 0, []
    for reading in READINGS:
        norms, weights = (rates(results, f"{quantity} {reading}") for quantity in ("norms", "weights"))
        better += sum(norm < weight for norm, weight in zip(norms, weights, strict=True))
        count += len(norms)
        phrases.append(f"{reading} {np.mean(norms):.1f} against {np.mean(weights):.1f}")
    return Finding(better == count, f"{', '.join(phrases)}; lower in {better} of {count}")


def _judge_readings(results: Results) -> Finding | None:
    if not translators(results):
        return None
    by_input, by_output = (best_rates(results, f"norms {reading}") for reading in ("AWI", "AWO"))
    lower = sum(one < other for one, other in zip(by_input, by_output, strict=True))
    ours = f"{np.mean(by_input):.1f} against {np.mean(by_output):.1f}, lower in {lower} of {len(by_input)} models"
    return Finding(lower == len(by_input), ours)


def _judge_highest_norm(results: Results) -> Finding | None:
    models = translators(results)
    if not models:
        return None
    layers = [
        (int(np.argmax(found["mean norms"])) + 1, int(np.argmin(found["by layer"]["norms AWI"])) + 1)
        for found in models.values()
    ]
    same = sum(highest == best for highest, best in layers)
    ours = ", ".join(f"layer {highest} and layer {best}" for highest, best in layers)
    return Finding(same == len(layers), f"the same in {same} of {len(layers)} models: {ours}")


def _judge_aligner(results: Results) -> Finding | None:
    models, aligners = translators(results), results["aligners"]
    if not models or aligners is None or any(found["gold"] != GOLD for found in models.values()):
        return None  # a generated language has no published alignments
    best = min(float(np.mean(best_rates(results, f"norms {reading}"))) for reading in READINGS)
    fast_align = aligners["fast_align"]
    return Finding(best <= fast_align + COMPETITIVE, f"{best:.1f} against {fast_align:.1f}")


CLAIMS = (
    Claim(
        "dispersion",
        f"The norm of f(x) is not constant: its coefficient of variation is above {WIDE} on average over heads.",
        "0.22 on average, 0.12 to 0.37 by head (table 1)",
        _judge_dispersion,
    ),
    Claim("inputs", "The norm of x varies less than that of f(x).", "CV 0.12 and 0.22 (tables 4, 1)", _judge_inputs),
    Claim(
        "stretch",
        f"In every head, the greatest singular value of f is at least {STRETCH} times the least.",
        "at least 1.8 times (appendix A, figure 9)",
        _judge_stretch,
    ),
    Claim(
        "weights",
        f"Special tokens and punctuation get remarkably much weight: over {OVER:g} times their share of the tokens, on "
        "average over layers.",
        "remarkably large weights (figure 3a)",
        _judge_weights,
    ),
    Claim(
        "norms",
        "The share of special tokens and punctuation in the norms of alpha f(x) is lower than that in the weight, in "
        "every layer.",
        "contributions generally small (figure 3b)",
        _judge_norms,
    ),
    Claim(
        "cancelling",
        f"On special tokens and punctuation, weights and norms of f(x) cancel out: Spearman's rho is at most -{CLEAR} "
        "for each category.",
        "[CLS] -0.34, [SEP] -0.69, comma & period -0.25 (table 2)",
        _judge_cancelling,
    ),
    Claim(
        "others",
        f"On other tokens, weights and norms of f(x) do not cancel out: Spearman's rho is within {CLEAR} of 0.",
        "-0.06 (table 2)",
        _judge_others,
    ),
    Claim(
        "heads",
        "Heads that give special tokens and punctuation more weight give them shorter vectors: over heads, the rho of "
        f"mean weight and mean norm of f(x) is at most -{CLEAR} for each category.",
        "in almost all heads (figures 4, 10, 11; no figure is given)",
        _judge_heads,
    ),
    Claim(
        "frequency",
        "Frequent tokens have short vectors: the rank by frequency and the norm of f(x) have a rho above "
        f"{STRONG}, ranked by vocabulary id and as counted.",
        "+0.75 by vocabulary id (figure 6b)",
        partial(_judge_frequency, of="lengths"),
    ),
    Claim(
        "frequency-weights",
        f"Weights do not depend on frequency: the rank by frequency and the weight have a rho within {CLEAR} of 0, "
        "ranked by vocabulary id and as counted.",
        "-0.08 by vocabulary id (figure 6a)",
        partial(_judge_frequency, of="weights"),
    ),
    Claim(
        "alignment",
        "Norms align words better than weights: the best layer's alignment error rate (AER) is lower, in every model "
        "and both readings (AWO and AWI).",
        "28.3 against 51.9 (table 3); released: AWO 41.4 against 47.7, AWI 25.0 against 29.8",
        partial(_judge_lower, of="best"),
    ),
    Claim(
        "alignment-mean",
        "Norms align words better than weights on average over layers, too, in every model and both readings.",
        "61.6 against 81.4 (table 3)",
        partial(_judge_lower, of="mean"),
    ),
    Claim(
        "readings",
        "Norms align better at the step whose input is the word (AWI) than at the step whose output it is (AWO): best "
        "layer, every model.",
        "AWI 25.0, AWO 41.4 (released notebook)",
        _judge_readings,
    ),
    Claim(
        "highest-norm",
        "The layer with the highest mean norm is the best layer of AWI, in every model.",
        "in 5 of 5 seeds (released notebook)",
        _judge_highest_norm,
    ),
    Claim(
        "aligner",
        f"The norms of the best layer align about as well as fast_align: at most {COMPETITIVE:g} points of AER worse.",
        "28.3 and 28.4 (table 3)",
        _judge_aligner,
    ),
)


STUDY = Study(
    name="norms",
    title="Attention is not only a weight: vector norms",
    paper="Kobayashi, Kuribayashi, Yokoi and Inui 2020: Attention Module is Not Only a Weight: Analyzing Transformers "
    "with Vector Norms (EMNLP 2020)",
    presets={"quick": QUICK, "standard": STANDARD, "paper": PAPER},
    steps=build_steps,
    claims=CLAIMS,
    tables=(
        Table(
            "The norm of f(x), by head",
            "table 1",
            TABLE_1,
            lambda r: dispersion_table(r["encoder"]["dispersion"], "head"),
        ),
        Table("Rank correlation of weights with the norm of f(x)", "table 2", TABLE_2, _table_2),
        Table("Alignment error rate", "table 3", TABLE_3, _table_3),
        Table(
            "The norm of x, by layer",
            "table 4",
            TABLE_4,
            lambda r: dispersion_table(r["encoder"]["input dispersion"], "layer"),
        ),
        Table("Rank correlation with the rank by frequency", "figure 6", FIGURE_6, _figure_6),
    ),
    plots=draw_plots,
    deviations=(
        "The encoder is not BERT-base but MiniLM, of 6 layers and 12 heads, tuned to compare sentences by the mean of "
        "its states, unless --model names another.",
        "Inputs are reviews and newsgroup messages, cut after the sentence in which their middle lies, not paragraphs "
        "of Wikipedia.",
        "Ranks in table 2 are of values rounded to 1 part in 4,096, over all pairs of a query and a token.",
        "A head's weight on a category is summed over its tokens, the norm of f(x) averaged, each over all inputs.",
        "The counted rank is of the texts that the inputs come from; the released code's table is of another corpus.",
        "Translation models are trained on Europarl, not on the news task of WMT 2016; in the preset `quick`, on a "
        "generated language, whose alignments are exact and whose pieces are few.",
        "In the preset `standard` they have 3 + 3 layers of width 256, normalised before each block, not after it: "
        "a model of the paper's kind, of width 192, had no alignments yet after 3,000 steps (77 AER, BLEU 5).",
        "Mean norms of layers are over all pairs of a step and a source position, the end token's included.",
    ),
)
