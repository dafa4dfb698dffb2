"""What a causal model computed for the tokens of an example: variants that begin as it does need not run them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

from sightline.models.examples import Batch, Example
from sightline.models.loaded import LoadedModel


class Prefix(NamedTuple):
    """Keys and values of every layer, for the tokens of one example."""

    layers: Sequence[tuple[Tensor, Tensor]]

    def repeated(self, length: int, times: int) -> DynamicCache:
        """Return the first tokens as the past of several rows."""
        return DynamicCache(
            [tuple(one[:, :, :length].expand(times, -1, -1, -1) for one in both) for both in self.layers]
        )


def read_prefix(model: LoadedModel, example: Example) -> Prefix | None:
    """Run an example of a causal model; None if it does not keep every token (sliding windows)."""
    batch = model.batch([example])
    output = model.last_stack(**model.source_inputs(batch), use_cache=True)
    cache = getattr(output, "past_key_values", None)
    if not isinstance(cache, DynamicCache) or any(type(layer) is not DynamicLayer for layer in cache.layers):
        return None
    return Prefix([(layer.keys, layer.values) for layer in cache.layers])


def logits_after(
    model: LoadedModel, batch: Batch, prefix: Prefix, length: int
) -> Float[Tensor, "batch target vocabulary"]:
    """Return the logits of outputs, of rows of one length whose first tokens are the prefix's; those inside it are not.

    An output that is predicted inside the prefix gets the logits of the first position after it instead.
    """
    past = prefix.repeated(length, len(batch))
    inputs = {"input_ids": batch.ids[:, length:], "attention_mask": torch.ones_like(batch.ids)}
    return model.take_logits(batch, (batch.rows - length).clamp(min=0), past_key_values=past, **inputs)
