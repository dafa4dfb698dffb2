"""Alignment adapters' files: next to their model, one adapter for each direction that it translates in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError

from sightline.attend.alignment import AdapterShape, AlignmentAdapter
from sightline.errors import InputError
from sightline.json_files import read_json, write_json
from sightline.models.sealed_weights import read_weights, write_weights

WEIGHTS, DESCRIPTION = "alignment-adapter.safetensors", "alignment-adapter.json"
REVERSE = "reverse"
"""The folder, inside a model's, of the model of the other direction."""

Adapters = dict[str, AlignmentAdapter]
"""By direction, as `LoadedModel.direction` names it."""


def save_adapters(adapters: Mapping[str, AlignmentAdapter], folder: Path) -> None:
    """Write the weights of all directions, and their shapes."""
    weights = {
        f"{direction}/{name}": tensor
        for direction, adapter in adapters.items()
        for name, tensor in adapter.state_dict().items()
    }
    shapes = {direction: dataclasses.asdict(adapter.shape) for direction, adapter in adapters.items()}
    write_weights(weights, folder / WEIGHTS)
    write_json(folder / DESCRIPTION, {"directions": shapes})


def read_adapters(folder: Path) -> Adapters:
    """Read the adapters that lie in a model's folder; none where there are none."""
    if not (folder / DESCRIPTION).is_file():
        return {}
    remedy = f"Take {DESCRIPTION} and {WEIGHTS} from one place, or remove both to load the model without."
    shapes = read_json(folder / DESCRIPTION, {"directions": dict}, remedy)["directions"]
    try:
        weights, _ = read_weights(folder / WEIGHTS)
        adapters = {}
        for direction, shape in shapes.items():
            encoder, decoder = (tuple(map(int, shape[side])) for side in ("encoder", "decoder"))
            with torch.device("meta"):  # what the shapes say takes no memory before the weights are seen to fit
                adapter = AlignmentAdapter(AdapterShape(encoder, decoder, int(shape["width"])))
            prefix = f"{direction}/"
            own = {name.removeprefix(prefix): t.float() for name, t in weights.items() if name.startswith(prefix)}
            adapter.load_state_dict(own, assign=True)
            adapters[direction] = adapter.eval().requires_grad_(False)
        return adapters
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
        raise InputError(
            f"The alignment adapter in {folder} cannot be loaded: {str(error).splitlines()[0]}. {remedy}"
        ) from error
