"""Write the pages of the guide that come from the code: commands, methods and recipes.

    python tools/write_reference.py

A test checks that the pages are as this would write them.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from sightline.cli.app import COMMANDS, app
from sightline.methods import METHODS, resolved
from sightline.training.architectures import ARCHITECTURES
from sightline.training.recipe import Recipe
from sightline.values import describe_fields

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
GENERATED = "<!-- Written by tools/write_reference.py: change the code, then run that. -->\n"


def write_commands() -> str:
    """Write the help of every command."""
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"})
    parts = [
        "# Commands\n",
        GENERATED,
        "Every command takes `--help` and `--debug`. Exit codes: 0 for success, 2 for a mistake in what was given, 1 "
        "for an error in Sightline itself, 130 after Ctrl-C.\n",
    ]
    for name in COMMANDS:
        shown = runner.invoke(app, [name, "--help"], prog_name="sightline", catch_exceptions=False)
        parts.append(f"## {name}\n\n```text\n{shown.stdout.strip()}\n```\n")
    assert set(get_command(app).commands) == set(COMMANDS)  # type: ignore[attr-defined]
    return "\n".join(parts)


def write_methods() -> str:
    """Write every method with its settings."""
    parts = [
        "# Methods and their settings\n",
        GENERATED,
        "What each method is good for, and its cost: [Methods](../methods.md). `sightline methods` prints this list.\n",
    ]
    for name, method in METHODS.items():
        parts.append(f"## {name}\n\n{method.summary}\n")
        meanings = describe_fields(type(method.defaults))
        if meanings:
            rows = [(f"`{key}`", _code(value), meanings[key]) for key, value in resolved(method.defaults).items()]
            parts.append(_table(("setting", "default", "what it does"), rows))
    return "\n".join(parts)


def write_recipes() -> str:
    """Write every key that a recipe can have."""
    parts = [
        "# Recipes\n",
        GENERATED,
        "A recipe is a YAML file ([how to write one](../tasks/train.md)). A key without a default must be given. A "
        "file that begins with `extends: another.yaml` says only what differs from that one.\n",
        "## The recipe itself\n",
        _table(("key", "default", "what it does"), [("`seed`", "`1`", "Seed of everything random in the run.")]),
    ]
    hints = typing.get_type_hints(Recipe)
    for name in ("data", "tokenizer", "training", "evaluation", "calibration", "adversary"):
        parts += _sections(name, _settings_of(hints[name]))
    parts.append(
        "## model\n\n`architecture` names the kind of model; the other keys are that kind's settings. The default is "
        "`transformer`.\n"
    )
    for name, architecture in ARCHITECTURES.items():
        parts += _sections(f"model, architecture: {name}", architecture.settings, level=3)
    return "\n".join(parts)


PAGES = {"commands.md": write_commands, "methods.md": write_methods, "recipes.md": write_recipes}


def _sections(name: str, settings: Any, level: int = 2) -> Iterator[str]:
    """Yield a section's heading, its description and the table of its keys, then the sections inside it."""
    yield f"{'#' * level} {name}\n"
    described = (settings.__doc__ or "").strip().split("\n\n")[0]
    yield " ".join(described.split()) + "\n"
    hints = typing.get_type_hints(settings)
    meanings = describe_fields(settings)
    rows, inner = [], {}
    for field in dataclasses.fields(settings):
        section = _settings_of(hints[field.name])
        if section is not None:
            inner[field.name] = section
        rows.append((f"`{field.name}`", _default(field), meanings.get(field.name, _shown(section))))
    yield _table(("key", "default", "what it does"), rows)
    done: list[Any] = []
    for key, section in inner.items():
        if section not in done:
            names = ", ".join(f"{name}.{other}" for other, one in inner.items() if one is section)
            yield from _sections(names if key in names else f"{name}.{key}", section, level + 1)
            done.append(section)


def _settings_of(hint: Any) -> Any:
    """Find the settings class in a type, if there is one."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return next((option for option in options if dataclasses.is_dataclass(option)), None)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return _code(field.default)
    return "" if field.default_factory is dataclasses.MISSING else "see below"


def _shown(section: Any) -> str:
    return "" if section is None else "A section of its own, below."


def _code(value: object) -> str:
    if value is None:
        return "none"
    plain = str(value).lower() if isinstance(value, bool) else str(list(value) if isinstance(value, tuple) else value)
    return f"`{plain}`"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def pages() -> Mapping[str, str]:
    """Return what the pages should hold, by their name."""
    return {name: write() for name, write in PAGES.items()}


def main() -> None:
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
