"""What is differentiated or compared: a number for each output, and where its gradient enters the model.

Whatever comes after the last stack of layers (scaling, vocabulary, bias) works position by position. So one small
backward pass through it gives the gradient of every output by its own position of the stack's last states at once,
and the many passes that follow start there: the vocabulary is never touched again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sightline.attend.hooks import hooks
from sightline.attend.projections import precise
from sightline.errors import InputError
from sightline.methods.settings import OutputSettings
from sightline.models.examples import Batch, Example
from sightline.models.loaded import LoadedModel
from sightline.text.words import encode, split_words, word_part

LOWEST_LOG_PROBABILITY = -1e4


def check_has_output(model: LoadedModel) -> None:
    """Refuse a model that only represents texts."""
    if not model.has_output:
        raise InputError(f"{type(model.module).__name__} has no output to explain: use attention or norms.")


def output_numbers(
    logits: Float[Tensor, "batch target vocabulary"],
    outputs: Int[Tensor, "batch target"],
    foils: Int[Tensor, "batch target"] | None,
    settings: OutputSettings,
) -> Float[Tensor, "batch target"]:
    """Return (log-)probabilities of outputs, less those of their foils."""
    # A forbidden token's logit may be -inf, and differences of infinities are no numbers.
    log_probs = precise(logits).log_softmax(-1).clamp(min=LOWEST_LOG_PROBABILITY)
    if settings.of == "probability":
        log_probs = log_probs.exp()
    numbers = log_probs.gather(-1, outputs[..., None])[..., 0]
    if foils is not None:
        numbers = numbers - log_probs.gather(-1, foils[..., None])[..., 0]
    return numbers


class Odds(NamedTuple):
    """The probability of every output, and its rank among all that the model could have given, from 1."""

    probabilities: Float[Tensor, "batch target"]
    ranks: Int[Tensor, "batch target"]


_noted: ContextVar[list[Odds] | None] = ContextVar("sightline_odds", default=None)


@contextmanager
def noting_odds() -> Iterator[list[Odds]]:
    """Collect the odds of the outputs that a method comes across."""
    noted: list[Odds] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note_odds(logits: Float[Tensor, "batch target vocabulary"], outputs: Int[Tensor, "batch target"]) -> None:
    """Note the odds of outputs, given logits of the input as it is, for whoever collects them."""
    noted = _noted.get()
    if noted is not None:
        logits = logits.detach()
        chosen = logits.gather(-1, outputs[..., None])
        probabilities = precise(logits).softmax(-1).gather(-1, outputs[..., None])[..., 0]
        noted.append(Odds(probabilities.clamp(max=1.0), 1 + (logits > chosen).sum(-1)))


def find_foils(model: LoadedModel, batch: Batch, contrast: str | None) -> Int[Tensor, "batch target"] | None:
    """Return the ids that the outputs are contrasted with."""
    if contrast is None:
        return None
    if model.classifies:
        return torch.full_like(batch.outputs, model.label_id(contrast))
    words = split_words(contrast, "contrast")
    encoded = encode(model.tokenizer, [word_part(words)], as_target=model.translates)
    plain = [token for token, part in zip(encoded.ids, encoded.parts, strict=True) if part is not None]
    if len(plain) == 1:
        return torch.full_like(batch.outputs, plain[0])
    foils = batch.outputs.clone()
    for row, example in enumerate(batch.examples):
        # A continuation's first piece depends on what stands before it.
        ids = encoded.ids if model.translates else model.encode(list(example.source.words), words).labels
        if len(ids) != len(example.labels) and not _agree_before(ids, example):
            raise InputError(
                f"The contrast has {len(ids)} tokens and the target {len(example.labels)}: give one token, a target "
                "of the same length, or positions before which the two are the same."
            )
        chosen = [ids[position] for position in example.chosen]
        foils[row, : len(chosen)] = torch.tensor(chosen)
    return foils


def _agree_before(ids: Sequence[int], example: Example) -> bool:
    """Return whether a contrast has a token for each output asked for, after the same tokens as the target."""
    last = max(example.chosen, default=0)
    return last < len(ids) and tuple(ids[:last]) == example.labels[:last]


def output_cotangents(
    model: LoadedModel, batch: Batch, settings: OutputSettings, unchanged: bool = True
) -> Float[Tensor, "batch position width"]:
    """Return the gradient of each output's number by the last stack's state at its own position.

    Under `changed_embeddings` the model sees the changed embeddings here too; then the input is not `unchanged`.
    """
    foils = find_foils(model, batch, settings.contrast)
    with torch.enable_grad(), cut_behind(model.last_stack) as states:
        logits = model.logits(batch)
        if unchanged:
            note_odds(logits, batch.outputs)
        numbers = output_numbers(logits, batch.outputs, foils, settings)
        (gradient,) = torch.autograd.grad(numbers.masked_fill(~batch.row_mask, 0).sum(), states)
    return gradient


@contextmanager
def cut_behind(stack: nn.Module) -> Iterator[list[Tensor]]:
    """Make a stack's last states a leaf, so that only what comes after them is differentiated."""
    states: list[Tensor] = []

    def cut(_module: nn.Module, _args: object, output: Any) -> Any:
        leaf = output[0].detach().requires_grad_()
        states.append(leaf)
        if isinstance(output, tuple):
            return (leaf, *output[1:])
        output[next(iter(output))] = leaf
        return output

    with hooks(after=[(stack, cut)]):
        yield states
