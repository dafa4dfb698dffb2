"""What commands write: the target is checked before the work, and a failure leaves the old file."""

import errno
import os
from pathlib import Path

import pytest
import zoo

from sightline.cli import main

BAD = "/no/such/folder/file"
NO_MODEL = ["-m", "/no/such/model"]
COMMANDS = [
    ["explain", *NO_MODEL, "a", "b", "--json", BAD],
    ["explain", *NO_MODEL, "a", "b", "--html", BAD],
    ["align", *NO_MODEL, "no-text", "-o", BAD],
    ["align", "--aligner", "ibm1", "no-text", "-o", BAD],
    ["align", "--aligner", "ibm1", "no-text", "--save", BAD],
    ["symmetrize", "no-links", "no-links", "-o", BAD],
    ["translate", *NO_MODEL, "no-text", "-o", BAD],
    ["tags", *NO_MODEL, "no-text", "-o", BAD],
    ["demo", "-o", "/dev/null/demo"],
    ["study", "sparsity", "-o", "/dev/null/study", "--quiet"],
    ["train", "RECIPE", "-o", "/dev/null/run", "--quiet"],
]


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return int(stopped.value.code or 0)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_target_is_checked_before_anything_else(command: list[str], capfd, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "data: {train: {source: none, target: none}, dev: {source: none, target: none}}\ntraining: {steps: 1}\n"
    )
    assert run(*(recipe if argument == "RECIPE" else argument for argument in command)) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "cannot be written" in err.replace("\n", " ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model")
    zoo.fresh("marian").save(path)
    return str(path)


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_full_disk_leaves_what_was_there(option: str, folder: str, tmp_path: Path, capfd, monkeypatch) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert run("explain", "-m", folder, "a", "b", option, path, "--quiet") == 2
    assert "No space left on device" in capfd.readouterr().err
    assert path.read_text() == "old"
    assert run("explain", "-m", folder, "a", "b", option, path, "--quiet") == 0
    assert len(path.read_text()) > 100
    assert os.listdir(tmp_path) == ["file"]


def test_a_device_stays_a_device(folder: str) -> None:
    before = os.stat("/dev/null")
    assert run("explain", "-m", folder, "a", "b", "--json", "/dev/null", "--quiet") == 0
    assert os.stat("/dev/null").st_ino == before.st_ino
