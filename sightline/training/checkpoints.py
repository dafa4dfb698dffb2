"""Checkpoints: complete, and never half written.

A checkpoint holds the model with its tokenizer (it loads with `sightline.load`), the optimiser and the position in the
data. The learning rate and the random numbers of a step are functions of its number, so that nothing else is needed
to go on exactly. It is written beside its place, forced to the disk, and renamed; what a crash leaves is removed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sightline.attend.calibration import GAMMA
from sightline.errors import InputError
from sightline.models.adapter import WEIGHTS as CALIBRATION

PREFIX = "step-"
WRITING = ".writing"
WEIGHTS, OPTIMIZER, POSITION = "model.safetensors", "optimizer.pt", "position.json"


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

    def evaluated(self, loss: float) -> Position:
        """Take note of an evaluation."""
        if self.best_loss is None or loss < self.best_loss:
            return dataclasses.replace(self, best_loss=loss, best_step=self.step, evaluations_since_best=0)
        return dataclasses.replace(self, evaluations_since_best=self.evaluations_since_best + 1)


class Checkpoints:
    """The checkpoints of a run, one `every` so many steps, of which the last few and the best are kept.

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
        names = (path.name for path in self.folder.glob(f"{PREFIX}*"))
        return sorted(int(name.removeprefix(PREFIX)) for name in names if not name.endswith(WRITING))

    def path(self, step: int) -> Path:
        return self.folder / f"{PREFIX}{step:07d}"

    def save(self, position: Position, save_model: Callable[[Path], None], optimizer_state: dict[str, Any]) -> None:
        """Write a checkpoint, then remove those that are no longer kept."""

        def write(folder: Path) -> None:
            save_model(folder)
            torch.save(optimizer_state, folder / OPTIMIZER)
            (folder / POSITION).write_text(json.dumps(dataclasses.asdict(position)), encoding="utf-8")

        with explained_write_errors(self.folder.parent, self):
            write_folder(self.path(position.step), write)
        for step in self.steps():
            if step not in (*self.last(self.keep), position.best_step):
                # Renamed first: what is left after a crash must not pass for a checkpoint.
                shutil.rmtree(self.path(step).rename(self.folder / f"{step}{WRITING}"))

    def last(self, count: int) -> list[int]:
        """List the last steps that belong to the run's own rhythm, and the very last."""
        steps = self.steps()
        return [step for step in steps if step % self.every == 0 or step == steps[-1]][-count:]

    def position(self, step: int) -> Position:
        """Read how far a checkpoint is."""
        return Position(**json.loads((self.path(step) / POSITION).read_text(encoding="utf-8")))

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


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a folder, which gets its name only when it is complete and on the disk."""
    unfinished = path.with_name(path.name + WRITING)
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(parents=True)
    try:
        write(unfinished)
        for file in unfinished.iterdir():
            _force_to_disk(file)
        _force_to_disk(unfinished)
        unfinished.rename(path)
        _force_to_disk(path.parent)
    except Exception:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def publish(write: Callable[[Path], None], output: Path, last: str) -> None:
    """Let `write` make some files and put them into a folder in use, the one named `last` at the end."""
    staged = output / "staged"
    if staged.exists():
        shutil.rmtree(staged)
    write_folder(staged, write)
    for file in sorted(staged.iterdir(), key=lambda file: file.name == last):
        file.replace(output / file.name)
    staged.rmdir()


def write_text(path: Path, text: str) -> None:
    """Write a small file so that it is either the old one or the new one."""
    unfinished = path.with_name(path.name + WRITING)
    try:
        unfinished.write_text(text, encoding="utf-8")
        _force_to_disk(unfinished)
        unfinished.replace(path)
    except Exception:
        unfinished.unlink(missing_ok=True)
        raise


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained_write_errors(output: Path, checkpoints: Checkpoints) -> Iterator[None]:
    """Turn a failure to write (a full disk, a missing right) into a sentence that says what is safe."""
    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:  # torch.save raises a RuntimeError on a full disk
        steps = checkpoints.steps()
        safe = f"The checkpoint of step {steps[-1]} is complete" if steps else "There is no checkpoint yet"
        raise InputError(
            f"{output} cannot be written: {str(error).splitlines()[0]}. {safe}; make room (or give the right to "
            "write) and start the same training again: it goes on from there."
        ) from error
