"""What the recurrent and the convolutional translation model share: Hugging Face's calling conventions.

An architecture gives an encoder and a decoder. The encoder's output begins with its states; what else its decoder needs
(`takes_from_encoder`) follows by name. The decoder's last states are all that the vocabulary layer needs. Both sides
have one vocabulary; `tied` says which of the three embeddings (source, target, output) are one.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn
from transformers import GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput, Seq2SeqModelOutput

from sightline.models.configuration import SettingsConfig


class TranslationConfig(SettingsConfig):
    """The configuration of a translation model."""

    vocab_size: int = 8000
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int = 0
    is_encoder_decoder: bool = True
    use_cache: bool = True

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        self.tie_word_embeddings = self.tied != "none"


class EncoderDecoderModel(PreTrainedModel):
    """An encoder and a decoder, without the vocabulary layer."""

    base_model_prefix = "model"

    def __init__(self, config: TranslationConfig, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__(config)
        self.encoder: Any = encoder
        self.decoder: Any = decoder
        self._tied_weights_keys = {"decoder.embed_tokens.weight": "encoder.embed_tokens.weight"}
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.embed_tokens

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"] | None = None,
        attention_mask: Int[Tensor, "batch source"] | None = None,
        decoder_input_ids: Int[Tensor, "batch target"] | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> Seq2SeqModelOutput:
        """Return the decoder's last states; `past_key_values` is what it remembers of earlier steps."""
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids=input_ids, attention_mask=attention_mask)
        decoded = self.decoder(
            input_ids=decoder_input_ids,
            encoder_hidden_states=encoder_outputs[0],
            encoder_attention_mask=attention_mask,
            past_key_values=past_key_values,
            use_cache=self.config.use_cache if use_cache is None else use_cache,
            **{name: encoder_outputs[name] for name in self.decoder.takes_from_encoder},
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoded[0],
            past_key_values=decoded.past_key_values,
            encoder_last_hidden_state=encoder_outputs[0],
        )


class EncoderDecoderForConditionalGeneration(PreTrainedModel, GenerationMixin):
    """An encoder, a decoder and the vocabulary layer, which translate."""

    base_model_prefix = "model"
    main_input_name = "input_ids"
    _is_stateful = True  # what a decoder remembers cannot be taken back, as assisted generation would need

    def __init__(self, config: TranslationConfig, model: EncoderDecoderModel) -> None:
        super().__init__(config)
        self.model = model
        # Deviation: no bias, which the papers' vocabulary layers have; training then needs the matrix alone.
        self.lm_head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.tied == "all":
            self._tied_weights_keys = {"lm_head.weight": "model.encoder.embed_tokens.weight"}
        self.post_init()

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Tell `generate` that the decoder makes its own state, which is no cache of keys and values."""
        return False

    def _init_weights(self, module: nn.Module) -> None:
        self.model._init_weights(module)

    def get_input_embeddings(self) -> nn.Module:
        return self.model.get_input_embeddings()

    def get_output_embeddings(self) -> nn.Linear:
        return self.lm_head

    def prepare_decoder_input_ids_from_labels(self, labels: Int[Tensor, "batch target"]) -> Int[Tensor, "batch target"]:
        """Shift labels to the right; those that no loss counts (-100) become padding."""
        start = torch.full_like(labels[:, :1], self.config.decoder_start_token_id)
        shifted = torch.cat([start, labels[:, :-1]], 1)
        return shifted.masked_fill(shifted == -100, self.config.pad_token_id)

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"] | None = None,
        attention_mask: Int[Tensor, "batch source"] | None = None,
        decoder_input_ids: Int[Tensor, "batch target"] | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        labels: Int[Tensor, "batch target"] | None = None,
        **_: Any,
    ) -> Seq2SeqLMOutput:
        """Return the logits of every target position; with labels, their mean cross-entropy too."""
        if decoder_input_ids is None and labels is not None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        decoded = self.model(input_ids, attention_mask, decoder_input_ids, encoder_outputs, past_key_values, use_cache)
        logits = self.lm_head(decoded[0])
        return Seq2SeqLMOutput(
            loss=None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten()),
            logits=logits,
            past_key_values=decoded.past_key_values,
            encoder_last_hidden_state=decoded.encoder_last_hidden_state,
        )


def build_translator(model_class: Any, settings: Any, tokenizer: Any) -> Any:
    """Build a translation model with random weights for a tokenizer's vocabulary."""
    config = model_class.config_class(
        **asdict(settings),
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )
    model = model_class(config)
    set_generation(model, settings.max_positions)
    return model


def set_generation(model: Any, max_positions: int) -> None:
    """Set what a translation model may generate: no padding, and not more than it has positions for."""
    # Padding starts the decoder and is never a label, so that its logit is left to chance.
    model.generation_config.bad_words_ids = [[model.config.pad_token_id]]
    model.generation_config.max_new_tokens = max_positions - 1
