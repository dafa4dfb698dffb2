"""Weights in a safetensors file that carries a checksum over its tensors, which is verified on reading."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from sightline.files import writing

CHECKSUM = "sha256"


def write_weights(weights: Mapping[str, Tensor], path: Path, **metadata: str) -> None:
    """Write weights by name, whole or not at all."""
    plain = {name: tensor.contiguous() for name, tensor in weights.items()}
    with writing(path, "wb") as file:
        file.write(save(plain, metadata={**metadata, CHECKSUM: checksum(plain)}))


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read weights and the file's metadata; a ValueError says that the checksum, if it has one, is another."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    weights = load_file(path)
    if CHECKSUM in metadata and metadata[CHECKSUM] != checksum(weights):
        raise ValueError("its weights do not have its checksum")
    if not all(torch.isfinite(tensor).all() for tensor in weights.values() if tensor.is_floating_point()):
        raise ValueError("not all of its weights are finite numbers")
    return weights, metadata


def checksum(weights: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
