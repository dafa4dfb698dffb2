"""What is lost when an input is taken away: leave-one-out (Meister et al. 2021, eq. 6; Li et al. 2016).

The variants of a source, one for each input that is taken away, are the rows of a batch; every variant is run once, and
all outputs are compared at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from jaxtyping import Float
from torch import Tensor

from sightline.attend.watch import Call, Change, watch
from sightline.methods.gradients import columns_of, sides_of
from sightline.methods.outputs import check_has_output, find_foils, note_odds, output_numbers
from sightline.methods.scored import Scored
from sightline.methods.settings import ErasureSettings, HiddenErasureSettings, OutputSettings
from sightline.models.budget import positions_that_fit
from sightline.models.examples import Batch, Example, taken
from sightline.models.loaded import LoadedModel
from sightline.models.prefixes import logits_after, read_prefix
from sightline.models.states import take_rows

VARIANTS_AFTER_A_PREFIX = 8
"""Variants of a prompt that run at a time: fewer share a longer prefix, more keep the cores busier."""


@dataclass(frozen=True)
class Variant:
    """An example without one of its inputs: the row and column that it is about."""

    row: int
    column: int
    side: str
    position: int
    example: Example


@torch.no_grad()
def erasure(model: LoadedModel, batch: Batch, settings: ErasureSettings) -> Scored:
    """Return how much each output changes when an input is taken away.

    D(x_i) = | p(y_t | x) - p(y_t | x without x_i) |    (Meister et al. 2021, eq. 6, before its rows are normalised)
    """
    sides = sides_of(model, settings.prefix)
    taken_away = _replacement(model, settings.how)
    prefixes = {}
    if settings.how == "delete" and model.continues:
        prefixes = {row: read_prefix(model, example) for row, example in enumerate(batch.examples)}

    def numbers_of(variants: Sequence[Variant], whole: Tensor) -> Tensor:
        several = model.batch([variant.example for variant in variants])
        prefix = prefixes.get(variants[0].row)
        # The output at a deleted token is predicted at the token before it, which has to be run again.
        same = min(variant.position for variant in variants) - 1
        if prefix is None or same < 1:
            with taken_away(variants):
                return _numbers(model, several, model.logits(several), settings)
        numbers = _numbers(model, several, logits_after(model, several, prefix, same), settings)
        return torch.where(several.rows < same, whole[:, : numbers.shape[1]], numbers)

    variants = _variants(model, batch, sides, settings.how)
    most = VARIANTS_AFTER_A_PREFIX if prefixes else None
    scores = _compare(model, batch, settings, variants, numbers_of, settings.signed, most)
    return Scored(scores, columns=columns_of(model, sides))


@torch.no_grad()
def hidden_erasure(model: LoadedModel, batch: Batch, settings: HiddenErasureSettings) -> Scored:
    """Return how much each output changes when an encoder state is taken away.

    D(h_i) = | p(y_t | h) - p(y_t | h without h_i) |, the attention projected anew over the remaining states
    (Meister et al. 2021, eq. 6)
    """
    layers = [layer.module for layer in model.layers("cross")]
    encoded = model.run_encoder(batch)

    def numbers_of(variants: Sequence[Variant], whole: Tensor) -> Tensor:
        rows = [variant.row for variant in variants]
        several = taken(batch, rows)
        positions = torch.tensor([variant.position for variant in variants], device=model.device)

        def without(call: Call) -> Tensor:
            columns = torch.arange(call.scores.shape[-1], device=positions.device)
            kept = (columns != positions[:, None])[:, None, None]
            return kept if call.mask is None else call.mask & kept

        with watch(model.module, layers, record=(), change=Change(mask=without)):
            logits = model.logits_after(several, encoded.taken(rows))  # the encoder runs once
        return _numbers(model, several, take_rows(logits, several.rows), settings)

    variants = (
        Variant(row, position, "source", position, example)
        for row, example in enumerate(batch.examples)
        for position in range(len(example.ids))
    )
    return Scored(_compare(model, batch, settings, variants, numbers_of, settings.signed))


def _numbers(
    model: LoadedModel, batch: Batch, logits: Float[Tensor, "batch target vocabulary"], settings: OutputSettings
) -> Float[Tensor, "batch target"]:
    return output_numbers(logits, batch.outputs, find_foils(model, batch, settings.contrast), settings)


def _compare(
    model: LoadedModel,
    batch: Batch,
    settings: OutputSettings,
    variants: Iterator[Variant],
    numbers_of: Callable[[Sequence[Variant], Tensor], Tensor],
    signed: bool,
    most_of_one: int | None = None,
) -> Float[Tensor, "batch target column"]:
    """Fill in the differences between the outputs' numbers with and without each input.

    `numbers_of` takes variants and the numbers of their examples as they are; with `most_of_one`, at most that many at
    a time, all of one example.
    """
    check_has_output(model)
    logits = model.logits(batch)
    note_odds(logits, batch.outputs)
    whole = _numbers(model, batch, logits, settings)
    all_variants = list(variants)
    width = max((variant.column for variant in all_variants), default=0) + 1
    columns = batch.ids.shape[1] if batch.decoder_ids is None else batch.ids.shape[1] + batch.decoder_ids.shape[1]
    scores = whole.new_zeros(*whole.shape, max(width, columns))
    length = max(len(example) for example in batch.examples)
    at_a_time = max(1, positions_that_fit(model, length) // length)
    for chosen in _groups(all_variants, at_a_time, most_of_one):
        rows = torch.tensor([variant.row for variant in chosen], device=whole.device)
        numbers = numbers_of(chosen, whole[rows])  # (variant, target)
        differences = whole[rows, : numbers.shape[1]] - numbers
        for variant, difference in zip(chosen, differences, strict=True):
            scores[variant.row, : len(difference), variant.column] = difference
    return scores if signed else scores.abs()


def _groups(variants: list[Variant], size: int, most_of_one: int | None) -> Iterator[list[Variant]]:
    if most_of_one is None:
        yield from (variants[start : start + size] for start in range(0, len(variants), size))
        return
    for _, group in groupby(variants, key=lambda variant: variant.row):
        yield from _groups(list(group), min(size, most_of_one), None)


def _variants(model: LoadedModel, batch: Batch, sides: tuple[str, ...], how: str) -> Iterator[Variant]:
    """List every example without each of its inputs."""
    for row, example in enumerate(batch.examples):
        for side in sides:
            ids = example.ids if side == "source" else example.decoder_ids
            offset = 0 if side == "source" else batch.ids.shape[1]
            for position in range(len(ids)):
                variant: Example | None = example
                if how == "delete":
                    variant = _without(model, example, side, position)
                elif ids[position] == model.tokenizer.eos_token_id:
                    variant = None
                if variant is not None:
                    yield Variant(row, offset + position, side, position, variant)


def _without(model: LoadedModel, example: Example, side: str, position: int) -> Example | None:
    """Delete a token; what follows moves up. A special token, and a gap that is to be filled, stay."""
    tokens = example.prefix if side == "prefix" else example.source
    if model.continues and position >= len(example.source):
        tokens, place = example.prefix, position - len(example.source)
    else:
        place = position
    deletable = place < len(tokens) and tokens.word_ids[place] is not None and len(example.ids) > 1
    if not deletable or (model.fills_gaps and position in example.label_rows):
        return None
    moves = side == "prefix" or model.continues or model.fills_gaps
    # A prediction after the deleted token moves up with its input; the one at the token is made a step before.
    first_moved = position + model.fills_gaps
    rows = tuple(row - (row >= first_moved) if moves else row for row in example.label_rows)
    if rows and rows[0] < 0:  # the only token before the first output
        return None
    if side == "prefix":
        kept = example.decoder_ids[:position] + example.decoder_ids[position + 1 :]
        return replace(example, decoder_ids=kept, label_rows=rows)
    kept_places = [place for place in range(len(example.ids)) if place != position]
    return replace(example.keeping(kept_places), label_rows=rows)


def _replacement(model: LoadedModel, how: str) -> Callable[[Sequence[Variant]], AbstractContextManager[None]]:
    """Return the context in which the variants' embeddings are replaced; deleted tokens need none."""
    if how == "delete":
        return lambda variants: nullcontext()
    vectors = {side: model.embedding_of(side, None if how == "zero" else how) for side in model.embedding_sites}

    def context(variants: Sequence[Variant]) -> AbstractContextManager[None]:
        def change(embedding: Tensor, side: str) -> Tensor:
            changed = embedding.clone()
            for row, variant in enumerate(variants):
                if variant.side == side:
                    changed[row, variant.position] = vectors[side].to(embedding.dtype)
            return changed

        return model.changed_embeddings(**{side: lambda e, side=side: change(e, side) for side in vectors})

    return context
