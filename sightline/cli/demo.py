"""`sightline demo`: what Sightline does, in a minute and without any download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the report.")] = Path("sightline-demo"),
    quick: Annotated[bool, typer.Option("--quick", help="A little of everything, in seconds.")] = False,
    generated: Annotated[
        bool, typer.Option("--generated", help="Train a small model on a made-up language, for a minute.")
    ] = False,
) -> None:
    """Translate and align sentences, compare methods on gold alignments, carry tags over, and write a report.

    Example: sightline demo -o sightline-demo
    """
    from sightline.demo.tour import demonstrate

    demonstrate(output, quick=quick, generated=generated)
