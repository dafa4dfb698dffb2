"""The sizes of the study: minutes on a generated language, hours on Multi30k, and the paper's own."""

from __future__ import annotations

from dataclasses import dataclass, replace

GENERATED = "generated"


@dataclass(frozen=True)
class Settings:
    """The sizes of the study."""

    corpus: str
    """A folder of the real corpora, with `train` and `val` in two languages; or `generated`."""
    languages: tuple[str, str]
    pairs: tuple[int, int]
    """Training pairs of the runs called small and large."""
    steps: tuple[int, int]
    seeds: tuple[int, int]
    """How many seeds every system has on the small and on the large text."""
    dev_pairs: int
    """The first pairs of the training text, which choose checkpoints and are not trained on."""
    test_pairs: int
    """Pairs of `val`, at most, that are translated and scored."""
    measured: int
    """Test pairs on which attention, masks and gradients are measured."""
    alphas: tuple[float, ...]
    """Prices of the mask that the gate is also trained with, besides `alpha`."""
    alpha: float
    alpha_seeds: int
    variants: tuple[str, ...]
    """Other ways to calibrate, each trained on the small text (`systems.VARIANTS`)."""
    variant_seeds: int
    width: int
    layers: int
    heads: int
    feed_forward: int
    norm: str
    """`post` as in the paper, or `pre`, with which little text is learned in far fewer steps."""
    dropout: float
    vocabulary: int
    batch_tokens: int
    learning_rate: float
    warmup: int
    checkpoints: int
    """Evaluations in a run; the weights of the last three are averaged, or the best one is taken."""
    beam: int
    schedule: str = "cosine"
    average: int = 3
    bootstraps: int = 2000
    seed: int = 1
    """Of the shuffled masks and of the bootstrap."""


QUICK = Settings(
    corpus=GENERATED,
    languages=("source", "target"),
    pairs=(1500, 6000),
    steps=(240, 240),
    seeds=(2, 2),
    dev_pairs=100,
    test_pairs=150,
    measured=40,
    alphas=(0.01, 1.0),
    alpha=0.1,
    alpha_seeds=1,
    variants=("released",),
    variant_seeds=1,
    width=64,
    layers=2,
    heads=4,
    feed_forward=128,
    norm="post",
    dropout=0.0,
    vocabulary=400,
    batch_tokens=1024,
    learning_rate=3e-3,
    warmup=80,
    checkpoints=4,
    beam=1,
    bootstraps=1000,
)
STANDARD = Settings(
    corpus="multi30k",
    languages=("de", "en"),
    pairs=(10_000, 28_000),
    steps=(1500, 2500),
    seeds=(5, 3),
    dev_pairs=1000,
    test_pairs=1014,
    measured=200,
    alphas=(0.001, 0.01, 0.3, 1.0),
    alpha=0.1,
    alpha_seeds=2,
    variants=("released", "squared", "sum", "no warm-up"),
    variant_seeds=2,
    width=128,
    layers=3,
    heads=4,
    feed_forward=256,
    norm="pre",
    dropout=0.15,
    vocabulary=4000,
    batch_tokens=1024,
    learning_rate=4e-3,
    warmup=250,
    checkpoints=10,
    beam=4,
)
PAPER = replace(
    STANDARD,
    corpus="wmt16-en-ro",
    languages=("en", "ro"),
    pairs=(100_000, 610_000),
    steps=(100_000, 100_000),
    test_pairs=1999,
    measured=1999,
    width=512,
    layers=6,
    heads=8,
    feed_forward=2048,
    norm="post",
    dropout=0.1,
    vocabulary=32_000,
    batch_tokens=32_000,
    learning_rate=7e-4,
    warmup=4000,
    checkpoints=50,
    schedule="inverse_sqrt",
    average=10,
)
"""The paper's model, schedule and smallest text, which lies in the folder `wmt16-en-ro` of the real corpora."""
