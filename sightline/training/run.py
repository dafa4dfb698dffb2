"""All that a training run holds, prepared from its recipe or from where an interrupted run stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import parse_flag_from_env
from torch import nn
from transformers import AutoTokenizer
from transformers.utils import logging

from sightline.data.corpora import TextPair
from sightline.errors import InputError
from sightline.files import check_folder_writable, read_json, write_json, writing_into
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.training.adversaries import AdversarialObjective, load_base, transfer
from sightline.training.architectures import ARCHITECTURES
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
    EncodedTexts,
    class_weights,
    encode_labelled,
    label_names,
)
from sightline.training.corpus import Corpora, read_corpora
from sightline.training.evaluation import measure, measure_bleu
from sightline.training.journal import Journal
from sightline.training.languages import learn_languages
from sightline.training.objective import COUNTED, Objective
from sightline.training.optimization import build_optimizer, learning_rate
from sightline.training.recipe import Recipe, read_recipe
from sightline.training.vocabulary import collect_words, train_tokenizer, train_two_sided_tokenizer

RECIPE, RESULT = "recipe.json", "result.json"
MAY_CHANGE = ("training.steps", "training.minutes", "training.patience", "training.log_every", "evaluation.")
"""Keys, or their beginnings, that may change when a run goes on, since they do not change what a step does; the number
of steps, only if it does not (`_check_plan`)."""
PRECISIONS = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True)
class Run:
    """The parts of a run. `objective` and `optimizer` are as Accelerate prepared them; `loaded` has the bare model."""

    recipe: Recipe
    output: Path
    accelerator: Accelerator
    loaded: LoadedModel
    objective: Any
    optimizer: Any
    train: EncodedPairs
    dev: EncodedPairs
    test: EncodedPairs | None
    dev_pairs: list[TextPair]
    test_pairs: list[TextPair]
    checkpoints: Checkpoints
    position: Position
    journal: Journal | None
    """None in all processes but the first."""

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

    def say(self, text: str) -> None:
        """Tell people, from the first process only."""
        if self.journal is not None:
            self.journal.say(text)

    def record(self, kind: str, step: int, figures: Mapping[str, Any]) -> None:
        """Write figures into the log, from the first process only."""
        if self.journal is not None:
            with explained_write_errors(self.output, self.checkpoints):
                self.journal.record(kind, step, figures)

    def greatest(self, value: float) -> float:
        """Give the greatest value of all processes, so that they decide alike."""
        if self.accelerator.num_processes == 1:
            return value
        everyone = self.accelerator.gather(torch.tensor([value], device=self.accelerator.device))
        return everyone.max().item()

    def measure(self, pairs: EncodedPairs) -> tuple[float, float]:
        """Give loss and accuracy on some pairs."""
        objective = self.accelerator.unwrap_model(self.objective, keep_fp32_wrapper=True)
        return measure(objective, pairs, self.recipe.training.batch_tokens, self.accelerator)

    def measure_bleu(self, pairs: Sequence[TextPair], generation: dict[str, Any]) -> tuple[dict[str, float], str]:
        """Give BLEU by direction, and its signature."""
        data = self.recipe.data
        return measure_bleu(
            self.model, self.tokenizer, pairs, data.languages, data.bidirectional, generation, self.accelerator
        )

    def save_model(self, folder: Path) -> None:
        """Save model and tokenizer as transformers does, without its progress bar."""
        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            self.loaded.save(folder)
        finally:
            if shown:
                logging.enable_progress_bar()

    def save(self, position: Position) -> None:
        """Write a checkpoint, from the first process; the others wait."""
        if self.accelerator.is_main_process:
            scaler = self.accelerator.scaler
            state = {
                "optimizer": self.optimizer.state_dict(),
                "scaler": scaler.state_dict() if scaler is not None else None,
            }
            self.checkpoints.save(position, self.save_model, state)
        self.accelerator.wait_for_everyone()


def prepare_run(recipe: Recipe, output: Path, quiet: bool) -> Run:
    """Read the data, make or load tokenizer, model and optimiser, and find the position to start from."""
    accelerator = build_accelerator(recipe.training.precision)
    checkpoints = Checkpoints(output / "checkpoints", recipe.training.checkpoint_every, recipe.training.average)
    _check_folder(recipe, output, checkpoints)
    corpora = read_corpora(recipe.data, recipe.folder, recipe.seed)
    damage: list[str] = []
    with accelerator.main_process_first():
        if accelerator.is_main_process:
            damage = _fill_folder(recipe, output, corpora, checkpoints)
        tokenizer = AutoTokenizer.from_pretrained(output)
    encode = _encoder(recipe, corpora, tokenizer)
    train, train_pairs = encode(corpora.train)
    dev, dev_pairs = encode(corpora.dev)
    test, test_pairs = encode(corpora.test) if corpora.test else (None, [])

    steps = checkpoints.steps()
    position = checkpoints.position(steps[-1]) if steps else Position(data=train.fingerprint())
    if position.data != train.fingerprint():
        raise InputError(f"The training text is no longer that of the run in {output}: train into another folder.")
    torch.manual_seed(recipe.seed)
    labels = label_names(corpora.train) if isinstance(train, EncodedTexts) else None
    build = ARCHITECTURES[recipe.architecture].build
    model = build(recipe.model, tokenizer) if labels is None else build(recipe.model, tokenizer, labels)
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
        output=output,
        accelerator=accelerator,
        loaded=load(model, tokenizer),
        objective=objective,
        optimizer=optimizer,
        train=train,
        dev=dev,
        test=test,
        dev_pairs=dev_pairs,
        test_pairs=test_pairs,
        checkpoints=checkpoints,
        position=position,
        journal=journal,
    )
    _introduce(run, corpora, too_long=len(corpora.train) - len(train_pairs), damage=damage)
    return run


def _encoder(
    recipe: Recipe, corpora: Corpora, tokenizer: Any
) -> Callable[[Sequence[TextPair]], tuple[EncodedPairs, list[TextPair]]]:
    """Give the function that turns the pairs of this recipe into ids."""
    max_length = recipe.model.max_positions
    if ARCHITECTURES[recipe.architecture].classifies:
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
    if isinstance(train, EncodedTexts):
        weights = class_weights(train, model.config.num_labels).to(model.device)
        return ClassificationObjective(model, weights, recipe.training.label_smoothing)
    return Objective(model, recipe.training.label_smoothing)


def build_accelerator(precision: str) -> Accelerator:
    """Build the Accelerator of this process; `auto` takes 16 bits where the device computes faster with them."""
    on_cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available()
    device = PartialState(cpu=on_cpu).device
    if precision == "auto":
        precision = _fast_precision(device)
    AcceleratorState._reset_state()  # an earlier run of this process may have had another precision
    return Accelerator(cpu=on_cpu, mixed_precision=PRECISIONS[precision])


def _fast_precision(device: torch.device) -> str:
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    if device.type == "cpu" and torch.cpu._is_amx_tile_supported():
        return "bfloat16"
    return "float32"


def _check_folder(recipe: Recipe, output: Path, checkpoints: Checkpoints) -> None:
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


def _fill_folder(recipe: Recipe, output: Path, corpora: Corpora, checkpoints: Checkpoints) -> list[str]:
    """Write the recipe and, unless a run goes on, tokenizer and language guess; return what is to be said of damage."""
    damage = checkpoints.put_damaged_aside()
    tokenizer = None
    if not checkpoints.steps():
        tokenizer = _build_tokenizer(recipe, corpora)
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


def _build_tokenizer(recipe: Recipe, corpora: Corpora) -> Any:
    """Train a vocabulary on the training text; an adversary and a calibration have that of their base."""
    if recipe.adversary is not None:
        return load(recipe.adversary.of).tokenizer
    if recipe.calibration is not None and recipe.calibration.base is not None:
        return load(recipe.calibration.base).tokenizer
    sides = (0,) if ARCHITECTURES[recipe.architecture].classifies else (0, 1)
    texts = (pair[side] for pair in corpora.train for side in sides)
    size, max_length = recipe.tokenizer.vocabulary, recipe.model.max_positions
    if not recipe.tokenizer.joint:
        sources, targets = zip(*corpora.train, strict=True)
        return train_two_sided_tokenizer(sources, targets, size, max_length)
    if recipe.tokenizer.kind == "words":
        return collect_words(texts, size, max_length)
    return train_tokenizer(texts, size, max_length, recipe.data.languages if recipe.data.bidirectional else ())


def _introduce(run: Run, corpora: Corpora, too_long: int, damage: Sequence[str]) -> None:
    """Say what is about to be trained, on what."""
    parameters = sum(parameter.numel() for parameter in run.trained_parameters)
    left_out = f", {too_long:,} with more than {run.recipe.model.max_positions} pieces" if too_long else ""
    run.say(corpora.summary() + left_out)
    run.say(
        f"{run.recipe.architecture} of {parameters:,} parameters, {len(run.tokenizer):,} pieces, "
        f"{run.accelerator.num_processes} x {run.accelerator.device.type}, {run.accelerator.mixed_precision}"
    )
    for sentence in damage:
        run.say(sentence)
    if run.position.step:
        run.say(f"Going on after step {run.position.step:,}.")
    else:
        run.record("data", 0, {"train": len(run.train), "dev": len(run.dev), "left out": corpora.skipped})
