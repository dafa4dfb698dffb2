"""Starting is quick: nothing heavy is loaded before it is needed."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import sightline

HEAVY = ("torch", "transformers", "numba", "pyarrow", "pandas", "scipy", "sacrebleu", "accelerate", "fastapi")
ANSWERED_AT_ONCE = {
    "--version": 0,
    "--help": 0,
    "explain --help": 0,
    "methods": 0,
    "methods --json": 0,
    "methods nroms": 2,
    "models": 0,
    "nonsense": 2,
    "explain --nonsense text": 2,
    "explain -m ./missing text": 2,
    "explain --method nroms text": 2,
    "explain --method norms --set layr=1 text": 2,
    "explain --html missing/page.html text": 2,
    "align missing.en missing.es": 2,
    "align --aligner hmm missing.en missing.es": 2,
    "symmetrize missing.align missing.align": 2,
    "translate missing.txt": 2,
    "tags missing.txt": 2,
    "adapt missing.en missing.es -o adapted": 2,
    "score missing.align missing.gold": 2,
    "faithfulness missing.txt": 2,
    "faithfulness --methods nroms missing.txt": 2,
    "train missing.yaml": 2,
    "train wrong.yaml": 2,
    "train right.yaml --set training.stpes=3": 2,
    "study nonsense": 2,
    "serve -m ./missing": 2,
}
RIGHT = "data: {train: {source: a, target: b}, dev: {held_out: 1}}\ntraining: {steps: 1}\n"


@pytest.mark.parametrize(
    "code",
    [
        "import sightline",
        "import sightline; dir(sightline); sightline.InputError",
    ],
)
def test_heavy_packages_wait_until_they_are_needed(code: str) -> None:
    check = f"""
import atexit, os, sys
atexit.register(lambda: os._exit(17) if set(sys.modules) & {set(HEAVY)!r} else None)
{code}
"""
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_commands_answer_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    """One process asks all commands, since starting Python takes longer than what is measured."""
    (tmp_path / "right.yaml").write_text(RIGHT)
    (tmp_path / "wrong.yaml").write_text(RIGHT.replace("steps", "stpes"))
    check = f"""
import sys
from sightline.cli import main
for command, expected in {ANSWERED_AT_ONCE!r}.items():
    try:
        main(command.split())
    except SystemExit as stopped:
        heavy = [name for name in {HEAVY!r} if name in sys.modules]
        assert (stopped.code, heavy) == (expected, []), (command, stopped.code, heavy)
"""
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "bound"),
    [
        ("import sightline", 0.3),
        ("from sightline.cli import main; main(['--help'])", 1.0),
        ("from sightline.cli import main; main(['methods'])", 1.0),
    ],
)
def test_starting_takes_little_time(code: str, bound: float) -> None:
    """Processor time, not time on the clock, and twice the aim for the second: the machine may be busy."""
    used = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(used) < bound


def test_every_public_name_is_there() -> None:
    for name in sightline.__all__:
        assert getattr(sightline, name).__name__ in (name, "score_alignments" if name == "score" else name)
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        sightline.explian  # noqa: B018


def test_the_package_runs_as_a_module():
    asked = subprocess.run([sys.executable, "-m", "sightline", "--version"], capture_output=True, text=True, check=True)
    assert sightline.__version__ in asked.stdout
    wrong = subprocess.run([sys.executable, "-m", "sightline", "nonsense"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "nonsense" in wrong.stderr
