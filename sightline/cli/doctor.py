"""`sightline doctor`: what a bug report should say about this installation."""

from __future__ import annotations

import json as json_module
from typing import Annotated, Any

import typer


def doctor(json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """Print the versions and the parts of this installation, for a bug report.

    Example: sightline doctor
    """
    from sightline.diagnosis import diagnose

    found = diagnose()
    if json:
        print(json_module.dumps(found, ensure_ascii=False))
        return
    for name, value in found.items():
        print(f"{name}: {_in_words(value)}")


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(
            f"{name} ({_in_words(inner)})" if isinstance(inner, dict) else f"{name} {_in_words(inner)}"
            for name, inner in value.items()
        )
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "missing" if value is None else str(value)
