"""A recipe that trains in a second, for tests to change."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

LANGUAGE = {"stems": 40, "clauses": 1, "seed": 3}
RECIPE: dict[str, Any] = {
    "data": {
        "train": {"generated": LANGUAGE, "sentences": 300},
        "dev": {"generated": LANGUAGE, "sentences": 12},
    },
    "tokenizer": {"vocabulary": 200},
    "model": {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "width": 16,
        "heads": 2,
        "feed_forward": 32,
        "max_positions": 64,
    },
    "training": {
        "steps": 12,
        "batch_tokens": 200,
        "warmup": 4,
        "learning_rate": 0.01,
        "log_every": 2,
        "checkpoint_every": 4,
        "average": 2,
        "precision": "float32",  # the same on every processor: `auto` takes bfloat16 where one multiplies it itself
    },
    "evaluation": {"beam": 1},
}


def recipe(**sections: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe with some keys of some sections changed: `recipe(training={"steps": 3})`."""
    changed = copy.deepcopy(RECIPE)
    for name, keys in sections.items():
        changed[name] |= keys
    return changed


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Read the weights that a folder holds."""
    return load_file(folder / "model.safetensors")


def same_weights(one: Path, other: Path) -> bool:
    """Say whether two folders hold the same weights, bit for bit."""
    first, second = weights(one), weights(other)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
