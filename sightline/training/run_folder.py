"""The folder of a run: its recipe and tokenizer, checkpoints, the log, and in the end the model and its result."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers.utils import logging

from sightline.errors import InputError
from sightline.files import check_folder_writable, writing_into
from sightline.json_files import read_json, write_json
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.training.checkpoints import Checkpoints, Position, explained_write_errors
from sightline.training.corpus import Corpora
from sightline.training.journal import Journal
from sightline.training.languages import learn_languages
from sightline.training.optimization import learning_rate
from sightline.training.recipe import Recipe, read_recipe
from sightline.training.vocabulary import collect_words, train_tokenizer, train_two_sided_tokenizer

RECIPE, RESULT = "recipe.json", "result.json"
MAY_CHANGE = ("training.steps", "training.minutes", "training.patience", "training.log_every", "evaluation.")
"""Keys, or their beginnings, that may change when a run goes on, since they do not change what a step does; the number
of steps, only if it does not (`_check_plan`)."""


@dataclass(frozen=True)
class RunFolder:
    """Where a run writes; `journal` is None in all processes but the first."""

    path: Path
    checkpoints: Checkpoints
    journal: Journal | None

    def say(self, text: str) -> None:
        """Print a line for people, from the first process only."""
        if self.journal is not None:
            self.journal.say(text)

    def record(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Write figures into the log, from the first process only."""
        if self.journal is not None:
            with self.explained_errors():
                self.journal.record(kind, step, figures)

    def explained_errors(self) -> AbstractContextManager[None]:
        """Turn a failure to write into a sentence that says what is safe."""
        return explained_write_errors(self.path, self.checkpoints)


def check_folder(recipe: Recipe, output: Path, checkpoints: Checkpoints) -> None:
    """Refuse a folder with something else in it, or with a run of another recipe that got as far as a checkpoint."""
    path = output / RECIPE
    if output.exists() and not path.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} is not empty and holds no training run: train into another folder.")
    check_folder_writable(output)
    if checkpoints.steps():
        remedy = "Restore it from a copy, or train into another folder."
        stored = read_recipe(read_json(path, {}, remedy))  # with keys that are newer
        for key, (there, here) in _differences(stored.to_dict(), recipe.to_dict()).items():
            if not key.startswith(MAY_CHANGE):
                raise InputError(
                    f"{output} holds a run with {key} = {there!r}, and the recipe has {here!r}: "
                    "train into another folder, or remove that one."
                )
        _check_plan(stored, recipe, output, checkpoints.position(checkpoints.steps()[-1]))


def _check_plan(stored: Recipe, recipe: Recipe, output: Path, position: Position) -> None:
    """Refuse another number of steps where it would have changed what the steps already done did."""
    there, here = stored.training.steps, recipe.training.steps
    steps, formed = range(1, position.step + 1), position.formed
    if there != here and any(_planned(stored, step, formed) != _planned(recipe, step, formed) for step in steps):
        raise InputError(
            f"{output} holds {position.step:,} steps of a run that was planned for {there:,}: with training.steps = "
            f"{here:,} the learning rate or the calibration of those steps would have been different. Leave "
            "training.steps as it was, or train into another folder."
        )


def _planned(recipe: Recipe, step: int, formed: int | None) -> tuple[float, ...]:
    """List what a step does that may depend on the number of steps of the run."""
    rate = learning_rate(step, recipe.training)
    if recipe.calibration is None:
        return (rate,)
    steps = recipe.training.steps
    gamma = recipe.calibration.gamma_at(step / steps) if recipe.calibration.fusion == "anneal" else 0.0
    since = None if formed is None or step <= formed else (step - formed) / steps
    return rate, recipe.calibration.alpha_at(since), gamma


def _differences(there: Any, here: Any, key: str = "") -> dict[str, tuple[Any, Any]]:
    """List the keys, as `a.b`, that differ between two nested mappings."""
    if not (isinstance(there, dict) and isinstance(here, dict)):
        return {} if there == here else {key: (there, here)}
    found: dict[str, tuple[Any, Any]] = {}
    for name in [*there, *(name for name in here if name not in there)]:
        found |= _differences(there.get(name), here.get(name), f"{key}.{name}" if key else name)
    return found


def fill_folder(recipe: Recipe, output: Path, corpora: Corpora, checkpoints: Checkpoints) -> list[str]:
    """Write the recipe and, unless a run goes on, tokenizer and language guess; return what is to be said of damage."""
    damage = checkpoints.put_damaged_aside()
    tokenizer = None
    if not checkpoints.steps():
        tokenizer = build_tokenizer(recipe, corpora)
        guess = learn_languages(corpora.train, recipe.data.languages) if recipe.data.bidirectional else None
    with explained_write_errors(output, checkpoints):
        checkpoints.folder.mkdir(parents=True, exist_ok=True)
        checkpoints.clear_unfinished()
        write_json(output / RECIPE, recipe.to_dict())
        if tokenizer is not None:
            with writing_into(output, last="tokenizer_config.json") as folder:
                tokenizer.save_pretrained(folder)
                if guess is not None:
                    guess.save(folder)
    return damage


def build_tokenizer(recipe: Recipe, corpora: Corpora) -> Any:
    """Train a vocabulary on the training text, or take that of the model that the recipe builds on."""
    base = recipe.calibration.base if recipe.calibration is not None else recipe.training.start
    base = recipe.adversary.of if recipe.adversary is not None else base
    if base is not None:
        return load(base).tokenizer
    sides = (0,) if recipe.classifies else (0, 1)
    texts = (pair[side] for pair in corpora.train for side in sides)
    size, max_length = recipe.tokenizer.vocabulary, recipe.model.max_positions
    if not recipe.tokenizer.joint:
        sources, targets = zip(*corpora.train, strict=True)
        return train_two_sided_tokenizer(sources, targets, size, max_length)
    if recipe.tokenizer.kind == "words":
        return collect_words(texts, size, max_length)
    return train_tokenizer(texts, size, max_length, recipe.data.languages if recipe.data.bidirectional else ())


def save_model(loaded: LoadedModel, folder: Path) -> None:
    """Save model and tokenizer as transformers does, without its progress bar."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        loaded.save(folder)
    finally:
        if shown:
            logging.enable_progress_bar()
