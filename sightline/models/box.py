"""The model in the box: English-Spanish translation, both ways, inside the package. `load()` loads it."""

from __future__ import annotations

import os
from pathlib import Path

from sightline.errors import InputError

BOX_MODEL = "en-es"
FOLDER_VARIABLE = "SIGHTLINE_BOX"


def box_folder() -> Path:
    """Find the folder that holds the model's folder: what `SIGHTLINE_BOX` names, else the package's own."""
    return Path(os.environ.get(FOLDER_VARIABLE) or Path(__file__).parent / "box")


def has_box_model() -> bool:
    """Say whether this installation holds the model."""
    return (box_folder() / BOX_MODEL / "config.json").is_file()


def is_in_box(path: Path) -> bool:
    """Say whether a file belongs to the model in the box, which nobody changes."""
    return path.resolve().is_relative_to(box_folder().resolve())


def find_in_box(name: str) -> Path | None:
    """Give the folder of the model in the box if that is what a name means; `./en-es` is a folder of the user's."""
    if name != BOX_MODEL:
        return None
    if not has_box_model():
        raise InputError(
            f"This installation of Sightline lacks its own model {BOX_MODEL}: name another, by folder or by its name "
            "on the hub."
        )
    return box_folder() / BOX_MODEL
