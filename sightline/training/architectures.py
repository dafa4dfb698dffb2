"""The models that a recipe can name.

An architecture is a line in the table: the settings that `model:` takes and the function that builds the model. The
function is imported when it is first used, so that recipes are checked without torch. The model is a `PreTrainedModel`
whose `base_model(input_ids, attention_mask, decoder_input_ids, use_cache)` returns the decoder's states first, and
whose `get_output_embeddings()` is a linear layer without bias; or it classifies, and returns `logits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sightline.errors import InputError
from sightline.models.settings import ClassifierSettings, ConvSettings, LstmSettings, TransformerSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Architecture:
    """The settings of a model, and the file of `sightline.models` and the function there that builds it."""

    settings: type
    builder: str
    classifies: bool = False

    def build(self, settings: Any, tokenizer: Any, *labels: Any) -> PreTrainedModel:
        """Build a model with random weights; one that classifies texts is also given its labels."""
        file, _, function = self.builder.partition(".")
        return getattr(import_module(f"sightline.models.{file}"), function)(settings, tokenizer, *labels)


ARCHITECTURES: dict[str, Architecture] = {
    "transformer": Architecture(TransformerSettings, "transformer.build_transformer"),
    "lstm": Architecture(LstmSettings, "lstm.build_lstm"),
    "conv": Architecture(ConvSettings, "conv.build_conv"),
    "classifier": Architecture(ClassifierSettings, "classifier.build_classifier", classifies=True),
}


def load_trained(model: PreTrainedModel, name: str, setting: str) -> None:
    """Load the weights of a trained model, which a setting of the recipe names, into one of the same architecture."""
    from sightline.models.loading import load

    try:
        model.load_state_dict(load(name).module.state_dict())
    except RuntimeError as error:
        raise InputError(
            f"The model {name!r} is not the one that the recipe's `model:` describes, or it is calibrated: give "
            f"{setting} an uncalibrated model, and `model:` as it was trained."
        ) from error
