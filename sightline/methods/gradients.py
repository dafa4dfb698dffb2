"""Gradients of outputs by input embeddings: Li et al. 2016, Ding et al. 2019 and Meister et al. 2021.

All outputs of a pair come from one teacher-forced pass. Then one vector-Jacobian product per output goes back through
the decoder and the encoder, for the whole batch at once; the products of early outputs run on a decoder that is cut
short, since positions after an output cannot have counted for it. The embedding axis is reduced at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sightline.methods.outputs import check_has_output, find_foils, note_odds, output_cotangents, output_numbers
from sightline.methods.paths import InputPath, smooth_path, straight_path
from sightline.methods.scored import Columns, Scored
from sightline.methods.settings import (
    GradientSettings,
    IntegratedGradientsSettings,
    OutputSettings,
    WordSaliencySettings,
)
from sightline.models.budget import gradient_positions_that_fit
from sightline.models.examples import Batch, repeated
from sightline.models.loaded import LoadedModel

NORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "l1": lambda gradient: gradient.abs().mean(-1),
    "l2": lambda gradient: gradient.norm(dim=-1),
}

Reduce = Callable[[Tensor, Tensor], Tensor]
"""From gradients and what they are multiplied with, both (..., width), to one number for each position."""


class Reduction(NamedTuple):
    """How gradients become scores: reduced at each point of a path, and averaged as the path has it, or raw."""

    reduce: Reduce
    raw: bool = False


def gradient(model: LoadedModel, batch: Batch, settings: GradientSettings) -> Scored:
    """Return the size of the gradient of each output by each input's embedding.

    l1: mean over d of |d log p(y_t) / d e_i,d| (Li et al. 2016)
    l2: || d p(y_t) / d e_i || (Meister et al. 2021, eq. 4, before its rows are normalised)
    """
    sides = sides_of(model, settings.prefix)
    path = smooth_path(batch, settings)
    (scores,) = average_gradients(model, batch, settings, sides, path, [Reduction(size_of_gradient(settings.norm))])
    return Scored(scores, columns=columns_of(model, sides))


def word_saliency(model: LoadedModel, batch: Batch, settings: WordSaliencySettings) -> Scored:
    """Return gradient . embedding, signed: how an output answers to the strength of each input word.

    psi(s_i, t_j) = d log p(t_j) / d W_si . W_si    (Ding et al. 2019, eq. 3)
    """
    sides = sides_of(model, settings.prefix)
    path = smooth_path(batch, settings)
    reduce = dot if settings.norm is None else lambda slope, direction: NORMS[settings.norm](slope * direction)
    (scores,) = average_gradients(model, batch, settings, sides, path, [Reduction(reduce)])
    return Scored(scores, columns=columns_of(model, sides))


def integrated_gradients(model: LoadedModel, batch: Batch, settings: IntegratedGradientsSettings) -> Scored:
    """Return the mean gradient on the way from a baseline, times that way: the scores of a row sum to what was gained.

    (e_i - b) . integral over a from 0 to 1 of d log p(y_t) / d e_i at b + a (e - b)    (Sundararajan et al. 2017)
    """
    sides = sides_of(model, settings.prefix)
    path = straight_path(model, settings.baseline, settings.steps)
    (scores,) = average_gradients(model, batch, settings, sides, path, [Reduction(dot)])
    return Scored(scores, columns=columns_of(model, sides))


def dot(slope: Tensor, direction: Tensor) -> Tensor:
    """Multiply gradients with their direction, such as the embedding, and sum over the width."""
    return (slope * direction).sum(-1)


def size_of_gradient(norm: str) -> Reduce:
    """Return the reduction to the size of the gradient alone, by one of NORMS."""
    return lambda slope, _: NORMS[norm](slope)


def sides_of(model: LoadedModel, prefix: bool) -> tuple[str, ...]:
    """Name the sides that get columns; a decoder-only model's one sequence counts as its source."""
    return ("source", "prefix") if prefix and model.has_encoder_and_decoder else ("source",)


def columns_of(model: LoadedModel, sides: tuple[str, ...]) -> Columns:
    """Return what the columns of scores over these sides are."""
    return "both" if model.continues or "prefix" in sides else "source"


def average_gradients(
    model: LoadedModel,
    batch: Batch,
    settings: OutputSettings,
    sides: tuple[str, ...],
    path: InputPath,
    reductions: Sequence[Reduction],
) -> list[Float[Tensor, "batch target column"]]:
    """Average gradients over the points of a path, once for each way to reduce them, which share all passes.

    Several points share a pass where the batch is small.
    """
    check_has_output(model)
    points = range(len(path.weights))
    at_a_time = max(1, gradient_positions_that_fit(model, batch.ids.shape[1]) // batch.ids.numel())
    totals: list[Tensor] = []
    for start in range(0, len(points), at_a_time):
        chosen = points[start : start + at_a_time]
        found = _gradients_at(model, batch, settings, sides, path, chosen, [one.reduce for one in reductions])
        parts = []
        for scores, reduction in zip(found, reductions, strict=True):
            several = scores.unflatten(0, (len(chosen), len(batch)))
            several = several if reduction.raw else path.prepared(several)
            weights = torch.tensor([path.weights[point] for point in chosen], device=scores.device, dtype=scores.dtype)
            parts.append(torch.einsum("p,pbtc->btc", weights, several))
        totals = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts
    return totals


def _gradients_at(
    model: LoadedModel,
    batch: Batch,
    settings: OutputSettings,
    sides: tuple[str, ...],
    path: InputPath,
    points: range,
    reduces: Sequence[Reduce],
) -> list[Float[Tensor, "point_and_batch target column"]]:
    """Return the gradients of every output by every input at some points of a path, reduced in each of some ways."""
    leaves: dict[str, Tensor] = {}
    directions: dict[str, Tensor] = {}

    def spread(embedding: Tensor, side: str) -> Tensor:
        parts = zip(embedding.chunk(len(points)), points, strict=True)
        return torch.cat([path.place(part, point, side) for part, point in parts])

    def at_leaf(embedding: Tensor, side: str) -> Tensor:
        directions[side] = path.direction(embedding, side).detach()
        leaves[side] = torch.zeros_like(embedding, requires_grad=True)
        return spread(embedding, side).detach() + leaves[side]

    spreads = {side: lambda e, side=side: spread(e, side) for side in model.embedding_sites}
    with_leaves = spreads | {side: lambda e, side=side: at_leaf(e, side) for side in sides}
    several = repeated(batch, len(points))
    unchanged = type(path) is InputPath  # its one point is the input itself
    if model.classifies:
        with torch.enable_grad(), model.changed_embeddings(**with_leaves):
            foils = find_foils(model, several, settings.contrast)
            logits = model.logits(several)
            if unchanged:
                note_odds(logits, several.outputs)
            numbers = output_numbers(logits, several.outputs, foils, settings)
            (slope,) = torch.autograd.grad(numbers.sum(), [leaves["source"]])
        return [reduce(slope, directions["source"])[:, None] * several.mask[:, None] for reduce in reduces]

    with model.changed_embeddings(**spreads):
        cotangents = output_cotangents(model, several, settings, unchanged)
    widths = {"source": several.ids.shape[1]}
    if several.decoder_ids is not None:
        widths["prefix"] = several.decoder_ids.shape[1]
    rows: list[list[Tensor]] = [[] for _ in reduces]
    with torch.enable_grad(), model.changed_embeddings(**with_leaves):
        for outputs, states in _shortened_passes(model, several):
            positions, real = (tensor[:, outputs].T for tensor in (several.rows, several.row_mask))
            by = [leaves[side] for side in sides]
            for slopes in vector_jacobian_products(model, states, by, cotangents, positions, real):
                for reduce, rows_so_far in zip(reduces, rows, strict=True):
                    columns = [
                        F.pad(reduce(slope, directions[side]), (0, widths[side] - slope.shape[-2]))
                        for side, slope in zip(sides, slopes, strict=True)
                    ]
                    columns[0] = columns[0] * several.mask
                    rows_so_far.append(torch.cat(columns, -1))  # (output, batch, column)
    return [torch.cat(one).transpose(0, 1) for one in rows]


def _shortened_passes(model: LoadedModel, batch: Batch) -> Iterator[tuple[range, Tensor]]:
    """Yield groups of outputs with the last states of a pass that is just long enough for them.

    The encoder runs once. Few groups waste backward passes on late positions, many waste forward passes: the count
    balances the two.
    """
    count = batch.rows.shape[1]
    length = count if batch.decoder_ids is not None else batch.ids.shape[1]
    groups = 1
    if model.generates:
        kept_anyway = batch.ids.shape[1] if batch.decoder_ids is not None else length - count
        groups = max(1, min(count, round(math.sqrt(count * count / (2 * kept_anyway + count)))))
    encoded = model.run_encoder(batch) if batch.decoder_ids is not None else None
    size = math.ceil(count / groups)
    for start in range(0, count, size):
        outputs = range(start, min(start + size, count))
        needed = None if groups == 1 else int(batch.rows[:, outputs.start : outputs.stop].max()) + 1
        yield outputs, model.last_states(batch, encoded, needed)


def vector_jacobian_products(
    model: LoadedModel,
    states: Float[Tensor, "batch position width"],
    leaves: list[Tensor],
    cotangents: Float[Tensor, "batch longer width"],
    positions: Int[Tensor, "output batch"],
    real: Bool[Tensor, "output batch"],
) -> Iterator[list[Tensor]]:
    """Yield, for some outputs at a time, their gradients by each leaf: (output, batch, ...), for all examples at once.

    Output k of an example enters the states at `positions[k]`, with the cotangent that stands there.
    """
    at_a_time = max(1, gradient_positions_that_fit(model, states.shape[1]) // states[..., 0].numel())
    examples = torch.arange(states.shape[0], device=states.device)
    for chosen, kept in zip(positions.split(at_a_time), real.split(at_a_time), strict=True):
        count = len(chosen)
        cotangent = states.new_zeros(count, *states.shape)
        entering = cotangents[examples, chosen] * kept[..., None].to(states.dtype)
        cotangent[torch.arange(count, device=states.device)[:, None], examples, chosen] = entering
        found = torch.autograd.grad(
            states,
            leaves,
            cotangent if count > 1 else cotangent[0],
            retain_graph=True,
            is_grads_batched=count > 1,
            materialize_grads=True,
        )
        yield [slope if count > 1 else slope[None] for slope in found]
