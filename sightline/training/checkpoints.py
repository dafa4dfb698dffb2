"""Checkpoints: complete, and never half written.

A checkpoint holds the model with its tokenizer (it loads with `sightline.load`), the optimiser and the position in the
data. The learning rate and the random numbers of a step are functions of its number, so that nothing else is needed
to go on exactly. It is written next to its place, forced to the disk, and renamed; what a crash leaves is removed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sightline.attend.calibration import GAMMA
from sightline.errors import InputError
from sightline.files import WRITING, read_lines, writing_folder
from sightline.json_files import check_fields, read_json
from sightline.models.saved_calibration import WEIGHTS as CALIBRATION

NAME = re.compile(r"step-(\d{7,})")
WEIGHTS, OPTIMIZER, POSITION = "model.safetensors", "optimizer.pt", "position.json"
SUMS = "SHA256SUMS"
"""The checksums of a checkpoint's files, as `sha256sum` writes and checks them."""
DAMAGED = "damaged-"


ADDED = ("harm", "formed")
"""What a position lacks in checkpoints of earlier versions."""


@dataclass(frozen=True)
class Position:
    """How far a run is."""

    step: int = 0
    epoch: int = 0
    batches_done: int = 0
    """Batches seen of the epoch."""
    tokens: int = 0
    """Labels seen in all."""
    seconds: float = 0.0
    data: str = ""
    """The fingerprint of the training pairs."""
    best_loss: float | None = None
    best_step: int = 0
    evaluations_since_best: int = 0
    harm: float = 0.0
    """By how much a calibration's mask raises the cross-entropy, averaged over the last steps."""
    formed: int | None = None
    """The step at which that showed that attention had formed."""

    def evaluated(self, loss: float) -> Position:
        """Take note of an evaluation."""
        if self.best_loss is None or loss < self.best_loss:
            return dataclasses.replace(self, best_loss=loss, best_step=self.step, evaluations_since_best=0)
        return dataclasses.replace(self, evaluations_since_best=self.evaluations_since_best + 1)


class Checkpoints:
    """The checkpoints of a run, one every `every` steps, of which the last few and the best are kept.

    One at another step was written because the run was stopped; it lasts until the next.
    """

    def __init__(self, folder: Path, every: int, keep: int) -> None:
        self.folder = folder
        self.every = every
        self.keep = keep

    def clear_unfinished(self) -> None:
        """Remove what an interrupted writing left."""
        for path in self.folder.glob(f"*{WRITING}"):
            shutil.rmtree(path)

    def steps(self) -> list[int]:
        """List the steps of the complete checkpoints, from the first to the last."""
        names = (NAME.fullmatch(path.name) for path in self.folder.glob("step-*"))
        return sorted(int(name[1]) for name in names if name is not None)

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:07d}"

    def save(self, position: Position, save_model: Callable[[Path], None], optimizer_state: dict[str, Any]) -> None:
        """Write a checkpoint, then remove those that are no longer kept."""
        with (
            explained_write_errors(self.folder.parent, self),
            writing_folder(self.path(position.step)) as folder,
        ):
            save_model(folder)
            torch.save(optimizer_state, folder / OPTIMIZER)
            (folder / POSITION).write_text(json.dumps(dataclasses.asdict(position)), encoding="utf-8")
            sums = {file.name: _checksum(file) for file in sorted(folder.iterdir())}
            (folder / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
        for step in self.steps():
            if step not in (*self.last(self.keep), position.best_step):
                # Renamed first: what is left after a crash must not pass for a checkpoint.
                shutil.rmtree(self.path(step).rename(self.folder / f"{step}{WRITING}"))

    def find_damage(self, step: int) -> str | None:
        """Return what is wrong with a checkpoint; None if it can be loaded whole."""
        folder = self.path(step)
        try:
            self.position(step)
            if (folder / SUMS).exists():
                sums = {
                    name: digest for digest, _, name in (line.partition("  ") for line in read_lines(folder / SUMS))
                }
                for name in {WEIGHTS, OPTIMIZER, POSITION, *sums}:
                    if name not in sums or _checksum(folder / name) != sums[name]:
                        return f"{name} does not have its checksum"
            else:  # of an earlier version
                self.weights([step])
                self.optimizer_state(step)
        except (InputError, OSError, SafetensorError) as error:
            return str(error).splitlines()[0].rstrip(".")
        except Exception as error:  # torch raises errors of many kinds for a damaged file
            return f"{OPTIMIZER} cannot be read ({type(error).__name__})"
        return None

    def put_damaged_aside(self) -> list[str]:
        """Rename the newest checkpoints until one can be loaded whole; return a sentence for each, to be shown."""
        sentences: list[str] = []
        for step in reversed(self.steps()):
            damage = self.find_damage(step)
            if damage is None:
                return sentences
            aside = self.folder / f"{DAMAGED}{self.path(step).name}"
            if aside.exists():
                shutil.rmtree(aside)
            self.path(step).rename(aside)
            sentences.append(f"The checkpoint of step {step:,} is damaged ({damage}) and was renamed to {aside.name}.")
        if sentences:
            raise InputError(
                f"No checkpoint in {self.folder} can be loaded whole: all were renamed to {DAMAGED}*. Restore one from "
                "a copy, or train into another folder."
            )
        return sentences

    def last(self, count: int) -> list[int]:
        """List the last steps that belong to the run's own rhythm, and the very last."""
        steps = self.steps()
        return [step for step in steps if step % self.every == 0 or step == steps[-1]][-count:]

    def position(self, step: int) -> Position:
        """Read how far a checkpoint is."""
        fields = get_type_hints(Position)
        needed = {name: wanted for name, wanted in fields.items() if name not in ADDED}
        stored = read_json(self.path(step) / POSITION, needed, "Remove this checkpoint.")
        try:
            stored = check_fields(stored, {name: wanted for name, wanted in fields.items() if name in stored})
        except ValueError as error:
            raise InputError(f"{self.path(step) / POSITION} is damaged: {error}. Remove this checkpoint.") from None
        if stored["step"] != step or not stored.keys() <= fields.keys():
            raise InputError(f"{self.path(step) / POSITION} is not that of step {step}. Remove this checkpoint.")
        return Position(**stored)

    def optimizer_state(self, step: int) -> dict[str, Any]:
        """Read the optimiser's state."""
        return torch.load(self.path(step) / OPTIMIZER, map_location="cpu", weights_only=True)

    def weights(self, steps: Sequence[int]) -> dict[str, Tensor]:
        """Read the weights of a checkpoint, or the mean of several; an annealing share is that of the last."""
        if len(steps) == 1:
            return _read_weights(self.path(steps[0]))
        sums: dict[str, Tensor] = {}
        for step in steps:
            last = _read_weights(self.path(step))
            for name, tensor in last.items():
                sums[name] = sums[name] + tensor if name in sums else tensor.double()
        mean = {name: (total / len(steps)).float() for name, total in sums.items()}
        return mean | {name: tensor for name, tensor in last.items() if name == GAMMA}


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of a model and of its calibration, if it has one."""
    calibration = folder / CALIBRATION
    return load_file(folder / WEIGHTS) | (load_file(calibration) if calibration.exists() else {})


def load_weights(model: Any, weights: dict[str, Tensor]) -> None:
    """Put saved weights into a model; those that are tied or fixed were not saved."""
    unexpected = model.load_state_dict(weights, strict=False).unexpected_keys
    if unexpected:
        raise InputError(f"The checkpoint has weights that the model lacks: {', '.join(unexpected)}.")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def explained_write_errors(output: Path, checkpoints: Checkpoints) -> Iterator[None]:
    """Turn a failure to write (a full disk, a missing right) into a sentence that says what is safe."""
    try:
        yield
    except (InputError, OSError, SafetensorError, RuntimeError) as error:  # torch.save raises a RuntimeError
        steps = checkpoints.steps()
        safe = f"The checkpoint of step {steps[-1]} is complete" if steps else "There is no checkpoint yet"
        # Of a message that names a long path only the ends are told: this folder is named, not the file inside it.
        reason = error.__context__ if isinstance(error, InputError) and error.__context__ is not None else error
        if isinstance(reason, OSError) and reason.strerror:
            what = f"{output} cannot be written: {reason.strerror}"
        elif isinstance(error, InputError):
            what = str(error).rstrip(".")
        else:
            what = f"{output} cannot be written: {str(error).splitlines()[0].rstrip('.')}"
        raise InputError(
            f"{what}. {safe}: make room, or allow writing, and start training again; it goes on from there."
        ) from error
