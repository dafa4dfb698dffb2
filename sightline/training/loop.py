"""The training loop, on Accelerate: one process, or several under `accelerate launch`.

A run is determined by its recipe: the order of batches by seed and epoch, the random numbers of a step by seed, step
and process, the learning rate by the step. Stopped at any moment and started again, it ends with the same weights. The
batch of an update is shared out among processes and its loss divided by the labels of all of them, so that the
number of processes changes nothing but the speed.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from jaxtyping import Int

from sightline.errors import InputError
from sightline.files import writing_into
from sightline.json_files import check_fields, read_json, write_json
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.provenance import versions
from sightline.training.adapting import add_adapter
from sightline.training.batches import EncodedPairs, batches_from, epoch_batches
from sightline.training.calibration import FORMED, average_harm, mask_names
from sightline.training.checkpoints import Position, load_weights
from sightline.training.dead_masks import MaskWatch
from sightline.training.evaluation import Measured
from sightline.training.interruption import Interruption
from sightline.training.journal import duration
from sightline.training.optimization import learning_rate, set_learning_rate
from sightline.training.processes import greatest
from sightline.training.readouts import keep_readouts
from sightline.training.recipe import Recipe, read_recipe
from sightline.training.run import Run, prepare_run, save_checkpoint
from sightline.training.run_folder import RESULT, save_model

Callback = Callable[[int, LoadedModel], None]
"""Called with the step and the model before the first update and after every one; it cannot disturb the run."""


@dataclass(frozen=True)
class TrainingResult:
    """A trained model's folder, which `sightline.load` takes, and what it does on held-out text."""

    folder: Path
    step: int
    reason: str
    """Why the training ended."""
    weights: str
    """Which checkpoints the weights come from."""
    parameters: int
    minutes: float
    dev: Measured
    test: Measured | None
    masks: tuple[float, ...] = ()
    """The mean mask of each layer at the end, if the model is calibrated."""
    warnings: tuple[str, ...] = ()
    """What went wrong without stopping the training, such as a mask that died."""


def train(
    recipe: str | Path | dict[str, Any],
    *,
    output: str | Path | None = None,
    set: Sequence[str] | dict[str, Any] = (),
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
) -> TrainingResult:
    """Train the model of a recipe into a folder; a run that was interrupted there goes on.

    `set` changes keys of the recipe: `["training.steps=100"]` or `{"training.steps": 100}`. The folder is by default
    `runs/` with the recipe's name.
    """
    if output is None:
        if isinstance(recipe, dict):
            raise InputError("A recipe without a file needs a folder: train(recipe, output=...).")
        output = Path("runs") / Path(recipe).stem
    settings = read_recipe(recipe, set)
    finished = _finished_result(settings, Path(output))
    if finished is not None:
        return finished
    run = prepare_run(settings, Path(output), quiet)
    with Interruption() as interruption:
        position, reason = run_updates(run, callbacks, interruption)
    return _finish(run, position, reason)


def run_updates(run: Run, callbacks: Sequence[Callback], interruption: Interruption) -> tuple[Position, str]:
    """Update the model until a reason to stop is there; give the last position and the reason."""
    settings = run.recipe.training
    position = run.position
    batches = batches_from(
        run.train,
        settings.batch_tokens,
        run.recipe.seed,
        position.epoch,
        position.batches_done,
        settings.batch_texts,
    )
    meter = _Meter(run, position)
    if position.step == 0:
        _call(run, callbacks, position)

    while (reason := _reason_to_stop(run, position)) is None:
        epoch, batches_done, rows = next(batches)
        counts, norm = update(run, position.step + 1, rows, position.formed)
        position = dataclasses.replace(
            _note_harm(run, position, counts),
            step=position.step + 1,
            epoch=epoch,
            batches_done=batches_done,
            tokens=position.tokens + run.train.target_tokens(rows),
            seconds=meter.seconds(),
        )
        meter.add(counts)
        _call(run, callbacks, position)
        if position.step % settings.log_every == 0:
            meter.report(position, norm)
        if position.step % settings.checkpoint_every == 0 or _reason_to_stop(run, position):
            position = _evaluate(run, position)
            save_checkpoint(run, position)
        elif greatest(run.accelerator, float(interruption.requested)):
            save_checkpoint(run, position)
            run.folder.say(
                f"Stopped at step {position.step:,}. Start the same training again and it goes on from here."
            )
            interruption.pass_on()
    return position, reason


def update(run: Run, step: int, rows: Int[np.ndarray, " row"], formed: int | None = None) -> tuple[torch.Tensor, float]:
    """Make one update from the pairs of a batch; return the counts of this process and the gradient's norm.

    `formed` is the step at which attention had formed, if it has.
    """
    settings, accelerator = run.recipe.training, run.accelerator
    # The generator's state is a function of the step: nothing to save, and nothing between two steps changes it.
    torch.manual_seed(_seed(run.recipe.seed, step, accelerator.process_index))
    run.set_progress(step, formed)
    run.objective.train()
    counts = compute_gradients(run, rows)
    norm = clip_gradients(run, settings.clip or math.inf)
    if not math.isfinite(norm) and not _is_skipped(run, counts):
        raise InputError(_explain_not_finite(run, step, counts))
    set_learning_rate(run.optimizer, learning_rate(step, settings))
    run.optimizer.step()
    run.optimizer.zero_grad()
    return counts, norm


def clip_gradients(run: Run, most: float) -> float:
    """Clip the gradient's norm, a mask's apart from the model's; return the norm of all as it was."""
    first, *others = run.parameters_clipped_together
    # Accelerate also undoes the scaling of 16-bit gradients, of all at once.
    norms = [run.accelerator.clip_grad_norm_(first, most)]
    norms += [torch.nn.utils.clip_grad_norm_(group, most) for group in others]
    return math.hypot(*(float(norm) for norm in norms))


def compute_gradients(run: Run, rows: Int[np.ndarray, " row"]) -> torch.Tensor:
    """Add up the gradient of the mean loss of a batch over all processes and passes; give this process's counts."""
    accelerator = run.accelerator
    processes, labels = accelerator.num_processes, run.train.target_tokens(rows)
    passes = min(run.recipe.training.accumulate, math.ceil(len(rows) / processes))
    total = torch.zeros(len(run.counted), device=accelerator.device)
    for number in range(passes):
        share = rows[number * processes + accelerator.process_index :: passes * processes]
        weight = processes / labels  # Accelerate averages gradients over processes
        if not len(share):  # every process must take part, if only with nothing
            share, weight = rows[:1], 0.0
        is_last = number == passes - 1
        with nullcontext() if is_last else accelerator.no_sync(run.objective):
            loss, counts = run.objective(**run.train.tensors(share, accelerator.device))
            accelerator.backward(loss * weight)
        if weight:
            total += counts
    return total


def _note_harm(run: Run, position: Position, counts: torch.Tensor) -> Position:
    """Average the harm that a calibration's mask does, until it shows that attention has formed."""
    if run.loaded.calibration is None or position.formed is not None:
        return position
    cross_entropy, _, labels, perturbed, *_ = run.accelerator.reduce(counts, "sum").tolist()
    harm = average_harm(position.harm, (perturbed - cross_entropy) / labels)
    return dataclasses.replace(position, harm=harm, formed=position.step + 1 if harm > FORMED else None)


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _call(run: Run, callbacks: Sequence[Callback], position: Position) -> None:
    if run.accelerator.is_main_process:
        for callback in callbacks:
            callback(position.step, run.loaded)


def _reason_to_stop(run: Run, position: Position) -> str | None:
    settings = run.recipe.training
    if position.step >= settings.steps:
        return f"all {settings.steps:,} steps are done"
    if settings.minutes is not None and position.seconds >= settings.minutes * 60:
        return f"the {settings.minutes:g} minutes are used"
    if settings.patience is not None and position.evaluations_since_best >= settings.patience:
        return f"the loss was no better in {settings.patience} evaluations"
    return None


def _is_skipped(run: Run, counts: torch.Tensor) -> bool:
    """Return whether only the scaled gradient of 16-bit numbers is too large: its scaler then skips the update."""
    return run.accelerator.scaler is not None and not greatest(run.accelerator, float(not counts[0].isfinite()))


def _explain_not_finite(run: Run, step: int, counts: torch.Tensor) -> str:
    loss = float(counts[0] / counts[2].clamp(min=1))
    what = f"The loss is {loss}" if not math.isfinite(loss) else f"The gradient is not finite (the loss is {loss:.3g})"
    steps = run.folder.checkpoints.steps()
    kept = f"the last good checkpoint, of step {steps[-1]}, is kept" if steps else "there was no checkpoint yet"
    return (
        f"{what} at step {step}, with a learning rate of {learning_rate(step, run.recipe.training):.2g}. Training has "
        f"stopped and {kept} in {run.folder.path}. Lower training.learning_rate, lengthen training.warmup or lower "
        "training.clip, and train into a new folder."
    )


def _evaluate(run: Run, position: Position) -> Position:
    """Measure the model on dev, and say so."""
    loss, accuracy = run.measure(run.dev)
    figures: dict[str, Any] = {"loss": loss, "accuracy": accuracy}
    sentences = run.recipe.evaluation.bleu_sentences
    if sentences:
        bleu, figures["signature"] = run.measure_bleu(run.dev_pairs[:sentences], {"num_beams": 1})
        figures |= {f"bleu {direction}": score for direction, score in bleu.items()}
    position = position.evaluated(loss)
    run.folder.record("dev", position.step, figures)
    best = " (best)" if position.best_step == position.step else ""
    extra = "".join(f"  {name} {value:.1f}" for name, value in figures.items() if name.startswith("bleu"))
    run.folder.say(f"step {position.step:,}  dev loss {loss:.3f}{best}  accuracy {accuracy:.3f}{extra}")
    return position


class _Meter:
    """Counts between two reports: loss, tokens a second, time left."""

    def __init__(self, run: Run, position: Position) -> None:
        self.run = run
        self.begun = time.monotonic() - position.seconds
        self.counts = torch.zeros(len(run.counted), device=run.accelerator.device)
        self.last = position
        self.watch = _watch_masks(run)

    def seconds(self) -> float:
        """Return the run's time so far, the same in every process."""
        return greatest(self.run.accelerator, time.monotonic() - self.begun)

    def add(self, counts: torch.Tensor) -> None:
        self.counts += counts

    def report(self, position: Position, norm: float) -> None:
        """Report what happened since the last report."""
        settings = self.run.recipe.training
        cross_entropy, correct, labels, *more = self.run.accelerator.reduce(self.counts, "sum").tolist()
        self.counts.zero_()
        seconds = max(position.seconds - self.last.seconds, 1e-9)
        speed = (position.tokens - self.last.tokens) / seconds
        left = (settings.steps - position.step) * seconds / max(position.step - self.last.step, 1)
        if settings.minutes is not None:
            left = max(min(left, settings.minutes * 60 - position.seconds), 0.0)
        self.last = position
        figures = {
            "epoch": position.epoch,
            "loss": cross_entropy / labels,
            "accuracy": correct / labels,
            **{name: value / labels for name, value in zip(self.run.counted[3:], more, strict=True)},
            "gradient_norm": norm,
            "learning_rate": learning_rate(position.step, settings),
            "tokens_per_second": speed,
            "seconds": position.seconds,
        }
        self.run.folder.record("train", position.step, figures)
        self.run.folder.say(
            f"step {position.step:,}/{settings.steps:,}  epoch {position.epoch + 1}  loss {figures['loss']:.3f}  "
            f"{speed:,.0f} tokens/s  at most {duration(left)} left"
        )
        for warning in self.watch.observe(position.step, figures) if self.watch is not None else ():
            self.run.folder.record("warning", position.step, {"text": warning})
            self.run.folder.say(f"Warning: {warning}")


def _watch_masks(run: Run) -> MaskWatch | None:
    """Watch the masks of a calibrated model, from where the log of an interrupted run ends."""
    calibration, settings = run.loaded.calibration, run.recipe.training
    if calibration is None or run.folder.journal is None:
        return None
    epoch = len(epoch_batches(run.train, settings.batch_tokens, run.recipe.seed, 0, settings.batch_texts))
    watch = MaskWatch(calibration.settings, len(calibration.layers), epoch, settings.steps)
    for record in run.folder.journal.records("train"):
        watch.observe(record["step"], record)  # what it found then is in the log
    return watch


def _finished_result(recipe: Recipe, output: Path) -> TrainingResult | None:
    """Read the result of a run that this very recipe has finished."""
    path = output / RESULT
    if not path.exists():
        return None
    remedy = "Remove it and start the same training again: it is measured again."
    fields = get_type_hints(TrainingResult) | {"dev": dict, "test": dict | None}
    fields = {name: wanted for name, wanted in fields.items() if name not in ("folder", "masks", "warnings")}
    stored = read_json(path, fields | {"recipe": dict}, remedy)
    if read_recipe(stored["recipe"]).to_dict() != recipe.to_dict():
        return None
    figures = {name: stored[name] for name in fields}
    for role in ("dev", "test"):
        figures[role] = figures[role] and _read_measured(path, figures[role], remedy)
    for name, kind in (("masks", int | float), ("warnings", str)):
        values = stored.get(name, [])
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
            raise InputError(f"{path} is damaged: its field {name!r} is not a list of such values. {remedy}")
        figures[name] = tuple(values)
    return TrainingResult(folder=output, **figures)


def _read_measured(path: Path, plain: dict[str, Any], remedy: str) -> Measured:
    fields = get_type_hints(Measured) | {"bleu": dict}
    try:
        checked = check_fields(plain, fields)
        checked["bleu"] = check_fields(checked["bleu"], dict.fromkeys(checked["bleu"], float))
        return Measured(**{name: checked[name] for name in fields})
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}. {remedy}") from None


def _finish(run: Run, position: Position, reason: str) -> TrainingResult:
    """Choose the weights, measure them, and put the model into the folder."""
    run.folder.say(f"Training ends: {reason}.")
    weights = _choose_weights(run, position)
    dev = _measure_fully(run, "dev", run.dev, run.dev_pairs, position)
    test = _measure_fully(run, "test", run.test, run.test_pairs, position) if run.test is not None else None
    result = TrainingResult(
        folder=run.folder.path,
        step=position.step,
        reason=reason,
        weights=weights,
        parameters=sum(parameter.numel() for parameter in run.trained_parameters),
        minutes=position.seconds / 60,
        dev=dev,
        test=test,
        **_last_masks(run),
    )
    if run.accelerator.is_main_process:
        figures = dataclasses.asdict(result)
        del figures["folder"]
        with run.folder.explained_errors():
            with writing_into(run.folder.path, last="config.json") as folder:
                save_model(run.loaded, folder)
            if run.loaded.translates:
                _prepare_alignments(run)
            write_json(run.folder.path / RESULT, figures | {"recipe": run.recipe.to_dict(), "versions": versions()})
    run.accelerator.wait_for_everyone()
    run.folder.say(f"The model is in {run.folder.path}.")
    return result


def _prepare_alignments(run: Run) -> None:
    """Choose how alignments are read off the trained model, and train an adapter if the recipe asks for one."""
    data, settings = run.recipe.data, run.recipe.alignment
    model = load(run.folder.path, source_lang=data.languages[0] if data.bidirectional else None)
    for choice in keep_readouts(model, run.dev_pairs):
        run.folder.say(f"Alignments: {choice}")
    if settings is not None:
        pairs, folder = run.alignment_pairs, run.folder
        add_adapter(model, pairs, folder.path, rounds=settings.rounds, seed=run.recipe.seed, say=folder.say)


def _last_masks(run: Run) -> dict[str, tuple[Any, ...]]:
    """Read from the log how the masks of a calibrated model ended, and what was found wrong."""
    calibration = run.loaded.calibration
    if calibration is None or run.folder.journal is None:
        return {}
    last = run.folder.journal.records("train")[-1:]
    means = [record[name] for record in last for name in mask_names(len(calibration.layers))]
    warnings = [record["text"] for record in run.folder.journal.records("warning")]
    return {"masks": tuple(means), "warnings": tuple(warnings)}


def _choose_weights(run: Run, position: Position) -> str:
    """Put the mean of the last checkpoints into the model, or the best one if its loss is lower."""
    last = _without_damaged(run, run.folder.checkpoints.last(run.recipe.training.average))
    if not last:
        raise InputError(
            f"No checkpoint in {run.folder.checkpoints.folder} can be loaded whole: train into another folder."
        )
    choices = {f"mean of steps {', '.join(map(str, last))}" if len(last) > 1 else f"step {last[0]}": last}
    if position.best_step in run.folder.checkpoints.steps() and [position.best_step] != last:
        whole = _without_damaged(run, [position.best_step])
        choices |= {f"step {position.best_step}, the best": whole} if whole else {}
    losses = {}
    for name, steps in choices.items():
        load_weights(run.model, run.folder.checkpoints.weights(steps))
        losses[name], _ = run.measure(run.dev)
        run.folder.say(f"{name}: dev loss {losses[name]:.3f}")
    best = min(losses, key=losses.__getitem__)
    load_weights(run.model, run.folder.checkpoints.weights(choices[best]))
    return best


def _without_damaged(run: Run, steps: Sequence[int]) -> list[int]:
    """Return the checkpoints that can be loaded whole, and say which cannot."""
    whole = []
    for step in steps:
        damage = run.folder.checkpoints.find_damage(step)
        if damage is None:
            whole.append(step)
        else:
            run.folder.say(f"The checkpoint of step {step:,} is damaged ({damage}): its weights are not used.")
    return whole


def _measure_fully(
    run: Run, role: str, pairs: EncodedPairs, texts: list[tuple[str, str]], position: Position
) -> Measured:
    """Measure loss, accuracy and, of a translation model, BLEU with the recipe's beam."""
    settings = run.recipe.evaluation
    loss, accuracy = run.measure(pairs)
    if run.loaded.classifies:
        return Measured(loss, accuracy)
    generation = {"num_beams": settings.beam, "length_penalty": settings.length_penalty}
    measured = Measured(loss, accuracy, *run.measure_bleu(texts, generation))
    run.folder.record(f"final {role}", position.step, dataclasses.asdict(measured))
    return measured
