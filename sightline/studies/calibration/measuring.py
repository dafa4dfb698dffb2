"""What is measured on one trained model: its translations, its losses under several masks, and its attention.

    bleu, translations   of the test sentences
    tau weights          Kendall's tau of attention with |d p(y_t) / d h_i|, by layer (figures 2 and 5)

and, of a calibrated model, before and after calibration:

    losses               the test cross-entropy: calibrated, with the original attention, perturbed by the learned mask,
                         and perturbed by the same mask with its values in another order (so of equal mean)
    mask, tau masks      its mean, and Kendall's tau of 1 - m with the gradients, by layer (figures 4 and 5)
    divergence           JSD of original and calibrated weights, by layer (figure 6), and there by entropy (figure 7)
    entropy change       by layer, and of the weights averaged over layers and heads (table 5)
    example              one sentence: weights before and after, and 1 - m (figure 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sacrebleu.metrics import BLEU

from sightline.attend.calibration import CalibrationMode, Mask
from sightline.attribution import Attribution
from sightline.measures import by_entropy, calibration_divergence, importance_correlation, measure_calibration
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.studies.calibration.settings import Settings
from sightline.training import TrainingResult
from sightline.verbs.explaining import explain
from sightline.verbs.translating import translate

ENTROPIES = (0.0, 0.8, 1.6, 2.4, 3.2)
"""The lower edges of figure 7's bins; the last is open."""
EXAMPLE_WORDS = range(6, 13)
"""The lengths of a sentence that is worth looking at, and has room on a page."""


def measure_run(result: TrainingResult, test: Sequence[tuple[str, str]], settings: Settings) -> dict[str, Any]:
    """Translate the test sentences, and measure attention on the first of them."""
    model = load(result.folder)
    sources, targets = ([pair[side] for pair in test] for side in (0, 1))
    translations = [one.text for one in translate(model, sources, num_beams=settings.beam, progress=False)]
    metric = BLEU(force=True)  # else it warns that text is tokenised, which here it may be
    bleu = metric.corpus_score(translations, [targets]).score
    figures: dict[str, Any] = {
        "bleu": bleu,
        "signature": str(metric.get_signature()),
        "translations": translations,
        "dev loss": result.dev.loss,
        "weights": result.weights,
        "parameters": result.parameters,
        "minutes": result.minutes,
        "warnings": list(result.warnings),
    }
    return figures | measure_attention(model, sources[: settings.measured], targets[: settings.measured], settings.seed)


def measure_attention(model: LoadedModel, sources: list[str], targets: list[str], seed: int) -> dict[str, Any]:
    """Compare attention with gradients and, of a calibrated model, with what calibration makes of it."""

    def explained(method: str, **options: Any) -> list[Attribution]:
        return explain(model, sources, targets, method=method, progress=False, **options)

    importance = explained("hidden_gradient")
    if model.calibration is None:
        weights = explained("attention", head="all")
        return {"tau weights": importance_correlation(weights, importance).tolist()}
    original, calibrated = (explained("attention", head="all", original=before) for before in (True, False))
    masks = explained("perturbation_mask")
    figures = measure_calibration(original, calibrated, masks, importance)
    return {
        "tau weights": figures.tau_of_weights.tolist(),
        "tau masks": figures.tau_of_masks.tolist(),
        "mask": figures.mask.tolist(),
        "divergence": figures.divergence.tolist(),
        "divergence by entropy": _divergence_by_entropy(original, calibrated),
        "entropy change": figures.entropy_change.tolist(),
        "entropy change of all": figures.entropy_change_of_all,
        "losses": measure_losses(model, sources, targets, seed),
        "example": _show_example(original, calibrated, masks),
    }


def _divergence_by_entropy(
    original: Sequence[Attribution], calibrated: Sequence[Attribution]
) -> list[list[list[float | int]]]:
    """Return, for every layer, mean and deviation of the divergence and the number of rows in each bin of entropy."""
    layers = []
    for layer in range(original[0].scores.shape[0]):
        pairs = [(a.scores[layer], c.scores[layer]) for a, c in zip(original, calibrated, strict=True)]
        bins = by_entropy([calibration_divergence(a, c) for a, c in pairs], [a for a, _ in pairs], ENTROPIES)
        layers.append([[one.mean, one.deviation, one.defined] for one in bins])
    return layers


@torch.no_grad()
def measure_losses(model: LoadedModel, sources: list[str], targets: list[str], seed: int) -> dict[str, float]:
    """Measure the mean cross-entropy of a target token under each way to run a calibrated model."""
    assert model.calibration is not None
    generator = torch.Generator().manual_seed(seed)

    def shuffle(mask: Mask) -> Mask:
        order = torch.rand(mask.shape, generator=generator).argsort(-1)
        return mask.gather(-1, order.to(mask.device))

    ways: dict[str, tuple[CalibrationMode, Callable[[Mask], Mask] | None]] = {
        "calibrated": ("calibrated", None),
        "original": ("original", None),
        "perturbed": ("perturbed", None),
        "shuffled": ("perturbed", shuffle),
    }
    sums = dict.fromkeys(ways, 0.0)
    tokens = 0
    with model.evaluating():
        for source, target in zip(sources, targets, strict=True):
            batch = model.batch([model.encode(source, target)])  # alone: there is no padding to shuffle
            tokens += int(batch.row_mask.sum())
            for name, (way, change) in ways.items():
                with model.calibration.running(way, change):
                    sums[name] -= float((model.log_probs(batch).double() * batch.row_mask).sum())
    return {name: total / tokens for name, total in sums.items()}


def _show_example(
    original: Sequence[Attribution], calibrated: Sequence[Attribution], masks: Sequence[Attribution]
) -> dict[str, Any] | None:
    """Return the weights of the first sentence of a fitting length, averaged over heads, word by word, by layer."""
    for several in zip(original, calibrated, masks, strict=True):
        if len(several[0].source.pieces) in EXAMPLE_WORDS and len(several[0].target.pieces) in EXAMPLE_WORDS:
            tables = [np.asarray(one.scores, dtype=float).mean(1).round(4).tolist() for one in several]
            return {
                "source": list(several[0].source.pieces),
                "target": list(several[0].target.pieces),
                **dict(zip(("before", "after", "mask"), tables, strict=True)),
            }
    return None
