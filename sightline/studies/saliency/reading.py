"""All methods of the study on one model, with every forward and backward pass done once.

Li's measure and word saliency are two reductions of the same gradients, so they share the passes of plain gradients
and the noisy samples of SmoothGrad; smoothed attention averages the same samples.

    Li, eq. 4             mean |d log p(t_j) / d W_si|
    Li as released        |d log p(t_j) / d W_si . W_si|
    word saliency, eq. 3  d log p(t_j) / d W_si . W_si
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor

from sightline.attribution import Attribution
from sightline.methods.attention import attention
from sightline.methods.gradients import (
    Reduction,
    average_gradients,
    dot,
    sides_of,
    size_of_gradient,
)
from sightline.methods.paths import smooth_path
from sightline.methods.scored import Scored, to_attributions
from sightline.methods.settings import AttentionSettings, SaliencySettings
from sightline.models.examples import Batch, Example
from sightline.models.loaded import LoadedModel
from sightline.studies.saliency.published import (
    ATTENTION,
    LI_GRAD,
    LI_SMOOTH,
    OURS_GRAD,
    OURS_RAW,
    OURS_SMOOTH,
    RELEASED_GRAD,
    RELEASED_SMOOTH,
    SMOOTHED,
)
from sightline.studies.saliency.settings import Settings
from sightline.verbs.explaining import map_examples

METHODS = (
    ATTENTION,
    SMOOTHED,
    LI_GRAD,
    LI_SMOOTH,
    RELEASED_GRAD,
    RELEASED_SMOOTH,
    OURS_GRAD,
    OURS_SMOOTH,
    OURS_RAW,
)
Readings = dict[str, Attribution]
"""The scores of one pair, by method."""


def read_all(
    model: LoadedModel, examples: Iterable[Example], architecture: str, settings: Settings
) -> Iterator[Readings]:
    """Read every pair by every method; in order, as they come."""
    return map_examples(model, examples, partial(_read_batch, model, architecture, settings))


def read_noise(model: LoadedModel, examples: Iterable[Example], settings: Settings, sigma: float) -> Iterator[Readings]:
    """Read word saliency alone, with another noise."""

    def read(batch_examples: list[Example]) -> list[Readings]:
        with model.evaluating():
            batch = model.batch(batch_examples)
            scores = _gradients(model, batch, _smooth(settings, sigma), {OURS_SMOOTH: Reduction(dot)})
            return _to_readings(model, batch, scores)

    return map_examples(model, examples, read)


def read_plain(model: LoadedModel, examples: Iterable[Example], architecture: str) -> Iterator[Readings]:
    """Read attention and plain word saliency."""

    def read(batch_examples: list[Example]) -> list[Readings]:
        with model.evaluating():
            batch = model.batch(batch_examples)
            scores = {ATTENTION: _attention(model, batch, architecture)}
            scores |= _gradients(model, batch, SaliencySettings(), {OURS_GRAD: Reduction(dot)})
            return _to_readings(model, batch, scores)

    return map_examples(model, examples, read)


def _read_batch(model: LoadedModel, architecture: str, settings: Settings, examples: list[Example]) -> list[Readings]:
    smooth = _smooth(settings, settings.sigma)
    noise = {"smoothgrad": smooth.smoothgrad, "sigma": smooth.sigma, "seed": smooth.seed}
    with model.evaluating():
        batch = model.batch(examples)
        scores = {
            ATTENTION: _attention(model, batch, architecture),
            SMOOTHED: _attention(model, batch, architecture, **noise),
        }
        plain = {
            LI_GRAD: Reduction(size_of_gradient("l1")),
            RELEASED_GRAD: Reduction(_absolute_dot),
            OURS_GRAD: Reduction(dot),
        }
        smoothed = {
            LI_SMOOTH: Reduction(size_of_gradient("l1")),
            RELEASED_SMOOTH: Reduction(_absolute_dot),
            OURS_SMOOTH: Reduction(dot),
            OURS_RAW: Reduction(dot, raw=True),
        }
        scores |= _gradients(model, batch, SaliencySettings(), plain)
        scores |= _gradients(model, batch, smooth, smoothed)
        return _to_readings(model, batch, {method: scores[method] for method in METHODS})


def _smooth(settings: Settings, sigma: float) -> SaliencySettings:
    return SaliencySettings(smoothgrad=settings.samples, sigma=sigma, seed=settings.seed)


def _absolute_dot(slope: Tensor, direction: Tensor) -> Tensor:
    return dot(slope, direction).abs()


def _attention(
    model: LoadedModel, batch: Batch, architecture: str, **noise: Any
) -> Float[Tensor, "batch target source"]:
    """Return the weights of the last layer, averaged over heads; of the convolutional model, the mean over layers."""
    return attention(model, batch, AttentionSettings(layer="mean" if architecture == "conv" else -1, **noise)).scores


def _gradients(
    model: LoadedModel, batch: Batch, settings: SaliencySettings, reductions: dict[str, Reduction]
) -> dict[str, Float[Tensor, "batch target source"]]:
    path = smooth_path(batch, settings)
    sides = sides_of(model, settings.prefix)
    found = average_gradients(model, batch, settings, sides, path, list(reductions.values()))
    return dict(zip(reductions, found, strict=True))


def _to_readings(model: LoadedModel, batch: Batch, scores: dict[str, Tensor]) -> list[Readings]:
    by_method = [to_attributions(model, batch, Scored(one), method, {}) for method, one in scores.items()]
    return [dict(zip(scores, readings, strict=True)) for readings in zip(*by_method, strict=True)]
