"""Snell et al. 2021: how attention learns. What the paper claims, how it is measured, its figures beside ours.

Attention follows what single words were learned to mean: runs on text (`learning_text`), toys that deprive the model
of it (`learning_copying`), and the bag-of-words proxy, whose first step is IBM Model 1's count table (below).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sightline.alignment.bitext import build_bitext
from sightline.alignment.lexicon import count_table
from sightline.attend.optimal import optimal_attention
from sightline.data.tasks import PairSampler
from sightline.models.proxy import BagOfWords, expected_derivative, logit_derivative
from sightline.studies import learning_copying as toys
from sightline.studies.learning_copying import ToySettings, build_toy_steps, draw_toy_plots
from sightline.studies.learning_published import (
    AGREEMENTS,
    NAMES,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    TABLE_6,
    TABLE_7,
    TABLE_8,
    TABLE_10,
)
from sightline.studies.learning_settings import PAPER, QUICK, STANDARD, LearningSettings
from sightline.studies.learning_text import build_text_steps
from sightline.studies.study import Claim, Figure, Finding, Results, Step, Study, Table

COUNTED_PAIRS = 200
FAR_ABOVE = 1.5
"""An agreement is far above chance when it is at least so many times as great."""


def build_steps(settings: LearningSettings, data: Path | None) -> list[Step]:
    """List the measurements, the quickest first."""
    return [
        Step("proxy", lambda work: _measure_proxy(settings)),
        Step("counter-example", lambda work: _solve_counter_example()),
        *build_text_steps("classify", settings.classify, data),
        *build_text_steps("translate", settings.translate, data),
        *build_toy_steps(settings.toys),
    ]


def _measure_proxy(settings: LearningSettings) -> dict[str, Any]:
    """Compare the first step of proxies with the count tables of the toys (eq. 54), and keep small tables to show."""
    measured: dict[str, Any] = {"widths": list(settings.widths)}
    small = toys.tasks(ToySettings(**(vars(settings.toys) | {"length": 6, "words": 9})))
    for name in ("permutations", "control", "mixture"):
        task, words = small[name]
        pairs = sample_pairs(task)
        counts = count_words(pairs, words)
        expected = expected_derivative(counts)
        errors = []
        for width in settings.widths:
            torch.manual_seed(width)
            found = logit_derivative(BagOfWords(words, words, width), *zip(*pairs, strict=True))
            errors.append(float(np.sqrt(np.mean((found - expected) ** 2))))
        spread = float(np.ptp(counts, axis=1).max() / counts.max())
        measured[name] = {"counts": counts.tolist(), "errors": errors, "spread": spread}
    return measured


def sample_pairs(task: PairSampler) -> list[tuple[list[int], list[int]]]:
    """Draw some pairs of a task."""
    source, target = task(np.random.default_rng(0), COUNTED_PAIRS)
    return list(zip(source.tolist(), target.tolist(), strict=True))


def count_words(pairs: list[tuple[list[int], list[int]]], words: int) -> np.ndarray:
    """Give C of some pairs (eq. 16), in the order of the words' numbers."""
    table = count_table(build_bitext(([str(x) for x in source], [str(y) for y in target]) for source, target in pairs))
    order = [str(word) for word in range(words)]
    rows = [table.source_numbers[word] for word in order]
    return table.dense()[np.ix_(rows, [table.target_numbers[word] for word in order])]


def _solve_counter_example() -> dict[str, Any]:
    """Find the optimal attention of eq. 29-31."""
    logits = torch.tensor([[[0.0, 0.0, 0.0], [0.0, -10.0, 5.0], [0.0, 5.0, -10.0]]], dtype=torch.float64)
    weights, gap = optimal_attention(logits, torch.tensor([0]))
    probe = logits.softmax(-1)[0, :, 0]
    return {"weights": weights[0].tolist(), "gap": float(gap[0]), "probe": probe.tolist()}


# Judging


def _sets(results: Results, task: str = "") -> dict[str, Any]:
    """Give the figures of the sets that were measured, by the paper's name of each."""
    tasks = (task,) if task else ("classify", "translate")
    found = {}
    for one in tasks:
        for name in NAMES:
            if results.get(f"{one} {name}"):
                found[NAMES[name] if name != "generated" else f"generated ({one})"] = results[f"{one} {name}"]
    return found


def _judge_far_above(results: Results) -> Finding | None:
    sets = _sets(results)
    if not sets:
        return None
    least: dict[str, float] = {}
    for figures in sets.values():
        validation = figures["validation"]
        for column in ("α, β", "α, β uf", "β uf, β px"):
            ratio = validation["agreement"]["columns"][column] / max(validation["random"], 1e-9)
            least[column] = min(ratio, least.get(column, np.inf))
    shown = ", ".join(f"A({column}) {ratio:.1f}" for column, ratio in least.items())
    return Finding(min(least.values()) >= FAR_ABOVE, f"least ratio to chance ({', '.join(sets)}): {shown}")


def _judge_rise_and_fall(results: Results) -> Finding | None:
    sets = _sets(results)
    if not sets:
        return None
    falls = {}
    for name, figures in sets.items():
        values = figures["validation"]["agreement"]["curves"]["α, β uf"]["value"]
        top = int(np.argmax(values))
        falls[name] = 0 < top < len(values) - 1
    shown = ", ".join(f"{name} {'yes' if both else 'no'}" for name, both in falls.items())
    return Finding(all(falls.values()), f"the maximum is neither first nor last: {shown}")


def _judge_derivative(results: Results) -> Finding | None:
    control = results["proxy"]["control"]
    widths, errors = results["proxy"]["widths"], control["errors"]
    slope = float(np.polyfit(np.log(widths), np.log(errors), 1)[0])
    return Finding(
        -0.65 < slope < -0.35 and errors[-1] < errors[0] / 4,
        f"root mean square error {errors[0]:.2f} at width {widths[0]}, {errors[-1]:.3f} at {widths[-1]:,}: "
        f"as width^{slope:.2f}",
    )


def _judge_uniform_counts(results: Results) -> Finding | None:
    spreads = {name: results["proxy"][name]["spread"] for name in ("permutations", "control")}
    return Finding(
        spreads["permutations"] < 1e-9 < spreads["control"],
        f"greatest difference within a row, over the greatest count: {spreads['permutations']:.2g} under permutations, "
        f"{spreads['control']:.2f} in the control",
    )


def _judge_frozen(results: Results) -> Finding | None:
    sets = _sets(results, "classify")
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
    sets = _sets(results, "translate")
    if not sets:
        return None
    parts = []
    holds = exact
    for name, figures in sets.items():
        ours = figures["validation"]["optimal"]["agreement"]
        holds = holds and ours > FAR_ABOVE * figures["validation"]["random"]
        parts.append(f"A(α opt, β) {ours / 100:.2f} on {name}")
    weights = ", ".join(f"{abs(weight):.2f}" for weight in found["weights"])
    return Finding(holds, f"{'; '.join(parts)}; counter-example: weights {weights}")


def _judge_identity(results: Results) -> Finding | None:
    """Check eq. 12 on a random classifier: sigma(sum_l alpha_l logit(beta_l)) is the probability of the label."""
    rng = np.random.default_rng(0)
    states, weight, scores = rng.standard_normal((50, 12, 8)), rng.standard_normal(8), rng.standard_normal((50, 12))
    alpha = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    sign = 2 * rng.integers(2, size=50) - 1

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    correct = sigmoid(sign * ((alpha[..., None] * states).sum(1) @ weight))
    beta = sigmoid(sign[:, None] * (states @ weight))
    error = float(np.abs(sigmoid((alpha * np.log(beta / (1 - beta))).sum(1)) - correct).max())
    return Finding(error < 1e-12, f"greatest difference {error:.1g} over 50 random texts")


CLAIMS = (
    Claim(
        "1-agreement",
        "A(α, β), A(α, β uf) and A(β uf, β px) are far above the random baseline.",
        "table 2: 20 to 82, against 5 to 8 by chance",
        _judge_far_above,
    ),
    Claim(
        "2-rise-and-fall", "A(α, β uf) rises, then falls over training.", "A.7: on all data sets", _judge_rise_and_fall
    ),
    Claim(
        "3-permutations",
        "Copying permutations of all words fails on some seeds; words out of more are always learned.",
        "figure 3: some of 20 seeds fail, against none",
        toys.judge_copying,
    ),
    Claim(
        "4-heads",
        "Eight bad heads fail, one good among eight learns, eight random ones nearly always learn.",
        "figure 6, 20 seeds each",
        toys.judge_heads,
    ),
    Claim(
        "5-derivative",
        "The proxy's logits start to move as 2(C - row mean), the more exactly the wider it is.",
        "eq. 54, in the limit",
        _judge_derivative,
    ),
    Claim("6-counts", "Under permutations the count table is uniform.", "figure 4", _judge_uniform_counts),
    Claim("7-mixture", "A mixture of permutations fails as well.", "figure 3 right", toys.judge_mixture),
    Claim(
        "8-reordering",
        "A fixed random order of the words is not learned in the time in which copying is.",
        "section 6.2: always fails, against always learns",
        toys.judge_reordering,
    ),
    Claim(
        "9-keyword",
        "Under uniform attention the keyword's log-odds lead early, those of the last position late.",
        "figure 7",
        toys.judge_keyword,
    ),
    Claim(
        "10-frozen",
        "With all but the attention frozen, attention does not learn: A(α, α fr) < A(α, β uf).",
        "table 10: 8 to 19, against 18 to 65",
        _judge_frozen,
    ),
    Claim(
        "11-optimal",
        "The optimal attention agrees with β, though it need not: in the counter-example the highest β gets nothing.",
        "A.1: 0.53 on Multi30k; weights 0, 0.5, 0.5",
        _judge_optimal,
    ),
    Claim("12-identity", "The probability of a label follows from α and β alone.", "eq. 12, exact", _judge_identity),
    Claim(
        "13-log-odds",
        "γ: keyword > one behind > mean at first; last > one behind > mean ≈ keyword in the end.",
        "eq. 24 and 25, figure 7",
        toys.judge_log_odds,
    ),
)


# Tables and plots


def _measured(
    part: str, metric: str, performance: str, task: str = "", columns: tuple[str, ...] = AGREEMENTS
) -> Callable[[Results], Mapping[str, Mapping[str, Figure]]]:
    """Give the function that fills a table of the paper's form."""

    def fill(results: Results) -> Mapping[str, Mapping[str, Figure]]:
        table: dict[str, dict[str, Figure]] = {}
        for name, figures in _sets(results, task).items():
            measured = figures[part]
            row: dict[str, Figure] = {f"A({column})": measured[metric]["columns"][column] for column in columns}
            row["chance"] = measured["random"] if metric == "agreement" else 0.0
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
        for name, figures in _sets(results, "classify").items()
    }


def _chosen_steps(results: Results) -> Mapping[str, Mapping[str, Figure]]:
    """Give the checkpoints that the figures were chosen at."""
    return {
        name: {"α": figures["validation"]["alpha step"]}
        | {f"A({column})": figures["validation"]["agreement"]["steps"][column] for column in AGREEMENTS}
        for name, figures in _sets(results).items()
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
    Table("Attention where all else is frozen", "table 10", TABLE_10, _measured_frozen),
    Table("The steps at which the figures were chosen", "A.7; the paper does not tell its own", {}, _chosen_steps),
)


def draw_plots(results: Results) -> list[dict[str, Any]]:
    """Draw the learning curves of every set, the proxy's first step, the toys, and attention as it forms."""
    plots: list[dict[str, Any]] = []
    for name, figures in _sets(results).items():
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


STUDY = Study(
    name="learning",
    title="How attention learns",
    paper="Snell, Zhong, Klein and Steinhardt 2021, Approximating How Single Head Attention Learns",
    presets={"quick": QUICK, "standard": STANDARD, "paper": PAPER},
    steps=build_steps,
    claims=CLAIMS,
    tables=TABLES,
    plots=draw_plots,
    deviations=(
        "The Hansards stand in for IWSLT'14 and News Commentary; Amazon reviews and GloVe vectors are not there.",
        "Byte-pair encoding instead of SentencePiece's; texts end with one token and begin with none.",
        "The vocabulary layer of the translation model has no bias.",
        "The classifier's loss is balanced between the labels.",
        "Toy models are trained with Adam at 1e-3; a run that copies all but perfectly ends there. The rate matters: "
        "at 3e-3, width 64, permutations were learned on 3 of 3 seeds; claims 3 and 7 hold for this rate and budget.",
        "Probes are maximised over checkpoints on the examples they are judged on, as in the paper; chance is not.",
        "Δ is the saliency of the first run where it is best, as α is.",
        "Log-odds of the keyword task leave out texts whose keyword stands at the last two positions.",
    ),
)
