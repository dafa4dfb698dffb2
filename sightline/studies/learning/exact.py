"""What can be computed without training: the proxy's first step, the count table, the counter-example, eq. 12."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sightline.alignment.bitext import build_bitext
from sightline.alignment.lexicon import count_table
from sightline.attend.optimal import optimal_attention
from sightline.data.toys import PairSampler
from sightline.models.proxy import BagOfWords, expected_derivative, logit_derivative
from sightline.studies.learning.settings import LearningSettings
from sightline.studies.learning.toy_steps import ToySettings, tasks
from sightline.studies.study import Finding, Results

COUNTED_PAIRS = 200


def measure_proxy(settings: LearningSettings) -> dict[str, Any]:
    """Compare the first step of proxies with the count tables of the toys (eq. 54), and keep small tables to show."""
    measured: dict[str, Any] = {"widths": list(settings.widths)}
    small = tasks(ToySettings(**(vars(settings.toys) | {"length": 6, "words": 9})))
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
    """Return C of some pairs (eq. 16), in the order of the words' numbers."""
    table = count_table(build_bitext(([str(x) for x in source], [str(y) for y in target]) for source, target in pairs))
    order = [str(word) for word in range(words)]
    rows = [table.source_numbers[word] for word in order]
    return table.dense()[np.ix_(rows, [table.target_numbers[word] for word in order])]


def solve_counter_example() -> dict[str, Any]:
    """Find the optimal attention of eq. 29-31."""
    logits = torch.tensor([[[0.0, 0.0, 0.0], [0.0, -10.0, 5.0], [0.0, 5.0, -10.0]]], dtype=torch.float64)
    weights, gap = optimal_attention(logits, torch.tensor([0]))
    probe = logits.softmax(-1)[0, :, 0]
    return {"weights": weights[0].tolist(), "gap": float(gap[0]), "probe": probe.tolist()}


# Judging


def judge_derivative(results: Results) -> Finding | None:
    """Claim 5: the proxy's first step is 2(C - row mean), the more exactly the wider it is."""
    control = results["proxy"]["control"]
    widths, errors = results["proxy"]["widths"], control["errors"]
    slope = float(np.polyfit(np.log(widths), np.log(errors), 1)[0])
    return Finding(
        -0.65 < slope < -0.35 and errors[-1] < errors[0] / 4,
        f"root mean square error {errors[0]:.2f} at width {widths[0]}, {errors[-1]:.3f} at {widths[-1]:,}: "
        f"as width^{slope:.2f}",
    )


def judge_uniform_counts(results: Results) -> Finding | None:
    """Claim 6: the count table is uniform under permutations, and not in the control."""
    spreads = {name: results["proxy"][name]["spread"] for name in ("permutations", "control")}
    return Finding(
        spreads["permutations"] < 1e-9 < spreads["control"],
        f"greatest difference within a row, over the greatest count: {spreads['permutations']:.2g} under permutations, "
        f"{spreads['control']:.2f} in the control",
    )


def judge_identity(results: Results) -> Finding | None:
    """Claim 12, on a random classifier: sigma(sum_l alpha_l logit(beta_l)) is the probability of the label."""
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
