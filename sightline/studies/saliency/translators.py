"""The translation models of the study: those of a folder, by the names of their recipes, or else trained here.

| architecture  | recipe, and folder of the model, such as  |
|---------------|-------------------------------------------|
| `transformer` | `hansard-en-fr`, `hansard-fr-en`          |
| `conv`        | `hansard-en-fr-conv`, ...                 |
| `lstm`        | `hansard-en-fr-lstm`, ...                 |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sightline.errors import InputError
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.studies.saliency.settings import Settings
from sightline.studies.saliency.texts import Direction, write_recipe_data
from sightline.studies.study import Work
from sightline.training import train


def model_name(settings: Settings, architecture: str, direction: Direction) -> str:
    """Name a model as its recipe is named."""
    corpus = settings.corpus.partition("-")[0]
    ending = "" if architecture == "transformer" else f"-{architecture}"
    return f"{corpus}-{'-'.join(direction)}{ending}"


def find_model(settings: Settings, architecture: str, direction: Direction) -> Path | None:
    """Find a model in the folder of models; None where it holds no such model."""
    if not settings.models:
        return None
    folder = Path(settings.models)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}: --models names a folder of translation models.")
    found = folder / model_name(settings, architecture, direction)
    return found if (found / "config.json").is_file() else None


def load_model(
    work: Work, settings: Settings, corpus: Path | None, architecture: str, direction: Direction
) -> tuple[LoadedModel, dict[str, Any]]:
    """Load the model of an architecture and direction, trained first where it is not there; with what is known of it.

    What is known is its parameters and, where it was trained here, the minutes that took.
    """
    folder = find_model(settings, architecture, direction)
    about: dict[str, Any] = {"given": folder is not None, "minutes": None}
    if folder is None:
        recipe = build_recipe(settings, architecture, write_recipe_data(settings, corpus, direction, work.folder))
        result = train(recipe, output=work.folder / "model", quiet=True)
        folder, about["minutes"] = result.folder, result.minutes
        work.say(f"trained: accuracy {result.dev.accuracy:.2f} in {result.minutes:.0f} minutes")
    model = load(folder)
    if model.task != "translate":
        raise InputError(f"{folder} holds a {type(model.module).__name__}: --models names translation models.")
    if model.other_way is not None:
        model = load(folder, source_lang=direction[0], target_lang=direction[1])
    return model, about | {"parameters": sum(one.numel() for one in model.module.parameters())}


def build_recipe(settings: Settings, architecture: str, data: dict[str, Any]) -> dict[str, Any]:
    """Build the recipe of a model."""
    sizes = settings.sizes(architecture)
    return {
        "data": data,
        "tokenizer": {"vocabulary": settings.vocabulary},
        "model": {"architecture": architecture, **sizes.model},
        "training": {**settings.training, **sizes.training},
        "evaluation": {"beam": 1},
        "seed": settings.seed,
    }
