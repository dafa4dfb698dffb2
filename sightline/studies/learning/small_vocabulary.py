"""LSTMs over few words, in two thirds of the time.

With fewer words than the embeddings are wide, W_ih (E x) = (W_ih E) x is cheaper on the right: the LSTM reads words as
one-hot vectors, with the product of both matrices as its weights. Weights, outputs and gradients are the same.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sightline.models.lstm import LstmDecoder, LstmEncoder
from sightline.models.recurrence import Memory, run_layer


class OneHot(nn.Module):
    """Words as one-hot vectors, where a model has its embedding."""

    def __init__(self, words: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.words, self.dtype = words, dtype

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position word"]:
        return F.one_hot(ids, self.words).to(self.dtype)


class WordLstm(nn.LSTM):
    """An embedding and an LSTM of one layer after it, as one LSTM over one-hot vectors."""

    def __init__(self, embedding: nn.Embedding, lstm: nn.LSTM) -> None:
        form = {"batch_first": True, "bidirectional": lstm.bidirectional, "dtype": embedding.weight.dtype}
        super().__init__(lstm.input_size, lstm.hidden_size, **form)
        self.load_state_dict(lstm.state_dict())
        self.embedding = embedding

    def forward(  # type: ignore[override]
        self, words: Float[Tensor, "batch position word"], memory: Memory | None = None
    ) -> tuple[Float[Tensor, "batch position state"], Memory]:
        weights = [
            weight @ self.embedding.weight.T if name.startswith("weight_ih") else weight
            for name, weight in self.named_parameters(recurse=False)
        ]
        return run_layer(self, weights, words, memory)


def read_one_hot(side: LstmEncoder | LstmDecoder) -> None:
    """Let an encoder or a decoder, which has no dropout, read its words as one-hot vectors."""
    embedding = side.embed_tokens
    side.lstm = WordLstm(embedding, side.lstm)
    side.embed_tokens = OneHot(embedding.num_embeddings, embedding.weight.dtype)  # type: ignore[assignment]
