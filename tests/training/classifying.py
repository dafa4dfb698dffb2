"""A recipe of a classifier that trains in a second or two, for tests to change."""

from __future__ import annotations

from typing import Any

RECIPE: dict[str, Any] = {
    "data": {
        "train": {"labelled": "generated", "sentences": 300},
        "dev": {"labelled": "generated", "sentences": 60},
        "test": {"labelled": "generated", "sentences": 60},
        "max_words": 40,
    },
    "tokenizer": {"kind": "words", "vocabulary": 400},
    "model": {"architecture": "classifier", "width": 16, "embedding_width": 16, "dropout": 0, "max_positions": 64},
    "training": {
        "steps": 40,
        "batch_texts": 32,
        "learning_rate": 0.02,
        "schedule": "constant",
        "warmup": 0,
        "amsgrad": True,
        "label_smoothing": 0,
        "checkpoint_every": 20,
        "average": 1,
        "precision": "float32",
    },
}
