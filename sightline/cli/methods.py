"""`sightline methods`: what can be asked of a model, with the settings and their defaults."""

from __future__ import annotations

import json as json_module
from typing import Annotated, Any

import typer


def methods(
    names: Annotated[list[str] | None, typer.Argument(help="Describe only these methods; by default all.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the attribution methods, and explain their settings.

    Example: sightline methods norms
    """
    from rich.console import Console
    from rich.table import Table

    from sightline.methods import METHODS, find_method, resolved
    from sightline.values import describe_fields

    chosen = {name: find_method(name) for name in names or METHODS}
    meanings = {name: describe_fields(type(method.defaults)) for name, method in chosen.items()}
    if json:
        listing = {
            name: {"does": method.summary, "settings": resolved(method.defaults), "meanings": meanings[name]}
            for name, method in chosen.items()
        }
        print(json_module.dumps(listing))
        return
    console = Console()
    table = Table("method", "what it computes", box=None, header_style="bold")
    for name, method in chosen.items():
        table.add_row(name, method.summary)
    console.print(table)
    # A setting that several methods have in common is explained once.
    users: dict[tuple[str, Any, str], list[str]] = {}
    for name, method in chosen.items():
        for setting, default in resolved(method.defaults).items():
            users.setdefault((setting, default, meanings[name].get(setting, "")), []).append(name)
    if users:
        table = Table("setting=default", "what it does", "of", box=None, header_style="bold")
        for (setting, default, meaning), those in sorted(users.items(), key=lambda user: user[0][0]):
            table.add_row(f"{setting}={_written(default)}", meaning, " ".join(those))
        console.print()
        console.print(table)


def _written(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
