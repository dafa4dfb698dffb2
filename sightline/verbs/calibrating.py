"""Calibrating the cross-attention of a translation model (Lu et al. 2021)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from sightline.attend.calibration import Calibration, LayerShape, layer_input
from sightline.attend.hooks import Before, hooks
from sightline.attend.settings import CalibrationSettings
from sightline.attend.watch import watch
from sightline.errors import InputError
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.values import checked_values


def calibrate(model: Any, **settings: Any) -> LoadedModel:
    """Return a copy of a translation model whose cross-attention is calibrated (Lu et al. 2021).

    The settings are those of `CalibrationSettings`: fusion, alpha, alpha_warmup, bound, ratio, renormalize, gate,
    penalty, layers. The calibration has learnt nothing yet: train it by a recipe with a section `calibration:`.
    `twin.save(folder)` saves model and calibration, `load(folder)` gives both, and `with twin.uncalibrated():` the
    original attention.
    """
    loaded = load(model)
    chosen = CalibrationSettings(**checked_values(CalibrationSettings, settings, "a calibration"))
    twin = LoadedModel(
        copy.deepcopy(loaded.module), loaded.tokenizer, loaded.task, loaded.prompt, loaded.max_memory, loaded.guess
    )
    attach_calibration(twin, chosen)
    return twin


def attach_calibration(model: LoadedModel, settings: CalibrationSettings) -> Calibration:
    """Attach a new calibration to a model, with a mask model that has learned nothing yet."""
    if not model.has_encoder_and_decoder:
        raise InputError(
            f"{type(model.module).__name__} has no encoder and decoder: only cross-attention is calibrated."
        )
    if model.calibration is not None:
        raise InputError("The model is calibrated already: load its base.")
    shapes = _find_shapes(model)
    calibration = Calibration(settings, shapes[-1:] if settings.layers == "last" else shapes)
    calibration.attach(model.module)
    return calibration


def _find_shapes(model: LoadedModel) -> list[LayerShape]:
    """Run a small batch to see the sizes of what each cross-attention layer is given."""
    layers = [layer.module for layer in model.layers("cross")]
    if len(set(layers)) < len(layers):
        raise InputError(f"{type(model.module).__name__} shares its cross-attention between layers: calibrate another.")
    names = {module: name for name, module in model.module.named_modules()}
    states: dict[nn.Module, Tensor] = {}
    with (
        model.evaluating(),
        torch.no_grad(),
        hooks(before=[(layer, _keep_states(states)) for layer in layers]),
        watch(model.module, layers, ("weights", "queries")) as seen,
    ):
        batch = model.probe()
        model.run(batch)
        encoder_width = model.run_encoder(batch).states.shape[-1]
    shapes = []
    for layer in layers:
        heads, state_width = seen[layer].weights.shape[1], states[layer].shape[-1]
        queries = seen[layer].queries  # attention that is frozen has none
        head_width = max(state_width // heads, 1) if queries is None else queries.shape[-1]
        shapes.append(LayerShape(names[layer], heads, head_width, state_width, encoder_width))
    return shapes


def _keep_states(states: dict[nn.Module, Tensor]) -> Before:
    def keep(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        states[layer] = layer_input(args, kwargs)

    return keep
