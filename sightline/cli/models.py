"""`sightline models`: which models can be loaded, and what is explained of them."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer


def models(json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False) -> None:
    """List the kinds of models that Sightline explains.

    Example: sightline models
    """
    from rich.console import Console
    from rich.table import Table

    from sightline.models.names import TASK_SUMMARIES, TASKS

    rows = [(ending, task, TASK_SUMMARIES[task]) for ending, task in TASKS]
    if json:
        print(json_module.dumps([{"class": ending, "task": task, "explains": text} for ending, task, text in rows]))
        return
    table = Table("class ends with", "task", "what is explained", box=None, header_style="bold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
