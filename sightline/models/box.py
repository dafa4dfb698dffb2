"""The model in the box: English-Spanish translation, both ways, inside the package. `load()` loads it."""

from __future__ import annotations

import os
from pathlib import Path

from sightline.errors import InputError

BOX_MODEL = "en-es"
CALIBRATED_MODEL = "en-es-calibrated"
"""The same model with calibrated attention, which is an adapter for it."""
FOLDER_VARIABLE = "SIGHTLINE_BOX"


def box_folder() -> Path:
    """Find the folder that holds the model's folder: what `SIGHTLINE_BOX` names, else the package's own."""
    return Path(os.environ.get(FOLDER_VARIABLE) or Path(__file__).parent / "box")


def has_box_model() -> bool:
    """Return whether this installation holds the model."""
    return (box_folder() / BOX_MODEL / "config.json").is_file()


def is_in_box(path: Path) -> bool:
    """Return whether a file belongs to the model in the box, which nobody changes."""
    return path.resolve().is_relative_to(box_folder().resolve())


def find_in_box(name: str) -> tuple[Path, Path] | None:
    """Return the folders of weights and of calibration if a name means a model in the box; `./en-es` is the user's."""
    if name not in (BOX_MODEL, CALIBRATED_MODEL):
        return None
    if not has_box_model() or not (box_folder() / name).is_dir():
        raise InputError(
            f"This installation of Sightline lacks its own model {name}: name another, by folder or by its name "
            "on the hub."
        )
    return box_folder() / BOX_MODEL, box_folder() / name
