"""`sightline methods`: what can be asked of a model, with the settings and their defaults."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer


def methods(json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the attribution methods and their settings.

    Example: sightline methods
    """
    from rich.console import Console
    from rich.table import Table

    from sightline.methods import METHODS, resolved

    if json:
        listing = {
            name: {"does": method.summary, "settings": resolved(method.defaults)} for name, method in METHODS.items()
        }
        print(json_module.dumps(listing))
        return
    table = Table("method", "what it gives", "settings and their defaults", box=None, header_style="bold")
    for name, method in METHODS.items():
        settings = " ".join(f"{key}={value}" for key, value in resolved(method.defaults).items())
        table.add_row(name, method.summary, settings)
    Console().print(table)
