"""The convolutional translation model (Gehring et al. 2017), at the size of Ding et al. 2019.

Both stacks are convolutions with gated linear units, h = (A * sigmoid(B) + x) sqrt(0.5), over words with learned
positions. Every decoder layer attends to the encoder: with g the target's embedding, z the encoder's output and e the
source's embedding,

    d_i = W h_i + b + g_i (eq. 1);  a_ij = softmax(d_i z_j);  c_i = sum_j a_ij (z_j + e_j) (eq. 2)

Sums of two terms are multiplied by sqrt(0.5), and contexts by the square root of the source's length, to keep the
variance (section 3.4). Decoding remembers, for each layer, the few inputs that its kernel still sees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers.utils import ModelOutput

from sightline.attend.projections import softmax
from sightline.attend.watch import attend
from sightline.models.encoder_decoder import (
    EncoderDecoderForConditionalGeneration,
    EncoderDecoderModel,
    TranslationConfig,
    build_translator,
)
from sightline.models.settings import ConvSettings

ROOT_HALF = math.sqrt(0.5)


class ConvConfig(TranslationConfig):
    """The configuration of a convolutional model."""

    model_type = "sightline-conv"
    settings_class = ConvSettings
    attribute_map = {"max_position_embeddings": "max_positions"}  # noqa: RUF012


@dataclass
class ConvEncoderOutput(ModelOutput):
    """Encoder states z, and the embeddings e of the source."""

    last_hidden_state: Float[Tensor, "batch source width"]
    embeddings: Float[Tensor, "batch source width"] | None = None


@dataclass
class ConvDecoderOutput(ModelOutput):
    """What the output is read from, and what is remembered for the next step."""

    last_hidden_state: Float[Tensor, "batch target width"]
    past_key_values: Any = None


@dataclass
class ConvState:
    """What a decoder remembers between steps: their number, and the last inputs of each layer."""

    steps: int
    inputs: list[Float[Tensor, "batch memory width"]]

    def reorder_cache(self, beams: Int[Tensor, " batch"]) -> None:
        """Keep the beams chosen."""
        self.inputs = [remembered.index_select(0, beams) for remembered in self.inputs]


class GatedConvolution(nn.Linear):
    """A convolution whose gate decides what passes: v([A B]) = A * sigmoid(B).

    It is a linear layer over the positions that the kernel sees, put side by side: on a processor this takes two
    thirds of the time of torch's convolution.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(config.kernel * config.width, 2 * config.width)
        self.kernel = config.kernel

    def forward(self, inputs: Float[Tensor, "batch longer width"]) -> Float[Tensor, "batch position width"]:
        length = inputs.shape[1] - self.kernel + 1
        windows = torch.cat([inputs[:, start : start + length] for start in range(self.kernel)], -1)
        return F.glu(super().forward(windows), -1)


class ConvEncoder(nn.Module):
    """Convolutions that see both sides of a position; padding is zero for them."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.width)
        self.embed_positions = nn.Embedding(config.max_positions, config.width)
        self.enter = nn.Linear(config.width, config.width)
        self.layers = nn.ModuleList(GatedConvolution(config) for _ in range(config.encoder_layers))
        self.leave = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.around = ((config.kernel - 1) // 2, config.kernel // 2)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embed_tokens

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"],
        attention_mask: Int[Tensor, "batch source"] | None = None,
        **_: Any,
    ) -> ConvEncoderOutput:
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        positions = (real.cumsum(1) - 1).clamp(min=0)
        embedded = self.dropout(self.embed_tokens(input_ids) + self.embed_positions(positions))
        padding = (real == 0)[..., None]
        states = self.enter(embedded)
        for layer in self.layers:
            inputs = self.dropout(states.masked_fill(padding, 0))
            states = (layer(F.pad(inputs, (0, 0, *self.around))) + states) * ROOT_HALF
        return ConvEncoderOutput(self.leave(states), embedded)


class ConvAttention(nn.Module):
    """Attention of one decoder layer to the encoder."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.query = nn.Linear(config.width, config.width)
        self.out_proj = nn.Linear(config.width, config.width)

    def forward(
        self,
        states: Float[Tensor, "batch target width"],
        embedded: Float[Tensor, "batch target width"],
        keys: Float[Tensor, "batch source width"],
        values: Float[Tensor, "batch source width"],
        mask: Bool[Tensor, "batch source"],
    ) -> Float[Tensor, "batch target width"]:
        queries = (self.query(states) + embedded) * ROOT_HALF
        scores = queries @ keys.transpose(1, 2)
        context, _ = attend(
            self,
            scores[:, None],  # one head
            values[:, None],
            mask[:, None, None],
            queries=queries[:, None],
            keys=keys[:, None],
            projection=softmax,
        )
        return self.out_proj(context[:, 0])


class ConvDecoderLayer(nn.Module):
    """A convolution that sees what came before, and attention."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config)
        self.attention = ConvAttention(config)

    def forward(
        self,
        inputs: Float[Tensor, "batch longer width"],
        embedded: Float[Tensor, "batch target width"],
        keys: Float[Tensor, "batch source width"],
        values: Float[Tensor, "batch source width"],
        mask: Bool[Tensor, "batch source"],
    ) -> Float[Tensor, "batch target width"]:
        states = self.convolution(inputs)
        return (self.attention(states, embedded, keys, values, mask) + states) * ROOT_HALF


class ConvDecoder(nn.Module):
    """Convolutions that see what came before a position, each followed by attention."""

    takes_from_encoder = ("embeddings",)

    def __init__(self, config: ConvConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.width)
        self.embed_positions = nn.Embedding(config.max_positions, config.width)
        self.enter = nn.Linear(config.width, config.width)
        self.layers = nn.ModuleList(ConvDecoderLayer(config) for _ in range(config.decoder_layers))
        self.leave = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.before = config.kernel - 1

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embed_tokens

    def forward(
        self,
        input_ids: Int[Tensor, "batch target"],
        encoder_hidden_states: Float[Tensor, "batch source width"],
        embeddings: Float[Tensor, "batch source width"],
        encoder_attention_mask: Int[Tensor, "batch source"] | None = None,
        past_key_values: ConvState | None = None,
        use_cache: bool = False,
        **_: Any,
    ) -> ConvDecoderOutput:
        keys = encoder_hidden_states
        mask = torch.ones_like(keys[..., 0], dtype=torch.bool)
        if encoder_attention_mask is not None:
            mask = encoder_attention_mask.bool()
        lengths = mask.sum(1)[:, None, None].to(keys.dtype)
        values = (keys + embeddings) * ROOT_HALF * lengths.sqrt()

        past = past_key_values or self._start(embeddings)
        positions = torch.arange(past.steps, past.steps + input_ids.shape[1], device=input_ids.device)
        embedded = self.dropout(self.embed_tokens(input_ids) + self.embed_positions(positions))
        states = self.enter(embedded)
        remembered = []
        for layer, before in zip(self.layers, past.inputs, strict=True):
            inputs = torch.cat([before, self.dropout(states)], 1)
            remembered.append(inputs[:, inputs.shape[1] - self.before :])
            states = (layer(inputs, embedded, keys, values, mask) + states) * ROOT_HALF
        outputs = self.dropout(self.leave(states))
        return ConvDecoderOutput(outputs, ConvState(past.steps + input_ids.shape[1], remembered) if use_cache else None)

    def _start(self, like: Float[Tensor, "batch source width"]) -> ConvState:
        """Nothing has been read: the kernels see zeros."""
        return ConvState(0, [like.new_zeros(len(like), self.before, like.shape[2]) for _ in self.layers])


class ConvModel(EncoderDecoderModel):
    """The convolutional encoder and decoder."""

    config_class = ConvConfig

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(config, ConvEncoder(config), ConvDecoder(config))

    def _init_weights(self, module: nn.Module) -> None:
        """Keep the variance from layer to layer (Gehring et al. 2017, section 3.5).

        Deviation: the weights are not normalised besides (their norm apart from their direction).
        """
        kept = 1 - self.config.dropout
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.1)
        elif isinstance(module, nn.Linear):
            gain = 4 if isinstance(module, GatedConvolution) else 1  # a gate halves, so its inputs are twice as large
            nn.init.normal_(module.weight, std=math.sqrt(gain * kept / module.in_features))
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class ConvForConditionalGeneration(EncoderDecoderForConditionalGeneration):
    """The convolutional translation model."""

    config_class = ConvConfig

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(config, ConvModel(config))


def build_conv(settings: ConvSettings, tokenizer: Any) -> ConvForConditionalGeneration:
    """Build a convolutional model with random weights for a tokenizer's vocabulary."""
    return build_translator(ConvForConditionalGeneration, settings, tokenizer)
