"""Training translation models and classifiers: recipes, vocabulary, the loop, checkpoints."""

from sightline.training.loop import TrainingResult, train
from sightline.training.recipe import Recipe, read_recipe

__all__ = ["Recipe", "TrainingResult", "read_recipe", "train"]
