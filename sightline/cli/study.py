"""`sightline study`: measure what a paper claims, and compare our figures with its own."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sightline.studies.running import StudyResult


def study(
    name: Annotated[str, typer.Argument(help="The study, for example sparsity; or all, with an index.")],
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
    kept: Annotated[
        Path | None,
        typer.Option("--from", help="Draw reports from kept results (study.json files, or a folder of them) instead."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
) -> None:
    """Run a study and write its report: study.json, study.md and study.html.

    Started again with the same settings, a study that was stopped goes on where it was. Processes that run different
    steps (--only) may share a folder.

    `sightline study all` runs every study and writes an index of their reports.

    Example: sightline study sparsity --preset quick -o runs/sparsity
    """
    from sightline.errors import InputError
    from sightline.studies.index import ALL, draw_studies, run_all_studies
    from sightline.studies.running import run_study

    given = {"model": model, "models": models}
    changes = {setting: value for setting, value in given.items() if value is not None}
    if (name == ALL or kept is not None) and (only or changes):
        raise InputError("--only, --model and --models belong to a single study.")
    if kept is not None:
        results = draw_studies(kept, output or Path("runs") / "studies-kept", name)
    elif name == ALL:
        results = run_all_studies(preset, data=data, output=output, quiet=quiet)
    else:
        results = [run_study(name, preset, data=data, output=output, only=only, changes=changes, quiet=quiet)]
    if json:
        documents = [result.document for result in results]
        print(json_module.dumps(documents if name == ALL else documents[0], ensure_ascii=False))
        return
    for result in results:
        _print_claims(result)
    if name == ALL and results:
        print(f"The index is in {results[0].folder.parent / 'index.html'}.")


def _print_claims(result: StudyResult) -> None:
    if result.missing:
        print(f"The report waits for: {', '.join(result.missing)}.")
        return
    for claim in result.claims:
        print(f"{claim['verdict']:<13} {claim['id']}: {claim['text']}")
        if claim["ours"]:
            print(f"{'':<13} here: {claim['ours']}; paper: {claim['paper']}")
    print(f"The report is in {result.folder / 'study.html'}.")
