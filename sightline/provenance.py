"""Where a result comes from: the versions, the commit and the machine it was measured with."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sightline.version import __version__

PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "numpy", "numba", "entmax", "sacrebleu")


def provenance() -> dict[str, Any]:
    """Return versions, commit and machine, ready for JSON; settings and seeds stand next to it in a result."""
    return {"versions": versions(), "commit": commit(), "machine": platform.machine()}


def versions() -> dict[str, str]:
    """List the versions of Python, Sightline and the installed packages that a result depends on."""
    found = {name: find_version(name) for name in PACKAGES}
    installed = {name: number for name, number in found.items() if number is not None}
    return {"python": platform.python_version(), "sightline": __version__} | installed


def find_version(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Name the commit of the source, with `+` if files were changed; None where it is no repository."""
    repository = Path(__file__).resolve().parents[1]
    if not (repository / ".git").exists():
        return None
    try:
        name = _git(repository, "rev-parse", "--short=12", "HEAD")
        changed = _git(repository, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return name + ("+" if changed else "")


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
