"""Does calibrated attention translate better? (Lu et al. 2021).

Transformers are trained with and without calibration on the same text from the same seeds; `systems` says which,
`measuring` what is measured on each, `published` has the paper's figures. Here is what it claims, with its tables 2 to
5; `plots` draws its figures 1, 2 and 4 to 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sightline.measures import kendall_tau
from sightline.studies.calibration.plots import draw_plots
from sightline.studies.calibration.published import TABLE_3, TABLE_5, TABLES_2_TO_4
from sightline.studies.calibration.results import (
    CALIBRATED,
    by_entropy_bins,
    by_layer,
    calibrated_runs,
    over_seeds,
    priced,
    runs,
)
from sightline.studies.calibration.settings import GENERATED, PAPER, QUICK, STANDARD
from sightline.studies.calibration.systems import FUSIONS, GAINS, SIZES, SYSTEMS, build_steps
from sightline.studies.study import Claim, Figures, Finding, Results, Study, Table

SIGNIFICANT = 0.05
MODEST = 0.5
"""A rank correlation from which on attention and gradients would agree well."""
SMALL_SHARE = 0.1
"""Of parameters; the paper's 6 million are about this share of its Transformer's."""


# Tables


def _bleu(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for size in SIZES:
        pairs = results[f"{size} baseline"]["pairs"]
        for system in SYSTEMS[size]:
            row = table.setdefault(system, {})
            row[f"here, {pairs:,} pairs"] = over_seeds(results, f"{size} {system}", "bleu")
    return table


def _gains(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for name, gain in results[GAINS].items():
        table[name] = {
            "seeds": len(gain["by_seed"]),
            "BLEU": over_seeds(results, name, "bleu"),
            "gain": f"{gain['pooled']:+.2f}",
            "p": f"{gain['p']:.3f}",
            "gain by seed": " / ".join(f"{one:+.1f}" for one in gain["by_seed"]),
            "mean mask by layer": " / ".join(f"{one:.3f}" for one in by_layer(results, name, "mask")),
        }
    return table


def _entropy_changes(results: Results) -> Figures:
    table: dict[str, dict[str, Any]] = {}
    for system in CALIBRATED:
        changes = [
            *by_layer(results, system, "entropy change"),
            over_seeds(results, system, "entropy change of all")[0],
        ]
        rows = [*(f"layer {number}" for number in range(1, len(changes))), "all"]
        for row, change in zip(rows, changes, strict=True):
            table.setdefault(row, {})[system] = f"{change:+.4f}"
    return table


def _costs(results: Results) -> Figures:
    table = {}
    for system in ("small baseline", *CALIBRATED[:3], "large baseline", "large gate"):
        table[system] = {
            "parameters": runs(results, system)[0]["parameters"],
            "minutes of training": over_seeds(results, system, "minutes"),
            "dev loss": over_seeds(results, system, "dev loss"),
        }
    return table


def _losses(results: Results) -> Figures:
    ways = ("calibrated", "original", "perturbed", "shuffled")
    return {
        system: {way: float(np.mean([run["losses"][way] for run in runs(results, system)])) for way in ways}
        for system in CALIBRATED
    }


# Claims


def _judge_alive(results: Results) -> Finding:
    all_runs = list(calibrated_runs(results))
    alive = [run for _, run in all_runs if not run["warnings"]]
    means = np.concatenate([run["mask"] for _, run in all_runs])
    ours = f"in {len(alive)} of {len(all_runs)} runs; a layer's mean mask is {means.min():.3f} to {means.max():.3f}"
    return Finding(len(alive) == len(all_runs), ours)


def _judge_price(results: Results) -> Finding | None:
    found = [(alpha, float(by_layer(results, system, "mask").mean())) for alpha, system in priced(results)]
    if len(found) < 2:
        return None
    rises = all(low < high for (_, low), (_, high) in pairwise(found))
    return Finding(rises, ", ".join(f"α {alpha:g}: {mask:.3f}" for alpha, mask in found))


def _judge_harm(results: Results) -> Finding:
    return _compare_losses(results, "perturbed", "calibrated")


def _judge_shuffled(results: Results) -> Finding:
    return _compare_losses(results, "perturbed", "shuffled")


def _compare_losses(results: Results, higher: str, lower: str) -> Finding:
    pairs = [(run["losses"][higher], run["losses"][lower]) for _, run in calibrated_runs(results)]
    true = sum(high > low for high, low in pairs)
    means = np.mean(pairs, axis=0)
    return Finding(
        true == len(pairs), f"{means[0]:.2f} against {means[1]:.2f} nats a token, in {true} of {len(pairs)} runs"
    )


def _judge_modest(results: Results) -> Finding:
    taus = np.concatenate([by_layer(results, f"{size} baseline", "tau weights") for size in SIZES])
    return Finding(bool(taus.max() < MODEST), f"{taus.min():.2f} to {taus.max():.2f} by layer")


def _judge_masks(results: Results) -> Finding:
    masks, weights = (by_layer(results, "small gate", f"tau {what}") for what in ("masks", "weights"))
    return Finding(
        bool((masks > weights).all()), f"masks {_listed(masks)}, attention {_listed(weights)}, by layer, with the gate"
    )


def _judge_entropy(results: Results) -> Finding | None:
    trends = []
    for row in by_entropy_bins(results, "small gate"):
        known = row[~np.isnan(row)]
        if len(known) > 1:
            trends.append(float(kendall_tau(np.arange(len(known), dtype=float), known)))
    if not trends:
        return None
    return Finding(all(trend > 0 for trend in trends), f"tau of divergence with the bin {_listed(trends)}, by layer")


def _judge_gain(results: Results, system: str) -> Finding:
    gain = results[GAINS][system]
    by_seed = " / ".join(f"{one:+.1f}" for one in gain["by_seed"])
    holds = gain["pooled"] > 0 and gain["p"] < SIGNIFICANT
    return Finding(holds, f"{gain['pooled']:+.2f} BLEU, p {gain['p']:.3f}, by seed {by_seed}")


def _judge_small(results: Results) -> Finding:
    small, large = (results[GAINS][f"{size} gate"]["pooled"] for size in SIZES)
    counts = [results[f"{size} gate"]["pairs"] for size in SIZES]
    return Finding(small > large and small > 0, f"{small:+.2f} on {counts[0]:,} pairs, {large:+.2f} on {counts[1]:,}")


def _judge_order(results: Results) -> Finding:
    found = {fusion: over_seeds(results, f"small {fusion}", "bleu") for fusion in FUSIONS}
    means = [found[fusion][0] for fusion in FUSIONS]
    ours = ", ".join(f"{fusion} {mean:.2f} ± {deviation:.2f}" for fusion, (mean, deviation) in found.items())
    return Finding(all(low <= high for low, high in pairwise(means)), ours)


def _judge_layers(results: Results) -> Finding:
    changes = by_layer(results, "small gate", "entropy change")
    return Finding(bool(changes[0] > 0 > changes[-1]), f"{_listed(changes, '+.4f')}, by layer, with the gate")


def _judge_divergence(results: Results) -> Finding:
    found = by_layer(results, "small gate", "divergence")
    steps = np.diff(found)
    return Finding(bool((steps > 0).all() or (steps < 0).all()), f"{_listed(found, '.4f')}, by layer, with the gate")


def _judge_cost(results: Results) -> Finding:
    before, after = (runs(results, f"small {system}")[0]["parameters"] for system in ("baseline", "gate"))
    minutes = [over_seeds(results, f"small {system}", "minutes")[0] for system in ("baseline", "gate")]
    share = after / before - 1
    return Finding(
        share <= SMALL_SHARE,
        f"{after - before:,} parameters, {100 * share:.1f} % more; training takes {minutes[1] / minutes[0]:.2f} times "
        "as long",
    )


def _listed(values: Sequence[float] | np.ndarray, form: str = ".2f") -> str:
    return " / ".join(format(float(value), form) for value in values)


CLAIMS = (
    Claim(
        "alive",
        "The mask of every layer is alive to the end of training, neither at 1 nor at 0.",
        "(taken for granted)",
        _judge_alive,
    ),
    Claim("price", "The mean of the mask rises with alpha.", "it does (figure 4)", _judge_price),
    Claim(
        "harm",
        "Attention perturbed by the learned mask translates worse than calibrated attention, in every run.",
        "so by the mask's objective (eq. 5)",
        _judge_harm,
    ),
    Claim(
        "decisive",
        "The learned mask does more harm than its own values in another order, a mask of equal mean, in every run.",
        "(what a mask of decisive inputs should do)",
        _judge_shuffled,
    ),
    Claim(
        "modest",
        f"Attention correlates only modestly with gradients: tau is below {MODEST} in every layer without calibration.",
        "all modest (figure 2)",
        _judge_modest,
    ),
    Claim(
        "masks",
        "What the mask takes away (1 - m) correlates more with gradients than attention does, in every layer.",
        "they are relatively closer (figure 5)",
        _judge_masks,
    ),
    Claim(
        "gain",
        "The gate translates better than the baseline on small data (p below 0.05, bootstrap pooled over seeds).",
        "+1.44 and +0.95 BLEU on 0.6M pairs (table 4)",
        lambda results: _judge_gain(results, "small gate"),
    ),
    Claim(
        "gain-large",
        "The gate translates better than the baseline on the larger text too (p below 0.05).",
        "+0.38 to +0.95 BLEU on 2.1M to 4.5M pairs (tables 2 to 4)",
        lambda results: _judge_gain(results, "large gate"),
    ),
    Claim(
        "small-data",
        "The gate gains, and more on the small text than on the larger one.",
        "+1.44 on 0.6M pairs, +0.38 on 4.5M",
        _judge_small,
    ),
    Claim(
        "order",
        "The gate has at least the BLEU of annealing, and annealing that of a fixed share, on average over seeds.",
        "mostly (tables 2 to 4)",
        _judge_order,
    ),
    Claim(
        "layers",
        "Calibration disperses attention in the lowest layer and sharpens it in the highest.",
        "+0.0203 to -0.0083, +0.1846 to -0.0100 (table 5)",
        _judge_layers,
    ),
    Claim(
        "divergence",
        "How far calibration moves the weights rises from every layer to the next, or falls.",
        "it rises for Zh-En and falls for En-De (figure 6)",
        _judge_divergence,
    ),
    Claim(
        "entropy",
        "Calibration moves weights the more, the higher their entropy, in every layer.",
        "0.0084 below 0.8 nats, 0.0324 above 3.2 in layer 6 (figure 7)",
        _judge_entropy,
    ),
    Claim(
        "cost",
        f"Calibration adds few parameters: at most {100 * SMALL_SHARE:.0f} %.",
        "6M, which cannot add much cost (section 4.3)",
        _judge_cost,
    ),
)


STUDY = Study(
    name="calibration",
    title="Does calibrated attention translate better?",
    paper="Lu, Zeng, Zhang, Wu and Li 2021: Attention Calibration for Transformer in Neural Machine Translation (ACL)",
    presets={"quick": QUICK, "standard": STANDARD, "paper": PAPER},
    steps=build_steps,
    claims=CLAIMS,
    tables=(
        Table("BLEU by fusion", "tables 2 to 4", TABLES_2_TO_4, _bleu),
        Table("BLEU by test set, Zh-En", "table 3", TABLE_3, lambda results: {}),
        Table("Every calibrated system against the baseline of its seeds", "ours", {}, _gains),
        Table("Cross-entropy of test tokens, by the attention that the model runs with", "ours", {}, _losses),
        Table("Entropy of attention after calibration, less that before", "table 5", TABLE_5, _entropy_changes),
        Table("Parameters and time", "section 4.3", {}, _costs),
    ),
    plots=draw_plots,
    on_real_data=lambda settings, data: settings.corpus != GENERATED,
    deviations=(
        "Alpha is 0 until the mask does harm (0.1 nats a token), then rises to its value: with a constant alpha the "
        "mask saturates before attention has formed. The variant `no warm-up` has a constant one.",
        "The mask's logits are bounded by 5 tanh(x / 5). The variant `released` has no bound.",
        "The penalty is the mean over steps, layers and heads of the norm of 1 - m, divided by the root of the "
        "source's length, so that alpha means the same at every size; it falls on the mask of the perturbed pass. The "
        "variant `released` has the released code's penalty, on the mask of the calibrated pass, and its alpha, and "
        "clips no gradients.",
        "Gradients are clipped, those of mask and model apart; the released code clips none.",
        "Fusions are not renormalised, as in the released code; the variants `sum` and `softmax` are.",
        "The annealing share is exp(-1.5 s / S) at step s of S, which ends where the paper's does.",
        "The row `all` of table 5 is of the weights averaged over layers and heads: the paper does not say what it is.",
        "Presets other than `paper` train small models on small text. The validation set of Multi30k is the test set, "
        "and training pairs that are not trained on choose the checkpoint.",
    ),
)
