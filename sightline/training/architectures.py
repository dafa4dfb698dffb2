"""The models that a recipe can name.

An architecture is a line in the table: the settings that `model:` takes and the function that builds the model. The
model is a `PreTrainedModel` whose `base_model(input_ids, attention_mask, decoder_input_ids, use_cache)` gives the
decoder's states first, and whose `get_output_embeddings()` is a linear layer without bias; or it classifies, and gives
`logits`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transformers import PreTrainedModel

from sightline.models.classifier import ClassifierSettings, build_classifier
from sightline.models.conv import ConvSettings, build_conv
from sightline.models.lstm import LstmSettings, build_lstm
from sightline.models.transformer import TransformerSettings, build_transformer


@dataclass(frozen=True)
class Architecture:
    """The settings of a model and the function `build(settings, tokenizer)` that makes it.

    For a model that classifies texts it is `build(settings, tokenizer, labels)`.
    """

    settings: type
    build: Callable[..., PreTrainedModel]
    classifies: bool = False


ARCHITECTURES: dict[str, Architecture] = {
    "transformer": Architecture(TransformerSettings, build_transformer),
    "lstm": Architecture(LstmSettings, build_lstm),
    "conv": Architecture(ConvSettings, build_conv),
    "classifier": Architecture(ClassifierSettings, build_classifier, classifies=True),
}
