"""The state of a training run: model, data and optimiser, prepared from its recipe or from where a run stopped.

`run_folder` has what it writes, `processes` how several processes work on it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from transformers import AutoTokenizer

from sightline.attend.precision import attend_in_float32
from sightline.data.corpora import TextPair
from sightline.errors import InputError
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.training.adversaries import AdversarialObjective, load_base, transfer
from sightline.training.architectures import ARCHITECTURES, load_trained
from sightline.training.batches import EncodedPairs, encode_pairs
from sightline.training.calibration import CalibratedObjective, prepare_calibration
from sightline.training.checkpoints import (
    Checkpoints,
    Position,
    explained_write_errors,
    load_weights,
)
from sightline.training.classification import (
    ClassificationObjective,
    class_weights,
    encode_labelled,
    label_names,
)
from sightline.training.corpus import Corpora, read_corpora
from sightline.training.evaluation import measure, measure_bleu
from sightline.training.journal import Journal
from sightline.training.objective import COUNTED, Objective
from sightline.training.optimization import build_optimizer
from sightline.training.processes import build_accelerator
from sightline.training.recipe import Recipe
from sightline.training.run_folder import RunFolder, check_folder, fill_folder, save_model


@dataclass(frozen=True)
class Run:
    """What a run is about. `objective` and `optimizer` are as Accelerate prepared them; `loaded` has the bare model."""

    recipe: Recipe
    folder: RunFolder
    accelerator: Accelerator
    loaded: LoadedModel
    objective: Any
    optimizer: Any
    train: EncodedPairs
    dev: EncodedPairs
    test: EncodedPairs | None
    dev_pairs: list[TextPair]
    alignment_pairs: list[TextPair]
    """The training pairs that an alignment adapter learns from."""
    test_pairs: list[TextPair]
    position: Position

    @property
    def model(self) -> Any:
        return self.loaded.module

    @property
    def tokenizer(self) -> Any:
        return self.loaded.tokenizer

    @property
    def trained_parameters(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def parameters_clipped_together(self) -> list[list[nn.Parameter]]:
        """List the groups of parameters whose gradients are clipped by one norm: a mask has a loss of its own."""
        calibration = self.loaded.calibration
        mask = [] if calibration is None else calibration.mask_parameters
        of_mask = {id(parameter) for parameter in mask}
        others = [parameter for parameter in self.trained_parameters if id(parameter) not in of_mask]
        return [group for group in (others, mask) if group]

    @property
    def counted(self) -> tuple[str, ...]:
        """Name what the objective counts in training; the first three are cross-entropy, correct labels and labels."""
        objective = self.accelerator.unwrap_model(self.objective, keep_fp32_wrapper=True)
        return getattr(objective, "counted", COUNTED)

    def set_progress(self, step: int, formed: int | None) -> None:
        """Set how far a calibration is in the run, and at which step attention had formed."""
        if self.loaded.calibration is not None:
            steps = self.recipe.training.steps
            since = None if formed is None else (step - formed) / steps
            self.loaded.calibration.set_progress(step / steps, since)

    def measure(self, pairs: EncodedPairs) -> tuple[float, float]:
        """Return loss and accuracy on some pairs."""
        objective = self.accelerator.unwrap_model(self.objective, keep_fp32_wrapper=True)
        return measure(objective, pairs, self.recipe.training.batch_tokens, self.accelerator)

    def measure_bleu(self, pairs: Sequence[TextPair], generation: dict[str, Any]) -> tuple[dict[str, float], str]:
        """Return BLEU by direction, and its signature."""
        data = self.recipe.data
        return measure_bleu(
            self.model, self.tokenizer, pairs, data.languages, data.bidirectional, generation, self.accelerator
        )


def save_checkpoint(run: Run, position: Position) -> None:
    """Write a checkpoint, from the first process; the others wait."""
    if run.accelerator.is_main_process:
        scaler = run.accelerator.scaler
        state = {
            "optimizer": run.optimizer.state_dict(),
            "scaler": scaler.state_dict() if scaler is not None else None,
        }
        run.folder.checkpoints.save(position, lambda folder: save_model(run.loaded, folder), state)
    run.accelerator.wait_for_everyone()


def prepare_run(recipe: Recipe, output: Path, quiet: bool) -> Run:
    """Read the data, make or load tokenizer, model and optimiser, and find the position to start from."""
    accelerator = build_accelerator(recipe.training.precision)
    checkpoints = Checkpoints(output / "checkpoints", recipe.training.checkpoint_every, recipe.training.average)
    check_folder(recipe, output, checkpoints)
    corpora = read_corpora(recipe.data, recipe.folder, recipe.seed)
    damage: list[str] = []
    with accelerator.main_process_first():
        if accelerator.is_main_process:
            damage = fill_folder(recipe, output, corpora, checkpoints)
        tokenizer = _read_tokenizer(output)
    encode = _encoder(recipe, corpora, tokenizer)
    train, train_pairs = encode(corpora.train)
    dev, dev_pairs = encode(corpora.dev)
    test, test_pairs = encode(corpora.test) if corpora.test else (None, [])

    steps = checkpoints.steps()
    position = checkpoints.position(steps[-1]) if steps else Position(data=train.fingerprint())
    if position.data != train.fingerprint():
        raise InputError(f"The training text is no longer that of the run in {output}: train into another folder.")
    torch.manual_seed(recipe.seed)
    labels = label_names(corpora.train) if recipe.classifies else None
    build = ARCHITECTURES[recipe.architecture].build
    model = build(recipe.model, tokenizer) if labels is None else build(recipe.model, tokenizer, labels)
    if recipe.training.start is not None and not steps:
        load_trained(model, recipe.training.start, "training.start")
    if accelerator.device.type == "cpu" and accelerator.mixed_precision == "bf16":
        attend_in_float32(model)
    objective = _build_objective(recipe, model.to(accelerator.device), train, tokenizer)
    if steps:
        load_weights(model, checkpoints.weights(steps[-1:]))
    objective, optimizer = accelerator.prepare(objective, build_optimizer(model, recipe.training))
    if steps:
        state = checkpoints.optimizer_state(steps[-1])
        optimizer.load_state_dict(state["optimizer"])
        if accelerator.scaler is not None and state["scaler"] is not None:
            accelerator.scaler.load_state_dict(state["scaler"])
    with explained_write_errors(output, checkpoints):
        journal = Journal(output, position.step, quiet) if accelerator.is_main_process else None
    run = Run(
        recipe=recipe,
        folder=RunFolder(output, checkpoints, journal),
        accelerator=accelerator,
        loaded=load(model, tokenizer),
        objective=objective,
        optimizer=optimizer,
        train=train,
        dev=dev,
        test=test,
        dev_pairs=dev_pairs,
        alignment_pairs=_draw(train_pairs, recipe.alignment.pairs, recipe.seed) if recipe.alignment else [],
        test_pairs=test_pairs,
        position=position,
    )
    _introduce(run, corpora, too_long=len(corpora.train) - len(train_pairs), damage=damage)
    return run


def _read_tokenizer(output: Path) -> Any:
    try:
        tokenizer = AutoTokenizer.from_pretrained(output)
        tokenizer("a")
        return tokenizer
    except Exception as error:  # damaged files make it fail in any way
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"The tokenizer in {output} cannot be loaded ({reason}): restore it, or train into another folder."
        ) from error


def _draw(pairs: Sequence[TextPair], count: int, seed: int) -> list[TextPair]:
    """Draw pairs at random, each once."""
    numbers = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [pairs[number] for number in numbers]


def _encoder(
    recipe: Recipe, corpora: Corpora, tokenizer: Any
) -> Callable[[Sequence[TextPair]], tuple[EncodedPairs, list[TextPair]]]:
    """Return the function that turns the pairs of this recipe into ids."""
    max_length = recipe.model.max_positions
    if recipe.classifies:
        labels = label_names(corpora.train)
        return lambda pairs: encode_labelled(pairs, tokenizer, max_length, labels)
    languages = recipe.data.languages if recipe.data.bidirectional else None
    return lambda pairs: encode_pairs(pairs, tokenizer, max_length, languages)


def _build_objective(recipe: Recipe, model: Any, train: EncodedPairs, tokenizer: Any) -> nn.Module:
    """Build the loss: a translation model's, a classifier's, or that of an adversary against another classifier."""
    if recipe.calibration is not None:
        prepare_calibration(load(model, tokenizer), recipe.calibration)
        return CalibratedObjective(model, recipe.training.label_smoothing)
    if recipe.adversary is not None:
        base = load_base(recipe.adversary, model.device)
        if recipe.adversary.frozen:
            transfer(base, model)
        return AdversarialObjective(model, base, recipe.adversary)
    if recipe.classifies:
        weights = class_weights(train, model.config.num_labels).to(model.device)
        return ClassificationObjective(model, weights, recipe.training.label_smoothing)
    return Objective(model, recipe.training.label_smoothing)


def _introduce(run: Run, corpora: Corpora, too_long: int, damage: Sequence[str]) -> None:
    """Print what is about to be trained, on what."""
    parameters = sum(parameter.numel() for parameter in run.trained_parameters)
    left_out = f", {too_long:,} with more than {run.recipe.model.max_positions} pieces" if too_long else ""
    run.folder.say(corpora.summary() + left_out)
    run.folder.say(
        f"{run.recipe.architecture} of {parameters:,} parameters, {len(run.tokenizer):,} pieces, "
        f"{run.accelerator.num_processes} x {run.accelerator.device.type}, {run.accelerator.mixed_precision}"
    )
    for sentence in damage:
        run.folder.say(sentence)
    if run.position.step:
        run.folder.say(f"Going on after step {run.position.step:,}.")
    else:
        run.folder.record("data", 0, {"train": len(run.train), "dev": len(run.dev), "left out": corpora.skipped})
