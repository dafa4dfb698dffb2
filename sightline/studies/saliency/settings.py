"""The sizes of the study: minutes on a generated language, a night on the Hansards, and the paper's own models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

LSTM_FORM = {"layers": 1, "bidirectional": False, "input_feeding": True, "combination": "tanh", "tied": "none"}
"""fairseq's lstm_wiseman_iwslt_de_en."""
CONV_FORM = {"encoder_layers": 4, "decoder_layers": 3, "kernel": 3, "tied": "none"}
"""fairseq's fconv_iwslt_de_en."""
GENERATED = "generated"


@dataclass(frozen=True)
class Sizes:
    """The size of one architecture's models, and what differs in their training: keys of a recipe."""

    model: Mapping[str, Any]
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """The sizes of the study."""

    corpus: str
    """A folder of the real corpora with the Hansards and their gold alignments; or `generated`."""
    languages: tuple[str, str]
    conv: Sizes
    lstm: Sizes
    transformer: Sizes
    training: Mapping[str, Any]
    """What the training of all models has in common: keys of a recipe."""
    vocabulary: int
    aligners: tuple[str, ...]
    """Statistical aligners to compare with; the first one also makes the reference of free decoding."""
    beam: int
    samples: int = 30
    """Noisy inputs of SmoothGrad."""
    sigma: float = 0.15
    sigmas: tuple[float, ...] = (0.0, 0.05, 0.15, 0.3)
    """The noise that is tried out (table 3), on this many pairs:"""
    noisy_pairs: int = 100
    exchanged: int = 50
    """Pairs in which an output is exchanged for another (section 3)."""
    generated_pairs: int = 0
    """Training pairs of the generated language."""
    test_pairs: int | None = None
    """Test pairs, at most."""
    models: str = ""
    """A folder of trained models, named as their recipes; what it does not hold is trained."""
    seed: int = 1

    def sizes(self, architecture: str) -> Sizes:
        """Return the sizes of an architecture."""
        return {"conv": self.conv, "lstm": self.lstm, "transformer": self.transformer}[architecture]


QUICK = Settings(
    corpus=GENERATED,
    languages=("source", "target"),
    conv=Sizes(CONV_FORM | {"encoder_layers": 2, "decoder_layers": 2, "width": 64, "dropout": 0.0}),
    lstm=Sizes(LSTM_FORM | {"width": 64, "dropout": 0.0}, {"steps": 1000, "learning_rate": 6e-3}),
    transformer=Sizes(
        {"encoder_layers": 2, "decoder_layers": 2, "width": 64, "heads": 4, "feed_forward": 128, "dropout": 0.0}
    ),
    training={
        "steps": 400,
        "batch_tokens": 1024,
        "learning_rate": 3e-3,
        "warmup": 100,
        "checkpoint_every": 100,
        "average": 2,
    },
    vocabulary=400,
    aligners=("diagonal",),
    beam=1,
    samples=10,
    noisy_pairs=20,
    exchanged=20,
    generated_pairs=6000,
    test_pairs=60,
)
STANDARD = Settings(
    corpus="hansard-en-fr",
    languages=("en", "fr"),
    conv=Sizes(CONV_FORM | {"width": 192, "dropout": 0.0}, {"learning_rate": 1.5e-3}),
    lstm=Sizes(LSTM_FORM | {"width": 256, "dropout": 0.0}, {"learning_rate": 3e-3}),
    transformer=Sizes(
        {"encoder_layers": 2, "decoder_layers": 2, "width": 192, "heads": 4, "feed_forward": 512, "dropout": 0.0},
        {"learning_rate": 2e-3},
    ),
    training={
        "steps": 4000,
        "batch_tokens": 2048,
        "schedule": "cosine",
        "warmup": 500,
        "checkpoint_every": 500,
        "average": 3,
    },
    vocabulary=6000,
    aligners=("diagonal", "hmm"),
    beam=4,
)
PAPER = replace(
    STANDARD,
    conv=Sizes(CONV_FORM | {"width": 256, "dropout": 0.1}, {"learning_rate": 1e-3}),
    lstm=Sizes(LSTM_FORM | {"width": 256, "dropout": 0.1}, {"learning_rate": 1e-3}),
    transformer=Sizes(
        {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "heads": 4, "feed_forward": 1024, "dropout": 0.1},
        {"learning_rate": 1e-3, "batch_tokens": 64_000, "accumulate": 16, "warmup": 4000, "steps": 20_000},
    ),
    training={
        "steps": 100_000,
        "batch_tokens": 4000,
        "schedule": "inverse_sqrt",
        "warmup": 500,
        "checkpoint_every": 1000,
        "average": 1,
        "patience": 5,
        "clip": 0.1,
    },
    vocabulary=40_000,
    beam=12,
)
"""fairseq's models for IWSLT with the released batches, rates, dropout and beam, on the Hansards that are here."""
