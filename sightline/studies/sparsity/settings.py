"""The sizes of the study: minutes, an hour and a half of one core, and the paper's own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The sizes of the study."""

    train_texts: int
    dev_texts: int
    test_texts: int
    max_words: int
    steps: tuple[int, int]
    """Of the LSTM and of the Transformer, whose states disperse later."""
    checkpoint_every: int
    learning_rates: tuple[float, float]
    """Of the LSTM and of the Transformer."""
    attention_rates: tuple[float, float]
    """Of their attention, times that of the rest; the paper's appendix B has 1 or 10."""
    adversary_steps: int
    adversary_tries: int
    """How often an adversary is looked at; while it is none yet, it is trained to twice as many steps."""
    adversary_rate: float
    adversary_strength: float
    explained: int
    """Documents whose importances are measured by gradients."""
    erased: int
    """Documents whose importances are measured by leave-one-out, which needs a pass for every word."""
    dispersed: int
    """Documents of which the importance of every word for every state is measured."""
    facets: int
    """Documents of which it is measured by the state's Jacobian too (appendix A), which takes its width in passes."""
    facet_words: int
    """Their first words: the passes take time by the square of the length."""
    lambdas: tuple[float | int, ...] = (-100, -10, -1, 0, 0.5, 0.9)
    width: int = 128
    embedding_width: int = 300
    vocabulary: int = 10_000
    seeds: tuple[int, ...] = (1, 2, 3)
    """Of the models that the tables compare, and of adversaries; other projections have the first alone."""


QUICK = Settings(
    train_texts=3000,
    dev_texts=100,
    test_texts=200,
    max_words=30,
    steps=(120, 120),
    checkpoint_every=40,
    learning_rates=(3e-3, 1e-3),
    attention_rates=(1.0, 10.0),
    adversary_steps=80,
    adversary_tries=2,
    adversary_rate=3e-3,
    adversary_strength=1.0,
    explained=30,
    erased=30,
    dispersed=15,
    facets=3,
    facet_words=30,
    lambdas=(-10, 0, 0.9),
    seeds=(1,),
    embedding_width=128,
)
STANDARD = Settings(
    train_texts=5000,
    dev_texts=300,
    test_texts=1000,
    max_words=128,
    steps=(480, 960),
    checkpoint_every=80,
    learning_rates=(1e-3, 1e-3),
    attention_rates=(1.0, 10.0),
    adversary_steps=320,
    adversary_tries=3,
    adversary_rate=1e-3,
    adversary_strength=1.0,
    explained=300,
    erased=40,
    dispersed=30,
    facets=5,
    facet_words=30,
)
PAPER = Settings(
    train_texts=25_000,
    dev_texts=1000,
    test_texts=4356,
    max_words=400,
    steps=(6000, 6000),
    checkpoint_every=700,
    learning_rates=(1e-4, 1e-5),
    attention_rates=(1.0, 10.0),
    adversary_steps=6000,
    adversary_tries=2,
    adversary_rate=1e-4,
    adversary_strength=1.0,
    explained=4356,
    erased=4356,
    dispersed=4356,
    facets=100,
    facet_words=400,
    vocabulary=20_000,
)
