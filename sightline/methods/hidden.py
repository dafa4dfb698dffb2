"""Gradients by encoder states, and of encoder states by inputs (Lu et al. 2021, eq. 2; Meister et al. 2021, eq. 5)."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from sightline.errors import InputError
from sightline.methods.gradients import NORMS, vector_jacobian_products
from sightline.methods.outputs import (
    cut_behind,
    find_foils,
    note_odds,
    output_cotangents,
    output_numbers,
)
from sightline.methods.scored import Scored
from sightline.methods.settings import HiddenGradientSettings
from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel


def hidden_gradient(model: LoadedModel, batch: Batch, settings: HiddenGradientSettings) -> Scored:
    """Return the size of the gradient of each output by each encoder state, or of each state by each input.

    output: | d p(y_t) / d h_i |, l1 or l2 (Lu et al. 2021, eq. 2)
    state: || d ||h_p|| / d e_i || (Meister et al. 2021, eq. 5, before its rows are normalised)
    jacobian: || d h_p / d e_i ||, the Frobenius norm (Meister et al. 2021, appendix A)
    """
    if settings.toward == "output":
        return Scored(_of_outputs(model, batch, settings))
    return Scored(_of_states(model, batch, settings), rows="source")


def _of_outputs(
    model: LoadedModel, batch: Batch, settings: HiddenGradientSettings
) -> Float[Tensor, "batch target source"]:
    if model.classifies:
        return _of_label(model, batch, settings)
    if not model.has_encoder_and_decoder:
        raise InputError(f"{type(model.module).__name__} has no encoder whose states its outputs are read from.")
    cotangents = output_cotangents(model, batch, settings)
    with torch.no_grad():
        encoded = model.run_encoder(batch)
    with torch.enable_grad():
        leaf = encoded.states.detach().requires_grad_()
        states = model.last_states(batch, replace(encoded, states=leaf))
        positions = batch.rows.T  # (output, batch)
        rows = [
            NORMS[settings.norm](slopes)
            for (slopes,) in vector_jacobian_products(model, states, [leaf], cotangents, positions, batch.row_mask.T)
        ]
    return torch.cat(rows).transpose(0, 1) * batch.mask[:, None]


def _of_label(
    model: LoadedModel, batch: Batch, settings: HiddenGradientSettings
) -> Float[Tensor, "batch target source"]:
    foils = find_foils(model, batch, settings.contrast)
    with torch.enable_grad(), cut_behind(model.last_stack) as states:
        logits = model.logits(batch)
        note_odds(logits, batch.outputs)
        numbers = output_numbers(logits, batch.outputs, foils, settings)
        if not numbers.requires_grad:
            raise InputError(f"{type(model.module).__name__} does not read its label from its encoder's last states.")
        (slopes,) = torch.autograd.grad(numbers.sum(), states)
    return (NORMS[settings.norm](slopes) * batch.mask)[:, None]


def _of_states(
    model: LoadedModel, batch: Batch, settings: HiddenGradientSettings
) -> Float[Tensor, "batch state source"]:
    leaves: list[Tensor] = []

    def at_leaf(embedding: Tensor) -> Tensor:
        leaves.append(torch.zeros_like(embedding, requires_grad=True))
        return embedding.detach() + leaves[-1]

    with torch.enable_grad(), model.changed_embeddings(source=at_leaf):
        states = model.run_encoder(batch).states
        positions = torch.arange(states.shape[1], device=states.device)[:, None].expand(-1, len(batch))
        if settings.toward == "state":
            cotangents = states.detach() / states.detach().norm(dim=-1, keepdim=True).clamp(min=1e-12)
            rows = [
                NORMS[settings.norm](slopes)
                for (slopes,) in vector_jacobian_products(model, states, leaves, cotangents, positions, batch.mask.T)
            ]
            scores = torch.cat(rows)
        else:
            squares = torch.zeros(())
            for unit in torch.eye(states.shape[-1], device=states.device, dtype=states.dtype):
                cotangents = unit.expand_as(states)
                products = vector_jacobian_products(model, states, leaves, cotangents, positions, batch.mask.T)
                squares = squares + torch.cat([slopes.square().sum(-1) for (slopes,) in products])
            scores = squares.sqrt()
    return scores.transpose(0, 1) * batch.mask[:, None]
