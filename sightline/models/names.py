"""What models and their parts are called; nothing here needs torch, so that names are checked before it is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sightline.errors import InputError
from sightline.models.box import find_in_box

Task = Literal["translate", "continue", "classify", "fill", "represent"]

# How the name of a model's class tells what it does; the first that fits counts.
TASKS: tuple[tuple[str, Task], ...] = (
    ("ForSequenceClassification", "classify"),
    ("ForMaskedLM", "fill"),
    ("ForConditionalGeneration", "translate"),
    ("MTModel", "translate"),
    ("ForCausalLM", "continue"),
    ("LMHeadModel", "continue"),
)

TASK_SUMMARIES: dict[Task, str] = {
    "classify": "the label",
    "fill": "the word in each gap",
    "translate": "each token of the translation, or of another text made from the source",
    "continue": "each token of the continuation; the prompt is the source",
    "represent": "nothing is predicted: attention and norms only",
}

ATTENTION_KINDS = ("cross", "encoder", "decoder")


def check_model_name(name: str | None) -> None:
    """Refuse a model in the box, or a folder, that is not there; a name on the hub is not looked up."""
    if name is not None and find_in_box(name) is None:
        check_folder(name)


def check_folder(name: str) -> None:
    """Refuse what looks like the path of a folder and is none."""
    looks_like_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    if looks_like_path and not Path(name).is_dir():
        raise InputError(
            f"There is no folder {name!r}: give a folder with a saved model, or a model's name on the hub."
        )
