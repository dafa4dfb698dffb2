"""Checkpoints under faults: what was complete stays complete, and what was not is not taken for one."""

import errno
import os
import re
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
from sightline.training.checkpoints import Checkpoints, Position


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


FAULTS = [
    *(("os.fsync", at) for at in range(1, 7)),
    *(("pathlib.Path.rename", at) for at in (1, 2)),
    ("torch.save", 1),
]


@pytest.mark.parametrize(("place", "at"), FAULTS)
@pytest.mark.parametrize("error", [Crash(), OSError(errno.ENOSPC, "No space left on device")])
def test_a_fault_at_any_moment_leaves_the_checkpoint_before(
    place: str, at: int, error: BaseException, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    _save(checkpoints, 10)
    owner, name = place.rsplit(".", 1)
    target = {"os": os, "pathlib.Path": Path, "torch": torch}[owner]
    caught: BaseException | None = None
    with monkeypatch.context() as patch:
        fault = _Fault(getattr(target, name), at, error)
        patch.setattr(target, name, lambda *arguments, **options: fault(*arguments, **options))
        try:
            _save(checkpoints, 20)
        except (Crash, InputError) as raised:
            caught = raised
    assert fault.left <= 0
    if isinstance(caught, InputError):
        assert "No space left on device" in str(caught)
        assert "goes on from there" in str(caught)
    # The last fsync comes after the rename, and a folder that cannot be synchronised is no failure.
    complete = checkpoints.steps()
    assert complete == ([10, 20] if caught is None or (place, at) == ("os.fsync", 6) else [10])
    assert [checkpoints.find_damage(step) for step in complete] == [None] * len(complete)
    for step in complete:
        assert checkpoints.weights([step])["weight"][0] == step
        assert checkpoints.optimizer_state(step)
    checkpoints.clear_unfinished()
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == [checkpoints.path(s).name for s in complete]
    _save(checkpoints, 30)
    assert checkpoints.steps()[-1] == 30


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _without_sums(damage: Any) -> Any:
    """Do damage to a checkpoint of a version that wrote no checksums."""

    def act(path: Path) -> None:
        (path.parent / module.SUMS).unlink()
        damage(path)

    return act


DAMAGE = [
    *((name, damage) for name in (module.WEIGHTS, module.OPTIMIZER, module.POSITION) for damage in (_cut, _flip)),
    *((name, Path.unlink) for name in (module.WEIGHTS, module.OPTIMIZER, module.POSITION)),
    *((name, _without_sums(_cut)) for name in (module.WEIGHTS, module.OPTIMIZER, module.POSITION)),
    (module.SUMS, _cut),
    (module.POSITION, lambda path: path.write_text('{"step": 20}')),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGE)
def test_the_newest_that_can_be_loaded_whole_is_found(name: str, damage: Any, checkpoints: Checkpoints) -> None:
    for step in (10, 20):
        _save(checkpoints, step)
    assert checkpoints.put_damaged_aside() == []
    damage(checkpoints.path(20) / name)
    (sentence,) = checkpoints.put_damaged_aside()
    assert re.fullmatch(
        r"The checkpoint of step 20 is damaged \(.+\) and was renamed to damaged-step-0000020\.", sentence
    )
    assert checkpoints.steps() == [10]
    _save(checkpoints, 20)
    assert checkpoints.steps() == [10, 20]
    for step in (10, 20):
        damage(checkpoints.path(step) / name) if name != module.POSITION else _cut(checkpoints.path(step) / name)
    with pytest.raises(InputError, match=r"No checkpoint in .* can be loaded whole.*train into another folder\.$"):
        checkpoints.put_damaged_aside()


def test_odd_names_are_no_checkpoints(checkpoints: Checkpoints) -> None:
    _save(checkpoints, 10)
    for name in ("step-abc", "step-0000020.writing", "step-0000030 (copy)", ".step-0000040.ab.writing"):
        (checkpoints.folder / name).mkdir()
    assert checkpoints.steps() == [10]


def test_one_without_checksums_is_loaded(checkpoints: Checkpoints) -> None:
    _save(checkpoints, 10)
    (checkpoints.path(10) / module.SUMS).unlink()
    assert checkpoints.find_damage(10) is None


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


def test_a_better_evaluation_starts_patience_anew() -> None:
    position = Position(step=1).evaluated(2.0)
    assert (position.best_loss, position.best_step) == (2.0, 1)
    for step, loss in ((2, 2.5), (3, 2.0)):
        position = Position(**(vars(position) | {"step": step})).evaluated(loss)
    assert (position.best_step, position.evaluations_since_best) == (1, 2)
    assert Position(**(vars(position) | {"step": 4})).evaluated(1.0).evaluations_since_best == 0
