"""The recurrent translation model: LSTMs with attention, in the forms of two papers.

Snell et al. 2021 (section 2.1; Luong's dot attention): the encoder reads in both directions, the decoder starts from
the mean of the directions' last states and runs on the target alone, and attention comes after it:

    a_tl = s_t' W h_l;  c_t = sum_l softmax(a_t)_l h_l;  p_t = N([c_t, s_t])    (eq. 1 and 2)

with K heads that are summed or averaged (eq. 20 and 21), and a linear variant p_t = softmax(W (c_t + s_t)) (eq. 32).

Ding et al. 2019 (fairseq's lstm_wiseman): one direction, one layer, and input feeding: what the output is read from at
one step goes, together with the embedding, into the next. Its settings are `LstmSettings(layers=1, bidirectional=False,
input_feeding=True, combination="tanh", tied="none")`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
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
from sightline.models.recurrence import Memory, new_lstm, run_between_padding, run_lstm
from sightline.models.settings import LstmSettings


class LstmConfig(TranslationConfig):
    """The configuration of a recurrent model."""

    model_type = "sightline-lstm"
    settings_class = LstmSettings


@dataclass
class LstmEncoderOutput(ModelOutput):
    """Encoder states, and the state that the decoder starts from: (batch, hidden or cell, layer, width)."""

    last_hidden_state: Float[Tensor, "batch source width"]
    start_state: Float[Tensor, "batch 2 layer start_width"] | None = None


@dataclass
class LstmDecoderOutput(ModelOutput):
    """What the output is read from, the LSTM's own states s_t, and what is remembered for the next step."""

    last_hidden_state: Float[Tensor, "batch target width"]
    recurrent_states: Float[Tensor, "batch target width"] | None = None
    past_key_values: Any = None


@dataclass
class LstmState:
    """What a decoder remembers between steps: its memory and, with input feeding, what it gave last."""

    memory: Memory
    fed: Float[Tensor, "batch 1 width"]

    def reorder_cache(self, beams: Int[Tensor, " batch"]) -> None:
        """Keep the beams chosen."""
        hidden, cell = (part.index_select(1, beams) for part in self.memory)
        self.memory = (hidden, cell)
        self.fed = self.fed.index_select(0, beams)


class LstmEncoder(nn.Module):
    """An LSTM over the embeddings of real positions; padding is not there for it."""

    def __init__(
        self, vocabulary: int, embedding_width: int, width: int, layers: int, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, embedding_width)
        self.lstm = new_lstm(embedding_width, width, layers, dropout, bidirectional)
        self.dropout = nn.Dropout(dropout)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embed_tokens

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"],
        attention_mask: Int[Tensor, "batch source"] | None = None,
        **_: Any,
    ) -> LstmEncoderOutput:
        embedded = self.dropout(self.embed_tokens(input_ids))
        if attention_mask is None or attention_mask.all():
            states, final = run_lstm(self.lstm, embedded)
        else:
            states, final = run_between_padding(self.lstm, embedded, attention_mask)
        directions = 2 if self.lstm.bidirectional else 1
        start = torch.stack([part.unflatten(0, (-1, directions)).mean(1).transpose(0, 1) for part in final], 1)
        return LstmEncoderOutput(states, start)


class LstmAttention(nn.Module):
    """Attention of decoder states to encoder states: a_tl = s_t' W^(k) h_l for each head k, or uniform."""

    def __init__(self, config: LstmConfig) -> None:
        super().__init__()
        self.heads, self.merge = config.heads, config.merge
        encoded_width = 2 * config.width if config.bidirectional else config.width
        self.query = (
            None if config.attention == "uniform" else nn.Linear(config.width, config.heads * encoded_width, False)
        )
        self.out_proj = nn.Linear(encoded_width, config.width) if config.bidirectional else None

    def forward(
        self,
        states: Float[Tensor, "batch target width"],
        encoded: Float[Tensor, "batch source encoded_width"],
        mask: Bool[Tensor, "batch source"] | None,
        first: int | None = None,
    ) -> Float[Tensor, "batch target width"]:
        """Return the contexts of all decoder states, or of a step, which stands at target position `first`."""
        keys = encoded[:, None].expand(-1, self.heads, -1, -1)  # (batch, head, source, encoded_width)
        queries = None
        if self.query is None:
            scores = encoded.new_zeros(*states.shape[:1], self.heads, states.shape[1], encoded.shape[1])
        else:
            by_target = self.query(states).unflatten(2, (self.heads, -1))  # (batch, target, head, encoded_width)
            queries = by_target.transpose(1, 2)
            # All heads have the same keys: one product instead of one for each, and no copies of the keys.
            products = by_target.flatten(1, 2) @ encoded.transpose(1, 2)
            scores = products.unflatten(1, (-1, self.heads)).transpose(1, 2)  # (batch, head, target, source)
        contexts, _ = attend(
            self,
            scores,
            keys,
            None if mask is None else mask[:, None, None],
            queries=queries,
            keys=keys,
            projection=softmax,
            first=first,
        )
        return self._merged(contexts)

    def of_single_states(self, encoded: Float[Tensor, "batch source width"]) -> Float[Tensor, "batch source context"]:
        """Return the context that each encoder state would make if all heads attended to it alone."""
        return self._merged(encoded[:, None].expand(-1, self.heads, -1, -1))

    def _merged(self, contexts: Float[Tensor, "batch head target width"]) -> Float[Tensor, "batch target context"]:
        merged = contexts.sum(1) if self.merge == "sum" else contexts.mean(1)
        return merged if self.out_proj is None else self.out_proj(merged)


class LstmDecoder(nn.Module):
    """An LSTM over the target, attention, and the layer that joins them."""

    takes_from_encoder = ("start_state",)

    def __init__(self, config: LstmConfig) -> None:
        super().__init__()
        self.input_feeding = config.input_feeding
        self.embed_tokens = nn.Embedding(config.vocab_size, config.width)
        self.lstm = new_lstm(config.width * (1 + config.input_feeding), config.width, config.layers, config.dropout)
        self.attention = LstmAttention(config)
        self.hidden = None if config.combination == "linear" else nn.Linear(2 * config.width, config.width)
        self.activation = torch.tanh if config.combination == "tanh" else torch.relu
        self.dropout = nn.Dropout(config.dropout)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embed_tokens

    def forward(
        self,
        input_ids: Int[Tensor, "batch target"],
        encoder_hidden_states: Float[Tensor, "batch source encoded_width"],
        start_state: Float[Tensor, "batch 2 layer width"],
        encoder_attention_mask: Int[Tensor, "batch source"] | None = None,
        past_key_values: LstmState | None = None,
        use_cache: bool = False,
        **_: Any,
    ) -> LstmDecoderOutput:
        embedded = self.dropout(self.embed_tokens(input_ids))
        mask = None if encoder_attention_mask is None else encoder_attention_mask.bool()
        state = past_key_values or LstmState(_memory(start_state), torch.zeros_like(embedded[:, :1]))
        memory, given = state.memory, state.fed
        steps = embedded.split(1, 1) if self.input_feeding else (embedded,)
        recurrent, outputs = [], []
        for number, step in enumerate(steps):
            first = number if self.input_feeding else None
            inputs = torch.cat([step, given], -1) if self.input_feeding else step
            states, memory = run_lstm(self.lstm, inputs, memory)
            given = self.dropout(self.combine(self.attention(states, encoder_hidden_states, mask, first), states))
            recurrent.append(states)
            outputs.append(given)
        return LstmDecoderOutput(
            torch.cat(outputs, 1), torch.cat(recurrent, 1), LstmState(memory, given[:, -1:]) if use_cache else None
        )

    def combine(
        self, context: Float[Tensor, "batch target width"], states: Float[Tensor, "batch target width"]
    ) -> Float[Tensor, "batch target width"]:
        """Join context and state into what the vocabulary layer reads: f(W [c_t, s_t] + b), or c_t + s_t."""
        if self.hidden is None:
            return context + states
        return self.activation(self.hidden(torch.cat([context, states], -1)))


class LstmModel(EncoderDecoderModel):
    """The recurrent encoder and decoder."""

    config_class = LstmConfig

    def __init__(self, config: LstmConfig) -> None:
        encoder = LstmEncoder(
            config.vocab_size, config.width, config.width, config.layers, config.bidirectional, config.dropout
        )
        super().__init__(config, encoder, LstmDecoder(config))

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise weights as torch does; embeddings that are the output too start small, as logits should."""
        if isinstance(module, nn.Embedding) and self.config.tied == "all":
            nn.init.normal_(module.weight, std=self.config.width**-0.5)
        elif isinstance(module, nn.Embedding | nn.Linear | nn.LSTM):
            module.reset_parameters()


class LstmForConditionalGeneration(EncoderDecoderForConditionalGeneration):
    """The recurrent translation model."""

    config_class = LstmConfig

    def __init__(self, config: LstmConfig) -> None:
        super().__init__(config, LstmModel(config))

    def logits_by_position(
        self,
        input_ids: Int[Tensor, "batch source"],
        attention_mask: Int[Tensor, "batch source"],
        decoder_input_ids: Int[Tensor, "batch target"],
        **_: Any,
    ) -> Iterator[Float[Tensor, "batch target vocabulary"]]:
        """Yield, for each source position l, the logits of N([h_l, s_t]): h_l is all that is attended to.

        The decoder states are the real ones.
        """
        encoder, decoder = self.model.encoder, self.model.decoder
        encoded = encoder(input_ids, attention_mask)
        states = decoder(decoder_input_ids, encoded[0], encoded.start_state, attention_mask).recurrent_states
        for context in decoder.attention.of_single_states(encoded[0]).split(1, 1):
            yield self.lm_head(decoder.combine(context.expand_as(states), states))


def build_lstm(settings: LstmSettings, tokenizer: Any) -> LstmForConditionalGeneration:
    """Build a recurrent model with random weights for a tokenizer's vocabulary."""
    return build_translator(LstmForConditionalGeneration, settings, tokenizer)


def _memory(start_state: Float[Tensor, "batch 2 layer width"]) -> Memory:
    hidden, cell = start_state.permute(1, 2, 0, 3).contiguous()
    return hidden, cell
