"""`sightline study`: measure what a paper claims, and compare our figures with its own."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer


def study(
    name: Annotated[str, typer.Argument(help="The study, for example sparsity.")],
    preset: Annotated[
        str, typer.Option("--preset", help="quick (minutes), standard (a night on 2 cores) or paper (for a GPU).")
    ] = "quick",
    data: Annotated[Path | None, typer.Option("--data", help="The folder of real corpora.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The folder; by default runs/NAME-PRESET.")] = (
        None
    ),
    only: Annotated[
        str, typer.Option("--only", help="Run only the steps whose names start with this; skip the report.")
    ] = "",
    model: Annotated[
        str | None, typer.Option("--model", help="norms: the encoder, a folder or a name on the hub.")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            help="A folder of translation models; norms: German to English; saliency: named as their recipes.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
) -> None:
    """Run a study and write its report: study.json, study.md and study.html.

    Started again with the same settings, a study that was stopped goes on where it was. Processes that run different
    steps (--only) may share a folder.

    Example: sightline study sparsity --preset quick -o runs/sparsity
    """
    from sightline.studies.running import run_study

    given = {"model": model, "models": models}
    changes = {setting: value for setting, value in given.items() if value is not None}
    result = run_study(name, preset, data=data, output=output, only=only, changes=changes, quiet=quiet)
    if json:
        print(json_module.dumps(result.document, ensure_ascii=False))
        return
    if result.missing:
        print(f"The report waits for: {', '.join(result.missing)}.")
        return
    for claim in result.claims:
        print(f"{claim['verdict']:<13} {claim['id']}: {claim['text']}")
        if claim["ours"]:
            print(f"{'':<13} here: {claim['ours']}; paper: {claim['paper']}")
    print(f"The report is in {result.folder / 'study.html'}.")
