"""The sizes of the study: minutes, a night on 2 cores, and the paper's own."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.studies.norms.inputs import MINILM


@dataclass(frozen=True)
class TrainingSettings:
    """Translation models that the study trains itself."""

    generated: bool
    """On a generated language, whose gold alignments are exact; else on German-English Europarl pairs."""
    pairs: int
    steps: int
    layers: int
    width: int
    heads: int
    feed_forward: int
    vocabulary: int
    batch_tokens: int
    learning_rate: float
    warmup: int
    schedule: str = "inverse_sqrt"
    norm: str = "post"
    """`post` as in the paper, or `pre`, which bears higher learning rates."""
    test_pairs: int = 200
    """Of the generated language."""


@dataclass(frozen=True)
class Settings:
    """The sizes of the study, and the models that it reads."""

    inputs: int
    """Texts of two segments for the encoder."""
    counted: int
    """Documents of each set in which tokens are counted, for the rank by frequency."""
    training: TrainingSettings | None = None
    model: str = MINILM
    """The encoder."""
    models: str = ""
    """The folder of translation models from German to English; without one, they are trained as `training` says."""
    seeds: tuple[int, ...] = (1, 2, 3)
    """Of the translation models that are trained."""
    max_tokens: int = 128
    plotted: int = 300
    """Points of each series in the plots of single tokens."""
    seed: int = 1


QUICK = Settings(
    inputs=24,
    counted=200,
    training=TrainingSettings(
        generated=True,
        pairs=6000,
        steps=400,
        layers=2,
        width=64,
        heads=4,
        feed_forward=128,
        vocabulary=400,
        batch_tokens=1024,
        learning_rate=3e-3,
        warmup=100,
    ),
)
STANDARD = Settings(
    inputs=1000,
    counted=5000,
    training=TrainingSettings(
        generated=False,
        pairs=300_000,
        steps=4000,
        layers=3,
        width=256,
        heads=4,
        feed_forward=512,
        vocabulary=8000,
        batch_tokens=2048,
        learning_rate=1.5e-3,
        warmup=800,
        schedule="trapezoid",
        norm="pre",
    ),
)
PAPER = Settings(
    inputs=992,
    counted=25_000,
    training=TrainingSettings(
        generated=False,
        pairs=400_000,
        steps=40_000,
        layers=6,
        width=512,
        heads=8,
        feed_forward=2048,
        vocabulary=32_000,
        batch_tokens=32_768,
        learning_rate=5e-4,
        warmup=4000,
    ),
    model="google-bert/bert-base-uncased",
)
