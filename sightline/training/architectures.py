"""The models that a recipe can name.

An architecture is a line in the table: the settings that `model:` takes and the function that builds the model. The
model is a `PreTrainedModel` whose `base_model(input_ids, attention_mask, decoder_input_ids, use_cache)` gives the
decoder's states first, and whose `get_output_embeddings()` is a linear layer without bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from sightline.models.conv import ConvSettings, build_conv
from sightline.models.lstm import LstmSettings, build_lstm
from sightline.models.transformer import TransformerSettings, build_transformer


@dataclass(frozen=True)
class Architecture:
    """The settings of a model and the function `build(settings, tokenizer)` that makes it."""

    settings: type
    build: Callable[[Any, Any], PreTrainedModel]


ARCHITECTURES: dict[str, Architecture] = {
    "transformer": Architecture(TransformerSettings, build_transformer),
    "lstm": Architecture(LstmSettings, build_lstm),
    "conv": Architecture(ConvSettings, build_conv),
}
