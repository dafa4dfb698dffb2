"""Checkpoints under faults: what was complete stays complete, and what was not is not taken for one."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from sightline.errors import InputError
from sightline.training import checkpoints as module
from sightline.training.checkpoints import Checkpoints, Position, publish, write_text


def _save(checkpoints: Checkpoints, step: int, best: int = 0, size: int = 4) -> None:
    def save_model(folder: Path) -> None:
        save_file({"weight": torch.full((size,), float(step))}, folder / module.WEIGHTS)

    position = Position(step=step, best_step=best, best_loss=1.5, tokens=10 * step, seconds=0.1 * step)
    checkpoints.save(position, save_model, {"optimizer": {"moments": torch.full((size,), step / 3)}})


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints", every=10, keep=2)


def test_what_is_saved_is_read_again_exactly(checkpoints: Checkpoints) -> None:
    _save(checkpoints, 10)
    assert checkpoints.position(10) == Position(step=10, best_loss=1.5, tokens=100, seconds=1.0)
    assert torch.equal(checkpoints.optimizer_state(10)["optimizer"]["moments"], torch.full((4,), 10 / 3))
    assert torch.equal(checkpoints.weights([10])["weight"], torch.full((4,), 10.0))


def test_the_last_ones_and_the_best_are_kept(checkpoints: Checkpoints) -> None:
    for step in (10, 20, 30, 40, 50):
        _save(checkpoints, step, best=20 if step >= 20 else 0)
    assert checkpoints.steps() == [20, 40, 50]
    assert checkpoints.last(2) == [40, 50]


def test_one_of_an_interrupted_run_lasts_until_the_next(checkpoints: Checkpoints) -> None:
    for step in (10, 20, 23):
        _save(checkpoints, step)
    assert checkpoints.last(3) == [20, 23]
    _save(checkpoints, 30)
    assert checkpoints.steps() == [20, 30]


def test_the_mean_of_checkpoints_is_the_mean_of_their_weights(checkpoints: Checkpoints) -> None:
    for step in (10, 20):
        _save(checkpoints, step)
    assert torch.equal(checkpoints.weights([10, 20])["weight"], torch.full((4,), 15.0))
    assert checkpoints.weights([10, 20])["weight"].dtype == torch.float32


class _Fault:
    """Fails at the n-th call of a function, as a crash (BaseException) or as an error."""

    def __init__(self, function: Any, at: int, error: BaseException) -> None:
        self.function, self.left, self.error = function, at, error

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise self.error
        return self.function(*arguments, **options)


class Crash(BaseException):
    """Nothing of our own may catch it, as nothing catches a power failure."""


FAULTS = [("os.fsync", at) for at in (1, 2, 3, 4, 5)] + [("pathlib.Path.rename", 1), ("torch.save", 1)]


@pytest.mark.parametrize(("place", "at"), FAULTS)
@pytest.mark.parametrize("error", [Crash(), OSError(errno.ENOSPC, "No space left on device")])
def test_a_fault_at_any_moment_leaves_the_checkpoint_before(
    place: str, at: int, error: BaseException, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    _save(checkpoints, 10)
    owner, name = place.rsplit(".", 1)
    target = {"os": os, "pathlib.Path": Path, "torch": torch}[owner]
    with monkeypatch.context() as patch:
        fault = _Fault(getattr(target, name), at, error)
        patch.setattr(target, name, lambda *arguments, **options: fault(*arguments, **options))
        with pytest.raises((Crash, InputError)) as caught:
            _save(checkpoints, 20)
    if isinstance(caught.value, InputError):
        assert "No space left on device" in str(caught.value)
        assert "goes on from there" in str(caught.value)
    # The last fsync comes after the rename: by then the new one is complete.
    complete = checkpoints.steps()
    assert complete == ([10, 20] if (place, at) == ("os.fsync", 5) else [10])
    for step in complete:
        assert checkpoints.weights([step])["weight"][0] == step
        assert checkpoints.optimizer_state(step)
    checkpoints.clear_unfinished()
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == [checkpoints.path(s).name for s in complete]
    _save(checkpoints, 30)
    assert checkpoints.steps()[-1] == 30


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    """Let the system refuse to write more, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_takes_no_more_is_explained(checkpoints: Checkpoints) -> None:
    _save(checkpoints, 10)
    with _largest_file(20_000), pytest.raises(InputError) as caught:
        _save(checkpoints, 20, size=100_000)
    assert "cannot be written" in str(caught.value)
    assert "The checkpoint of step 10 is complete" in str(caught.value)
    assert [path.name for path in checkpoints.folder.iterdir()] == [checkpoints.path(10).name]


def test_a_crash_while_an_old_one_is_removed_leaves_no_half_checkpoint(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (10, 20):
        _save(checkpoints, step)
    with monkeypatch.context() as patch:
        patch.setattr(module.shutil, "rmtree", _Fault(module.shutil.rmtree, 1, Crash()))
        with pytest.raises(Crash):
            _save(checkpoints, 30)
    assert checkpoints.steps() == [20, 30]
    checkpoints.clear_unfinished()
    assert len(list(checkpoints.folder.iterdir())) == 2


def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "small"
    write_text(path, "old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _Fault(os.fsync, 1, OSError("no")))
        with pytest.raises(OSError, match="no"):
            write_text(path, "new")
    assert path.read_text() == "old"
    write_text(path, "new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["new"]


def test_published_files_arrive_with_the_deciding_one_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(folder: Path) -> None:
        for name in ("config.json", "model", "other"):
            (folder / name).write_text("x")

    order: list[str] = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, target: (order.append(self.name), replace(self, target))[1])
    publish(write, tmp_path, last="config.json")
    assert order[-1] == "config.json"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model", "other"]


def test_a_better_evaluation_starts_patience_anew() -> None:
    position = Position(step=1).evaluated(2.0)
    assert (position.best_loss, position.best_step) == (2.0, 1)
    for step, loss in ((2, 2.5), (3, 2.0)):
        position = Position(**(vars(position) | {"step": step})).evaluated(loss)
    assert (position.best_step, position.evaluations_since_best) == (1, 2)
    assert Position(**(vars(position) | {"step": 4})).evaluated(1.0).evaluations_since_best == 0
