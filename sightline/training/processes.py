"""The processes of a run: the device and the precision that they compute with, and how they agree."""

from __future__ import annotations

import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import parse_flag_from_env

PRECISIONS = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}


def build_accelerator(precision: str) -> Accelerator:
    """Build the Accelerator of this process; `auto` takes 16 bits where the device computes faster with them."""
    on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available()
    device = PartialState(cpu=on_cpu).device
    if precision == "auto":
        precision = _fast_precision(device)
    AcceleratorState._reset_state()  # an earlier run of this process may have had another precision
    return Accelerator(cpu=on_cpu, mixed_precision=PRECISIONS[precision])


def _fast_precision(device: torch.device) -> str:
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    if device.type == "cpu" and (torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()):
        return "bfloat16"
    return "float32"


def greatest(accelerator: Accelerator, value: float) -> float:
    """Return the greatest value of all processes, so that they decide alike."""
    if accelerator.num_processes == 1:
        return value
    everyone = accelerator.gather(torch.tensor([value], device=accelerator.device))
    return everyone.max().item()
