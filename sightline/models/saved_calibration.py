"""A calibration's files: a small adapter next to its model.

They lie in the model's folder; the model itself, as transformers saves and loads it, knows nothing of them.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch

from sightline.attend.calibration import NAME, Calibration, LayerShape
from sightline.attend.settings import CalibrationSettings
from sightline.errors import InputError
from sightline.json_files import read_json, write_json
from sightline.models.sealed_weights import read_weights, write_weights

WEIGHTS, SETTINGS = "calibration.safetensors", "calibration.json"


def save_calibration(calibration: Calibration, folder: Path) -> None:
    """Write weights and settings; a weight has the name that it has in the calibrated model."""
    write_weights({f"{NAME}.{name}": tensor for name, tensor in calibration.state_dict().items()}, folder / WEIGHTS)
    description = {
        "settings": dataclasses.asdict(calibration.settings),
        "layers": [dataclasses.asdict(shape) for shape in calibration.shapes],
    }
    write_json(folder / SETTINGS, description)


def attach_saved_calibration(module: Any, folder: Path) -> None:
    """Attach to a model the calibration that is saved in its folder, if there is one."""
    if not (folder / SETTINGS).is_file():
        return
    remedy = f"Take {SETTINGS} and {WEIGHTS} from one place, or remove both to load the model without."
    description = read_json(folder / SETTINGS, {"settings": dict, "layers": list}, remedy)
    try:
        weights, _ = read_weights(folder / WEIGHTS)
        shapes = [LayerShape(**shape) for shape in description["layers"]]
        # A calibration that names no bound was saved before there was one.
        settings = CalibrationSettings(**{"bound": None} | description["settings"])
        with torch.device("meta"):  # what the shapes say takes no memory before the weights are seen to fit
            calibration = Calibration(settings, shapes)
        if not all(tensor.is_floating_point() for tensor in weights.values()):
            raise ValueError("not all of its weights are floating-point numbers")
        own = {name.removeprefix(f"{NAME}."): tensor for name, tensor in weights.items()}
        calibration.load_state_dict(own, assign=True)  # of any precision: it becomes the model's
        calibration.attach(module)
    except Exception as error:  # nonsense in its files makes it fail in any way
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"The calibration in {folder} cannot be loaded: {reason}. {remedy}") from error
