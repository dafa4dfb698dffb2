"""`sightline faithfulness`: which attribution methods name the words that a model really used."""

from __future__ import annotations

import json as json_module
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.cli.options import Address, Engine, Gpus, ModelOption, OnError, Resume, Workers
from sightline.corpus.running import Running, run_job
from sightline.corpus.shards import Row
from sightline.errors import InputError, check_names
from sightline.files import Position, check_readable, check_writable, read_lines, try_lines
from sightline.methods import METHODS, RANDOM
from sightline.models.box import BOX_MODEL
from sightline.models.names import check_model_name

if TYPE_CHECKING:
    from sightline.measures.rows import Summary


def faithfulness(
    file: Annotated[Path, typer.Argument(help="One text a line; after a tab perhaps the label or translation.")],
    model: ModelOption = BOX_MODEL,
    methods: Annotated[str, typer.Option(help="Methods, and `random`, separated by commas.")] = (
        "attention,gradient,erasure,random"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the measures of every output here, one text a line.")
    ] = None,
    resume: Resume = False,
    on_error: OnError = "stop",
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
) -> None:
    """Compare attribution methods by what deleting the words that they name does to the output.

    Works on classifiers, and word by word on translation models; without a target the model gives its own.

    Example: sightline faithfulness -m runs/imdb-lstm --methods attention,gradient,random reviews.txt
    """
    check_model_name(model)
    check_readable(file)
    names = tuple(name.strip() for name in methods.split(","))
    check_names("method", names, (*METHODS, RANDOM))
    if output is None and resume:
        raise InputError("--resume needs an output that can grow: name a file with --output.")
    if output is not None:
        check_writable(output)
    running = Running(resume, on_error, workers, engine, address, gpus)
    running.check()
    from sightline.corpus.jobs import FaithfulnessJob, ModelName

    job = FaithfulnessJob(model=ModelName(model), methods=names)
    position = Position()
    with tempfile.TemporaryDirectory() as folder:
        place = output or Path(folder, "measures.jsonl")
        run_job(job, _read_texts(file, position), place, running, position=position)
        from sightline.faithfulness import summarize_texts, to_plain

        found = summarize_texts((json_module.loads(line) for line in read_lines(place) if line), names)
    if not any(summary.defined + summary.undefined for summary in found[names[0]].values()):
        raise InputError(f"{file} has no text.")
    if json:
        print(json_module.dumps([to_plain(name, summary) for name, summary in found.items()]))
    else:
        _show(found)


def _read_texts(file: Path, position: Position) -> Iterator[Row | InputError]:
    """Yield texts, with their targets if the first of them has one."""
    columns = 0
    for number, line in enumerate(try_lines(file, position), start=1):
        if isinstance(line, InputError):
            yield line
            continue
        row = tuple(line.split("\t"))
        columns = columns or (len(row) if line.strip() else 0)
        if len(row) != columns and line.strip():
            yield InputError(
                f"{file}, line {number}: some lines have a target after a tab and some have none: give it to all of "
                "them or to none."
            )
        else:
            yield row


def _show(found: Mapping[str, Mapping[str, Summary]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "method", "comprehensiveness (high)", "sufficiency (low)", "correlation with leave-one-out", "outputs"
    )
    for name, summary in found.items():
        cells = [f"{one.mean:.3f} ± {one.deviation:.3f}" for one in summary.values()]
        outputs = max(one.defined + one.undefined for one in summary.values())
        undefined = max(one.undefined for one in summary.values())
        table.add_row(name, *cells, f"{outputs}" + (f" ({undefined} undefined)" if undefined else ""))
    Console().print(table)
