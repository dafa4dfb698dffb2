"""Packed weights: 8 bits for each entry of a matrix, with a scale for each of its rows; the rest in half precision.

    w[i, j] = q[i, j] * scale[i],  q = round(w / scale) in -127..127,  scale[i] = max_j |w[i, j]| / 127

A scale is a bfloat16, so that q * scale is exact in single precision: what is unpacked packs to the same file again.
The file, `packed.safetensors`, takes the place of `model.safetensors` in a model's folder. It carries a checksum over
its tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from jaxtyping import BFloat16, Float, Int8
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sightline.errors import InputError
from sightline.models.sealed_weights import CHECKSUM, read_weights, write_weights

PACKED = "packed.safetensors"
UNPACKED = "model.safetensors"
SCALE = ".scale"  # what the name of a matrix's scales ends with
LARGEST = 127
FORMAT = "sightline-packed-1"


def pack_folder(folder: Path) -> None:
    """Replace a saved model's weights by packed ones."""
    packed = pack(load_file(folder / UNPACKED))
    write_weights(packed, folder / PACKED, format=FORMAT)
    (folder / UNPACKED).unlink()


def has_packed(folder: Path) -> bool:
    """Return whether a folder has packed weights, and no others, which would count."""
    return (folder / PACKED).is_file() and not (folder / UNPACKED).is_file()


def read_packed(folder: Path) -> dict[str, Tensor]:
    """Read packed weights, in single precision."""
    path = folder / PACKED
    try:
        packed, metadata = read_weights(path)
        if metadata.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        if CHECKSUM not in metadata:
            raise ValueError("it has no checksum")
        return unpack(packed)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise InputError(f"The weights in {path} are damaged ({reason}): restore them from a copy.") from error


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Pack weights by name: each matrix becomes 8-bit numbers and scales of its rows."""
    packed = {}
    for name, tensor in weights.items():
        if tensor.ndim == 2 and len(tensor) > 1:  # a single row is a bias
            packed[name], packed[name + SCALE] = quantize(tensor.float())
        else:
            packed[name] = tensor.half() if tensor.is_floating_point() else tensor
    return packed


def unpack(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights, in single precision, that `pack` packed; a ValueError says what does not belong together."""
    weights = {}
    for name, tensor in packed.items():
        if name.endswith(SCALE):
            if name.removesuffix(SCALE) not in packed:
                raise ValueError(f"{name} belongs to no weights")
        elif tensor.dtype == torch.int8:
            scales = packed.get(name + SCALE)
            if scales is None or scales.dtype != torch.bfloat16 or tensor.ndim != 2 or len(scales) != len(tensor):
                raise ValueError(f"{name} does not have a scale for each of its rows")
            weights[name] = dequantize(tensor, scales)
        else:
            weights[name] = tensor.float() if tensor.is_floating_point() else tensor
    return weights


def quantize(matrix: Float[Tensor, "row column"]) -> tuple[Int8[Tensor, "row column"], BFloat16[Tensor, " row"]]:
    """Return 8-bit numbers and the scale of each row; a row of zeros has the scale 0."""
    scales = (matrix.abs().amax(1) / LARGEST).bfloat16()
    divisors = scales.float().masked_fill(scales == 0, 1.0)
    numbers = (matrix / divisors[:, None]).round().clamp(-LARGEST, LARGEST)
    return numbers.to(torch.int8), scales


def dequantize(numbers: Int8[Tensor, "row column"], scales: BFloat16[Tensor, " row"]) -> Float[Tensor, "row column"]:
    """Return the matrix in single precision, which holds the products exactly."""
    return numbers.float() * scales.float()[:, None]
