"""Attention in single precision inside a 16-bit pass.

On a CPU the attention kernel's backward pass takes three times as long in bfloat16 as in float32, although everything
around it, which is matrix products, takes half the time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

FLOAT32 = "sightline_float32"


def attend_in_float32(model: PreTrainedModel) -> None:
    """Let a model that uses the fast kernel compute its attention in float32, whatever autocast says."""
    if model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(FLOAT32)


def _float32_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
) -> tuple[Tensor, None]:
    with torch.autocast(query.device.type, enabled=False):
        return ALL_ATTENTION_FUNCTIONS["sdpa"](module, query.float(), key.float(), value.float(), *args, **kwargs)


AttentionInterface.register(FLOAT32, _float32_attention)
AttentionMaskInterface.register(FLOAT32, sdpa_mask)
