"""What a classifier is trained on, and with which loss: labelled texts as ids, and class-balanced cross-entropy.

With n texts, of which n_y have the label y, among K labels, a text's loss counts n / (K n_y): every label as much as
any other, and a text 1 on average (the set-up of Jain and Wallace 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sightline.data.corpora import TextPair
from sightline.errors import InputError
from sightline.training.batches import EncodedPairs, Ragged, encode_texts


@dataclass(frozen=True, eq=False)
class EncodedTexts(EncodedPairs):
    """Labelled texts as ids; the target is the number of the label."""

    def tensors(self, rows: Int[np.ndarray, " row"], device: torch.device) -> dict[str, Tensor]:
        """Return some texts as the model takes them, with their labels."""
        tensors = super().tensors(rows, device)
        del tensors["decoder_input_ids"]
        return tensors | {"labels": tensors["labels"][:, 0]}


def label_names(pairs: Sequence[TextPair]) -> list[str]:
    """List the labels of texts, sorted; a model numbers them so."""
    names = sorted({label for _, label in pairs})
    if len(names) < 2:
        raise InputError(f"The training text has the label {names[0]!r} only: a classifier needs at least two.")
    return names


def encode_labelled(
    pairs: Sequence[TextPair], tokenizer: Any, max_length: int, labels: Sequence[str]
) -> tuple[EncodedTexts, list[TextPair]]:
    """Encode the texts that have at most `max_length` pieces, and give them with their labels as text too."""
    numbers = {label: number for number, label in enumerate(labels)}
    unknown = next((label for _, label in pairs if label not in numbers), None)
    if unknown is not None:
        raise InputError(f"A held-out text has the label {unknown!r}, which no training text has.")
    ids = encode_texts([text for text, _ in pairs], tokenizer)
    kept = [(row, pair) for row, pair in zip(ids, pairs, strict=True) if len(row) <= max_length]
    if not kept:
        raise InputError(f"Every text has more than {max_length} pieces: lower data.max_words.")
    source = Ragged.of([row for row, _ in kept])
    target = Ragged.of([[numbers[label]] for _, (_, label) in kept])
    return EncodedTexts(source, target, tokenizer.pad_token_id, tokenizer.pad_token_id), [pair for _, pair in kept]


def class_weights(texts: EncodedPairs, labels: int) -> Float[Tensor, " label"]:
    """Return what a text of each label counts: n / (K n_y)."""
    counts = np.bincount(texts.target.values, minlength=labels)
    return torch.tensor(len(texts) / (labels * np.maximum(counts, 1)), dtype=torch.float32)


class ClassificationObjective(nn.Module):
    """A classifier with its class-balanced loss, as one module that can be run on many processes."""

    weights: Float[Tensor, " label"]

    def __init__(self, model: Any, weights: Float[Tensor, " label"], label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.register_buffer("weights", weights)

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"],
        attention_mask: Int[Tensor, "batch source"],
        labels: Int[Tensor, " batch"],
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " count"]]:
        """Return the balanced loss, summed over texts, and with it (cross-entropy, correct labels, labels)."""
        logits = self.model(input_ids=input_ids, attention_mask=attention_mask).logits.float()
        loss = F.cross_entropy(
            logits, labels, weight=self.weights, label_smoothing=self.label_smoothing, reduction="sum"
        )
        with torch.no_grad():
            cross_entropy = F.cross_entropy(logits, labels, reduction="sum")
            correct = (logits.argmax(-1) == labels).sum()
        return loss, torch.stack([cross_entropy, correct.float(), torch.full_like(cross_entropy, len(labels))])
