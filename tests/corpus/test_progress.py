"""Progress as a user sees it: on a terminal, with count, rate and time left; nothing elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sightline.corpus.progress import Progress

AT_ONCE = (
    "import sys; import sightline.corpus.progress as progress; progress.SECONDS_OF_SILENCE = 0.0; "
    "from sightline.cli import main; main()"
)


def on_terminal(command: list[str], output: Path) -> str:
    """Run a command whose standard error is a terminal; return what it shows."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with output.open("wb") as file:
        process = subprocess.Popen(command, stderr=theirs, stdout=file, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 1 << 16)
        except OSError:  # the process has ended
            break
    os.close(ours)
    assert process.wait() == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


@pytest.fixture
def text(tmp_path: Path) -> str:
    (tmp_path / "text").write_text("the black cat sleeps ||| el gato negro duerme\na dog ||| un perro\n" * 30_000)
    return str(tmp_path / "text")


def test_training_of_a_statistical_aligner_is_shown(text: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", AT_ONCE, "align", "--aligner", "hmm", text]
    shown = on_terminal(command, tmp_path / "out")
    assert re.search(r"Training hmm .* [\d,]+ lines [\d,]+ a second \d+:\d\d:\d\d \d+:\d\d:\d\d", shown), shown
    quiet = subprocess.run(command, capture_output=True, check=True)
    assert quiet.stderr == b""
    assert quiet.stdout.count(b"\n") == 60_000
    assert (tmp_path / "out").read_bytes() == quiet.stdout


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.time() + 20
    while not condition() and time.time() < deadline:
        time.sleep(0.01)
    assert condition()


def test_a_new_step_counts_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.corpus.progress.SECONDS_OF_SILENCE", 0.0)
    with Progress("Reading", shown=True) as shown:
        wait_for(lambda: shown._bar is not None)
        shown.advance(100, 0.5)
        shown.begin("Training", 400)
        shown.advance(50)
        assert shown._bar is not None
        task = shown._bar.tasks[0]
        assert (task.description, task.completed, task.total) == ("Training", 50, 400)


def test_a_step_may_begin_before_anything_is_shown() -> None:
    with Progress("Reading") as shown:
        shown.advance(100, 0.5)
        shown.begin("Training", 400)
        assert (shown.label, shown.done, shown.total) == ("Training", 0, 400)
