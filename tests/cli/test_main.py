"""How the command line ends: by an error, a closed pipe, a full disk, a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sightline.cli import main
from sightline.errors import InputError, one_line

COMMAND = [sys.executable, "-m", "sightline.cli"]


def ending_of(*arguments: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    return int(stopped.value.code or 0), *capfd.readouterr()


@pytest.mark.parametrize(
    "error",
    [RuntimeError("the \x1b[31m moon\n" + "x" * 1000), MemoryError(), KeyError("a"), ImportError("undefined symbol")],
)
def test_an_unexpected_error_is_one_sentence(
    error: Exception, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("sightline.diagnosis.diagnose", fail)
    code, out, err = ending_of("doctor", capfd=capfd)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert len(err) < 320
    assert "\x1b[31m moon" not in err
    assert type(error).__name__ in err
    assert "--debug" in err
    for arguments in (["doctor", "--debug"], ["--debug", "doctor"]):
        code, out, err = ending_of(*arguments, capfd=capfd)
        assert (code, out) == (1, "")
        assert "Traceback" in err
        assert "in fail" in err


def test_the_users_mistake_shows_its_place_only_when_asked(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = ending_of("score", "nowhere", "nowhere", capfd=capfd)
    assert (code, err) == (2, "sightline: nowhere cannot be read: No such file or directory.\n")
    code, _, err = ending_of("score", "nowhere", "nowhere", "--debug", capfd=capfd)
    assert code == 2
    assert "Traceback" in err
    assert err.endswith("sightline: nowhere cannot be read: No such file or directory.\n")


def test_messages_are_cut_and_escaped() -> None:
    assert str(InputError("a\x1b[2J\n\r\x07\x00\u202eb\ud800é 猫")) == r"a\x1b[2J\n\r\x07\x00\u202eb\ud800é 猫"
    message = str(InputError("There is no file " + "\n" * 10_000 + ": name one."))
    assert len(message) == 300
    assert message.startswith(r"There is no file \n\n")
    assert message.endswith(r"\n: name one.")
    assert " ... " in message
    assert one_line("x" * 300) == "x" * 300


@pytest.mark.parametrize("arguments", [["--help"], ["symmetrize", "LINKS", "LINKS", "--same-order"]])
def test_a_closed_pipe_is_a_good_end(arguments: list[str], tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.write_text("0-0 1-1\n" * 50_000)
    command = [*COMMAND, *(str(links) if argument == "LINKS" else argument for argument in arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", [["--version"], ["symmetrize", "LINKS", "LINKS"]])
def test_a_full_disk_is_one_sentence(arguments: list[str], tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.write_text("0-0 1-1\n" * 5)
    command = [*COMMAND, *(str(links) if argument == "LINKS" else argument for argument in arguments)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "sightline: Standard output cannot be written: No space left on device.\n",
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_quietly_and_leave_no_file(number: signal.Signals, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.write_text("0-0 1-1\n" * 5)
    command = [*COMMAND, "symmetrize", "-", str(links), "-o", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stderr is not None
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".out*")) and time.monotonic() < deadline:  # until the result is being written
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert process.stderr.read() == ""
    assert [path.name for path in tmp_path.iterdir()] == ["links"]


INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Finder())
from sightline.cli import main
main({arguments!r})
"""


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *((module, "SIGINT") for module in ("typer", "rich.console", "numba", "torch", "transformers")),
        ("numba", "SIGTERM"),
    ],
)
def test_a_signal_while_something_is_imported_is_quiet(module: str, name: str) -> None:
    arguments = {"numba": ["symmetrize", os.devnull, os.devnull], "rich.console": ["methods"]}.get(
        module, ["explain", "the cat"]
    )
    code = INTERRUPTED.format(module=module, signal=name, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stdout, done.stderr) == (128 + getattr(signal, name), "", "")
