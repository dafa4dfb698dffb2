"""The points in embedding space at which gradients are taken: the input itself, noise around it, a way up to it.

A method that averages gradients (SmoothGrad, Smilkov et al. 2017; integrated gradients, Sundararajan et al. 2017) is a
plain gradient method and a list of points with weights.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sightline.methods.settings import SmoothSettings
from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel


class InputPath:
    """The plain path: one point, the input itself."""

    weights: list[float]

    def __init__(self) -> None:
        self.weights = [1.0]

    def place(self, embedding: Float[Tensor, "batch position width"], point: int, side: str) -> Tensor:
        """Return the embeddings at a point."""
        return embedding

    def direction(self, embedding: Float[Tensor, "batch position width"], side: str) -> Tensor:
        """Return what a gradient is multiplied with."""
        return embedding

    def prepared(self, scores: Float[Tensor, "*batch target column"]) -> Float[Tensor, "*batch target column"]:
        """Make the scores at one point ready to be averaged."""
        return scores


@dataclass
class NoisyPath(InputPath):
    """SmoothGrad's points: the input with noise. A gradient there is multiplied with the clean embedding."""

    batch: Batch
    settings: SmoothSettings
    weights: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.weights = [1 / self.settings.smoothgrad] * self.settings.smoothgrad

    def place(self, embedding: Tensor, point: int, side: str) -> Tensor:
        if side != "source":
            return embedding
        moved = embedding.clone()
        for row, example in enumerate(self.batch.examples):
            length = min(len(example.source), embedding.shape[1])
            clean = embedding[row, :length].detach()
            noise = self._noise(row, point, embedding.shape[-1])[:length].to(embedding)
            moved[row, :length] += self._sigma(clean) * noise
        return moved

    def prepared(self, scores: Tensor) -> Tensor:
        """Clamp and normalise one sample's scores if that is wanted; a row without positive scores becomes zeros."""
        if self.settings.average == "raw":
            return scores
        positive = scores.clamp(min=0)
        total = positive.sum(-1, keepdim=True)
        return positive / torch.where(total > 0, total, 1)

    def _sigma(self, clean: Tensor) -> Tensor | float:
        return self.settings.sigma * (clean.max() - clean.min()) if self.settings.relative else self.settings.sigma

    def _noise(self, row: int, point: int, width: int) -> Tensor:
        example = self.batch.examples[row]
        fingerprint = zlib.crc32(np.array([self.settings.seed, point, *example.ids], dtype=np.int64).tobytes())
        generator = torch.Generator().manual_seed(fingerprint)
        return torch.randn(len(example.source), width, generator=generator)


@dataclass
class StraightPath(InputPath):
    """Integrated gradients' points: on the straight line from a baseline to the input, by Gauss-Legendre's rule."""

    baselines: dict[str, Tensor]
    steps: int
    weights: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.weights = [float(weight) / 2 for weight in self._rule[1]]

    @cached_property
    def _rule(self) -> tuple[np.ndarray, np.ndarray]:
        return np.polynomial.legendre.leggauss(self.steps)

    def place(self, embedding: Tensor, point: int, side: str) -> Tensor:
        share = float(self._rule[0][point] + 1) / 2
        return self.baselines[side] + share * self.direction(embedding, side)

    def direction(self, embedding: Tensor, side: str) -> Tensor:
        return embedding - self.baselines[side]


def smooth_path(batch: Batch, settings: SmoothSettings) -> InputPath:
    """Return SmoothGrad's points, or without samples the input itself."""
    return NoisyPath(batch, settings) if settings.smoothgrad else InputPath()


def straight_path(model: LoadedModel, baseline: str, steps: int) -> InputPath:
    """Return the points from a baseline (pad, zero or mask) to the input."""
    vectors = {
        side: model.embedding_of(side, None if baseline == "zero" else baseline) for side in model.embedding_sites
    }
    return StraightPath(vectors, steps)
