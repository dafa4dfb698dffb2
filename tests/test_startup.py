"""Starting is quick: nothing heavy is loaded before it is needed."""

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


def test_every_public_name_is_there() -> None:
    for name in sightline.__all__:
        assert getattr(sightline, name).__name__ in (name, "score_alignments" if name == "score" else name)
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        sightline.explian  # noqa: B018
