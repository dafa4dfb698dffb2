"""A fingerprint of a model: a few letters that tell its weights from others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import nn

from sightline.models.loaded import LoadedModel

NUMBERS_OF_EACH = 16


def fingerprint(model: LoadedModel) -> str:
    """Sum up a model's weights, those of its adapters included."""
    return digest(b"".join(weights_of(one) for one in (model.module, *model.adapters.values())))


@torch.no_grad()
def weights_of(module: nn.Module) -> bytes:
    """Return some numbers of each weight, with its name."""
    return b"".join(_some_of(module.named_parameters()))


def _some_of(parameters: Iterable[tuple[str, nn.Parameter]]) -> Iterable[bytes]:
    for name, parameter in parameters:
        flat = parameter.reshape(-1)
        some = flat[:: max(1, len(flat) // NUMBERS_OF_EACH)]
        yield name.encode() + some.double().cpu().numpy().tobytes()


def digest(data: bytes) -> str:
    """Return a short checksum."""
    return hashlib.sha256(data).hexdigest()[:16]
