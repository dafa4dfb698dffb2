"""Attention measured by the norm of the weighted, transformed vectors (Kobayashi et al. 2020).

An attention layer gives, at step t, the sum over sources j and heads h of alpha_h(t, j) f_h(x_j), plus a bias, with
f_h(x) = (x W_V + b_V) W_O of that head (eq. 3). A small weight on a long vector can count more than a large weight on
a short one, so the norm of alpha f(x) is read instead of alpha alone.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sightline.attend.projections import precise
from sightline.attend.watch import Record, watch
from sightline.methods.attention import choose_head, read_layers
from sightline.methods.scored import Scored
from sightline.methods.settings import NormsSettings
from sightline.models.examples import Batch
from sightline.models.inspection import AttentionLayer
from sightline.models.loaded import LoadedModel


@torch.no_grad()
def norms(model: LoadedModel, batch: Batch, settings: NormsSettings) -> Scored:
    """Return the norm of alpha f(x): of the sum over heads, or head by head.

    layer: || sum_h alpha_h(t, j) f_h(x_j) ||    head: || alpha_h(t, j) f_h(x_j) ||    (Kobayashi et al., eq. 4)
    """
    reading = read_layers(model, settings)
    by_module = {layer.module: layer for layer in reading.layers}

    def measured(module: nn.Module, record: Record) -> Tensor:
        assert record.weights is not None
        assert record.values is not None
        weights = record.weights
        if settings.of == "vectors":
            weights = torch.ones_like(weights) * reading.real_columns(batch)[:, None, None]
        gram = gram_matrices(by_module[module], precise(record.values))
        if settings.head == "sum":
            scores = norms_of_sum(weights, gram)
        else:
            scores = choose_head(norms_by_head(weights, gram), settings.head)
        return reading.rows_of(model, batch, scores)

    with watch(model.module, by_module, record=("weights", "values"), keep=measured) as seen:
        model.run(batch)
    per_layer = [layer.seen_by(seen) for layer in reading.layers]
    return reading.scored(model, batch, per_layer, head_axis=settings.head == "all")


def transformed_vectors(
    layer: AttentionLayer, values: Float[Tensor, "batch head source width"]
) -> Float[Tensor, "batch source head model"]:
    """Return f_h(x_j): each head's value, through that head's part of the output projection."""
    output_map = layer.output_map(values.shape[1]).to(values.dtype)
    return torch.einsum("bhsw,hwm->bshm", values, output_map)


def gram_matrices(
    layer: AttentionLayer, values: Float[Tensor, "batch head source width"]
) -> Float[Tensor, "batch source head head"]:
    """Return, for each source position, the inner products of the heads' transformed vectors.

    They hold all that a norm of a weighted sum needs: || sum_h a_h f_h ||^2 = a' G a. The tensor of all weighted
    vectors (head, target, source, model) is never built.
    """
    vectors = transformed_vectors(layer, values)
    return vectors @ vectors.transpose(-1, -2)


def norms_of_sum(
    weights: Float[Tensor, "batch head target source"], gram: Float[Tensor, "batch source head head"]
) -> Float[Tensor, "batch target source"]:
    """Return || sum_h alpha_h f_h || from the Gram matrices."""
    by_source = weights.permute(0, 3, 2, 1)  # (batch, source, target, head)
    squares = ((by_source @ gram) * by_source).sum(-1)
    return squares.clamp(min=0).sqrt().transpose(1, 2)


def norms_by_head(
    weights: Float[Tensor, "batch head target source"], gram: Float[Tensor, "batch source head head"]
) -> Float[Tensor, "batch head target source"]:
    """Return || alpha_h f_h || from the diagonal of the Gram matrices."""
    lengths = gram.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()  # (batch, source, head)
    return weights.abs() * lengths.transpose(1, 2)[:, :, None]
