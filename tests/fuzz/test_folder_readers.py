"""Readers of models', runs' and studies' folders on 300 damaged cases each: read well, or refused in one sentence."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import zoo
from fuzz.damage import damaged_folders, limited_memory, outcomes
from studies.test_running import Toy
from training.tiny import recipe

import sightline
from sightline.serve.runs import read_run
from sightline.studies.running import run_study
from sightline.text.languages import LanguageGuess, read_language_guess
from sightline.training import journal, train
from sightline.training.checkpoints import Checkpoints
from sightline.training.recipe import read_recipe
from sightline.training.run import prepare_run

CASES = 300


def check(folder: Path, names: list[str], read: Callable[[], Any], seed: int = 0) -> None:
    """Damage the files of a folder one after the other and read it each time."""
    with limited_memory(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        well, refused = outcomes(damaged_folders(folder, names, CASES, seed), lambda _: read())
    assert min(well, refused) > CASES // 100, "cases of both kinds"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train in a second."""
    folder = tmp_path_factory.mktemp("run") / "run"
    train(recipe(), output=folder, quiet=True)
    return folder


@pytest.mark.parametrize("name", ["marian", "lstm", "bert-classifier"])
def test_models(name: str, tmp_path: Path) -> None:
    model = zoo.fresh(name)
    model.save(tmp_path)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    target = zoo.targets(name)

    def read() -> None:
        why = sightline.explain(sightline.load(tmp_path), zoo.SOURCES[0], target and target[0], method="attention")
        assert why.scores.shape[-1] == len(why.source)

    check(tmp_path, names, read)


def test_language_guesses(tmp_path: Path) -> None:
    LanguageGuess(("en", "es"), {"the": -2.0, "el": 2.0}, {"th": -0.5, "as": 0.25}).save(tmp_path)

    def read() -> None:
        guess = read_language_guess(tmp_path)
        if guess is not None:
            assert guess.language_of("the cat the cat the cat") in (*guess.languages, None)

    check(tmp_path, ["language-guess.json"], read)


def test_checkpoints(run: Path, tmp_path: Path) -> None:
    pristine, work = run / "checkpoints", tmp_path / "checkpoints"
    names = sorted(str(path.relative_to(pristine)) for path in pristine.rglob("*") if path.is_file())

    def read() -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(pristine, work)
        checkpoints = Checkpoints(work, every=4, keep=2)
        checkpoints.put_damaged_aside()
        last = checkpoints.steps()[-1]
        assert checkpoints.position(last).step == last
        assert checkpoints.optimizer_state(last).keys() == {"optimizer", "scaler"}
        assert all(torch.isfinite(tensor).all() for tensor in checkpoints.weights([last]).values())

    check_well(pristine, names, read)


def check_well(folder: Path, names: list[str], read: Callable[[], Any]) -> None:
    """Damage one file after the other: there is always another checkpoint, so that none is refused."""
    with limited_memory():
        assert outcomes(damaged_folders(folder, names, CASES), lambda _: read()) == (CASES, 0)


def test_runs_that_go_on(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_board", lambda output, step: None)  # it would write on after the folder is gone
    pristine, work = tmp_path / "pristine", tmp_path / "work"
    shutil.copytree(run, pristine)
    for name in ("result.json", "model.safetensors"):
        (pristine / name).unlink()
    places = [path.relative_to(pristine) for path in pristine.rglob("*") if path.is_file()]
    names = sorted(str(path) for path in places if "tensorboard" not in path.parts)
    settings = read_recipe(recipe())

    def read() -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(pristine, work)
        prepare_run(settings, work, quiet=True)

    check(pristine, names, read)


def test_finished_runs(run: Path, tmp_path: Path) -> None:
    pristine = tmp_path / "pristine"
    shutil.copytree(run, pristine)
    names = ["result.json", "recipe.json"]
    settings = recipe()

    def read() -> None:
        train(settings, output=pristine, quiet=True)

    check(pristine, names, read)


def test_studies_that_go_on(tmp_path: Path) -> None:
    pristine, work = tmp_path / "pristine", tmp_path / "work"
    run_study(Toy().study(), "quick", output=pristine, quiet=True)
    for path in pristine.glob("study.*"):
        path.unlink()
    names = sorted(str(path.relative_to(pristine)) for path in pristine.rglob("*") if path.is_file())

    def read() -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(pristine, work)
        verdicts = [claim["verdict"] for claim in run_study(Toy().study(), "quick", output=work, quiet=True).claims]
        assert verdicts == ["holds", "does not hold", "not measured"]

    check(pristine, names, read)


def test_reports_and_logs(run: Path, tmp_path: Path) -> None:
    run_study(Toy().study(), "quick", output=tmp_path, quiet=True)
    shutil.copy(run / "log.jsonl", tmp_path)
    steps = [{"step": n, "entropy": [2.0 - n, None], "agreement with gradient": [0.5, 0.5]} for n in range(3)]
    lines = [json.dumps(step | {"agreement with gradient by chance": [0.1, 0.1]}) for step in steps]
    (tmp_path / "attention.jsonl").write_text("".join(f"{line}\n" for line in lines))
    for name in ("study.json", "log.jsonl", "attention.jsonl"):
        check(tmp_path, [name], lambda name=name: read_run(tmp_path / name))
