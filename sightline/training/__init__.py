"""Training translation models and classifiers: recipes, vocabulary, the loop, checkpoints.

The loop is imported when it is first used, so that a recipe is read without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sightline.training.loop import TrainingResult, train
    from sightline.training.recipe import Recipe, read_recipe

__all__ = ["Recipe", "TrainingResult", "read_recipe", "train"]

_HOME = {"TrainingResult": "loop", "train": "loop", "Recipe": "recipe", "read_recipe": "recipe"}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'sightline.training' has no attribute {name!r}")
    return getattr(import_module(f"sightline.training.{_HOME[name]}"), name)
