"""`sightline tags`: text with inline markup translated, the markup put back by the alignment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.options import (
    STANDARD_OUTPUT,
    Address,
    AligningMethod,
    Beam,
    Engine,
    Gpus,
    LengthPenalty,
    ModelOption,
    OnError,
    Output,
    Prefix,
    Resume,
    SourceLanguage,
    TargetLanguage,
    Workers,
    search_options,
)
from sightline.corpus.running import Running, run_job
from sightline.corpus.shards import try_columns
from sightline.files import Position, check_readable, check_writable
from sightline.models.box import BOX_MODEL
from sightline.models.names import check_model_name


def tags(
    source: Annotated[
        Path, typer.Argument(help="Text with tags and placeholders, one sentence a line; - is standard input.")
    ],
    target: Annotated[
        Path | None, typer.Argument(help="Its translation without tags; if it is not given, the text is translated.")
    ] = None,
    model: ModelOption = BOX_MODEL,
    reverse: Annotated[
        str | None, typer.Option("-r", "--reverse", help="A model of the reverse direction, to align better.")
    ] = None,
    method: AligningMethod = "auto",
    beam: Beam = 4,
    length_penalty: LengthPenalty = 0.6,
    source_lang: SourceLanguage = None,
    target_lang: TargetLanguage = None,
    prefix: Prefix = "",
    output: Output = STANDARD_OUTPUT,
    resume: Resume = False,
    on_error: OnError = "stop",
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
) -> None:
    """Translate text with inline markup, or put the markup of a text onto a translation that is already there.

    Markup is XML and HTML tags, and placeholders such as {0}, {{name}} and %s. Tags are taken out and put back by the
    word alignment: balanced, none lost.

    Example: sightline tags page.en.txt -o page.es.txt
    """
    check_writable(output)
    check_readable(source)
    check_readable(target)
    for name in (model, reverse):
        check_model_name(name)
    running = Running(resume, on_error, workers, engine, address, gpus)
    running.check()
    from sightline.corpus.jobs import ModelName, TagsJob

    named = ModelName(model, source_lang, target_lang, prefix)
    job = TagsJob(
        model=named,
        reverse=None if reverse is None else named.reverse(reverse),
        align={"method": method},
        generation=search_options(beam, length_penalty) if target is None else {},
    )
    position = Position()
    run_job(job, try_columns(source, target, position=position), output, running, position=position)
