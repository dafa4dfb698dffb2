"""Starting is quick: nothing heavy is loaded before it is needed."""

import resource
import subprocess
import sys

import pytest

import sightline

HEAVY = ("torch", "transformers", "numba", "pyarrow", "pandas", "scipy")


@pytest.mark.parametrize(
    "code",
    [
        "import sightline",
        "import sightline; dir(sightline); sightline.InputError",
        "from sightline.cli import main; main(['--help'])",
        "from sightline.cli import main; main(['explain', '--help'])",
        "from sightline.cli import main; main(['--version'])",
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


@pytest.mark.parametrize(
    ("code", "bound"),
    [("import sightline", 0.3), ("from sightline.cli import main; main(['--help'])", 1.0)],
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
