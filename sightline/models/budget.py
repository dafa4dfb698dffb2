"""The memory budget of a loaded model: how many positions one pass may hold.

An upper estimate: what every layer computes for a position is kept, twice where gradients are taken, in addition to the
attention weights and three copies of the logits. It bounds batches; it does not measure.
"""

from __future__ import annotations

import re

import torch
from torch import nn

from sightline.errors import InputError
from sightline.models.loaded import LoadedModel

# A pass this large keeps a few cores busy; more only costs memory.
MAX_POSITIONS = 2048
# Gradients: at most this many positions in one pass; a small batch carries several points or products at a time.
MAX_GRADIENT_POSITIONS = 512
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def read_size(size: int | str) -> int:
    """Read a number of bytes: 2000000000, "500MB" or "2GB"."""
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]*)?|\.[0-9]+)\s*([KMG]?)(?:i?B)?", size.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"The memory {size!r} should be a number of bytes, or look like 500MB or 2GB.")
    return int(float(match[1]) * UNITS[match[2].upper()])


def positions_that_fit(model: LoadedModel, length: int) -> int:
    """Return how many positions of examples of this length one pass may hold, within the model's `max_memory`."""
    return max(1, min(MAX_POSITIONS, model.max_memory // _bytes_per_position(model, length)))


def gradient_positions_that_fit(model: LoadedModel, length: int) -> int:
    """Return the same for a pass whose activations are kept for gradients."""
    return max(1, min(MAX_GRADIENT_POSITIONS, model.max_memory // (2 * _bytes_per_position(model, length))))


def _bytes_per_position(model: LoadedModel, length: int) -> int:
    config = model.module.config.get_text_config()
    vocabulary = getattr(config, "vocab_size", 0)
    widths = [_width(module) for module in model.module.modules()]
    activations = sum(width for width in widths if width < vocabulary or not vocabulary)
    heads = getattr(config, "num_attention_heads", 1) * sum(1 for m in model.module.modules() if _attends(m))
    bytes_each = torch.finfo(model.module.dtype).bits // 8
    return 2 * bytes_each * (activations + heads * length) + 3 * 4 * vocabulary


def _width(module: nn.Module) -> int:
    """Return how many numbers a layer computes for a position."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or isinstance(module, nn.Embedding):
        return 0
    return int(weight.shape[-1] if type(module).__name__ == "Conv1D" else weight.shape[0])


def _attends(module: nn.Module) -> bool:
    return type(module).__name__.endswith(("Attention", "SelfAttention")) and not any(
        type(child).__name__.endswith("Attention") for child in module.children()
    )
