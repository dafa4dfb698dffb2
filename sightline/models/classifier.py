"""The text classifier: an encoder, attention with a learned query over its states, and an output layer.

The set-up of Jain and Wallace (2019), which Meister et al. 2021 (section 2, appendix B) and Snell et al. 2021 (section
2.4) use: the states h_i come from a bidirectional LSTM or a Transformer; a context c = sum_i phi(a)_i h_i is all that
the output layer sees; phi is any projection. The scores a_i are

    additive   v' tanh(W h_i + b)     Bahdanau et al. 2015; b stands for W_2 q, since the query q is learned
    dot        q' h_i / sqrt(m)       Vaswani et al. 2017; m is the width of h_i
    mlp        v' ReLU(Q h_i + b)     Snell et al. 2021, eq. 7
    uniform    0                      attention frozen
    last       only the last position is there: the model without attention

Padding, begin and end are never attended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import BertConfig, BertModel, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from sightline.attend.projections import build_projection
from sightline.attend.watch import attend
from sightline.models.configuration import SettingsConfig
from sightline.models.lstm import LstmEncoder
from sightline.models.settings import ClassifierSettings


class ClassifierConfig(SettingsConfig):
    """The configuration of a classifier; `unattended_ids` are the tokens that begin and end a text."""

    model_type = "sightline-classifier"
    settings_class = ClassifierSettings
    attribute_map = {"max_position_embeddings": "max_positions"}  # noqa: RUF012

    vocab_size: int = 8000
    pad_token_id: int = 0
    unattended_ids: list[int] | None = None


class LearnedQueryAttention(nn.Module):
    """Attention over encoder states, whose query is a parameter."""

    def __init__(self, config: ClassifierConfig, states_width: int) -> None:
        super().__init__()
        self.alignment = config.alignment
        self.projection = build_projection(config.projection)
        if self.alignment in ("additive", "mlp"):
            # Half the width of the states: 128 in Jain and Wallace's framework, 256 in Snell et al.'s.
            self.hidden = nn.Linear(states_width, states_width // 2)
            self.score = nn.Linear(states_width // 2, 1, bias=False)
        elif self.alignment == "dot":
            self.score = nn.Linear(states_width, 1, bias=False)

    def forward(
        self, states: Float[Tensor, "batch source width"], mask: Bool[Tensor, "batch source"]
    ) -> Float[Tensor, "batch 1 width"]:
        """Return the context of the one output: the states' mean, weighted by attention."""
        if self.alignment == "last":
            mask = mask & (mask.flip(1).cumsum(1).flip(1) == 1)
        context, _ = attend(
            self,
            self._scores(states)[:, None, None],  # (batch, head, target, source): one head, one output
            states[:, None],
            mask[:, None, None],
            projection=self.projection,
        )
        return context[:, 0]

    def _scores(self, states: Float[Tensor, "batch source width"]) -> Float[Tensor, "batch source"]:
        if self.alignment == "additive":
            return self.score(torch.tanh(self.hidden(states)))[..., 0]
        if self.alignment == "mlp":
            return self.score(torch.relu(self.hidden(states)))[..., 0]
        if self.alignment == "dot":
            return self.score(states)[..., 0] / states.shape[-1] ** 0.5
        return torch.zeros_like(states[..., 0])


class ClassifierForSequenceClassification(PreTrainedModel):
    """The text classifier."""

    config_class = ClassifierConfig
    base_model_prefix = "encoder"

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__(config)
        self.encoder, width = _build_encoder(config)
        self.attention = LearnedQueryAttention(config, width)
        self.dropout = nn.Dropout(config.dropout)
        self.out_proj = nn.Linear(width, config.num_labels)
        self.post_init()
        if config.trained == "attention":
            self.requires_grad_(False)
            self.attention.requires_grad_(True)

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise weights as torch does; a Transformer initialises its own."""
        if isinstance(module, nn.Embedding | nn.Linear | nn.LSTM):
            module.reset_parameters()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"],
        attention_mask: Int[Tensor, "batch source"] | None = None,
        labels: Int[Tensor, " batch"] | None = None,
        encoder_outputs: Any = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Return the logits of all labels; with the true ones, their mean cross-entropy too.

        With `encoder_outputs` the encoder is not run.
        """
        states = (encoder_outputs or self.encoder(input_ids=input_ids, attention_mask=attention_mask))[0]
        context = self.attention(states, self._attended(input_ids, attention_mask))
        logits = self.out_proj(self.dropout(context))[:, 0]
        return SequenceClassifierOutput(
            loss=None if labels is None else F.cross_entropy(logits, labels),
            logits=logits,
        )

    def _attended(
        self, input_ids: Int[Tensor, "batch source"], attention_mask: Int[Tensor, "batch source"] | None
    ) -> Bool[Tensor, "batch source"]:
        """Return which positions can be attended; in a text of nothing but begin and end, these."""
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        unattended = torch.tensor(self.config.unattended_ids or [], dtype=input_ids.dtype, device=input_ids.device)
        inner = real.bool() & ~torch.isin(input_ids, unattended)
        return torch.where(inner.any(1, keepdim=True), inner, real.bool())

    def logits_by_position(
        self, input_ids: Int[Tensor, "batch source"], attention_mask: Int[Tensor, "batch source"], **_: Any
    ) -> Iterator[Float[Tensor, "batch 1 label"]]:
        """Yield, for each position l, the logits W' h_l: h_l is all that is attended to (Snell et al. 2021, eq. 9)."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask)[0]
        yield from self.out_proj(states).split(1, 1)


def build_classifier(
    settings: ClassifierSettings, tokenizer: Any, labels: Sequence[str]
) -> ClassifierForSequenceClassification:
    """Build a classifier with random weights for a tokenizer's vocabulary and the names of labels."""
    content = {tokenizer.unk_token_id, tokenizer.mask_token_id}
    config = ClassifierConfig(
        **asdict(settings),
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        unattended_ids=[token for token in tokenizer.all_special_ids if token not in content],
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    return ClassifierForSequenceClassification(config)


def _build_encoder(config: ClassifierConfig) -> tuple[Any, int]:
    """Build the encoder, and give the width of its states."""
    if config.encoder == "lstm":
        encoder = LstmEncoder(
            config.vocab_size,
            config.embedding_width,
            config.width,
            config.layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
        )
        return encoder, (2 if config.bidirectional else 1) * config.width
    transformer = BertConfig(
        vocab_size=config.vocab_size,
        pad_token_id=config.pad_token_id,
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=1,
        intermediate_size=config.width,
        max_position_embeddings=config.max_positions,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
    )
    return BertModel(transformer, add_pooling_layer=False), config.width
