"""`sightline translate`: translations, and with them the alignment of their words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.options import (
    STANDARD_OUTPUT,
    Address,
    AligningMethod,
    Beam,
    Dtype,
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


def translate(
    source: Annotated[Path, typer.Argument(help="The text to translate, one sentence a line; - is standard input.")],
    model: ModelOption = BOX_MODEL,
    align: Annotated[
        bool, typer.Option("--align", help="Write `translation ||| 0-0 1-2`, words counted from 0.")
    ] = False,
    method: AligningMethod = "auto",
    beam: Beam = 4,
    length_penalty: LengthPenalty = 0.6,
    source_lang: SourceLanguage = None,
    target_lang: TargetLanguage = None,
    prefix: Prefix = "",
    dtype: Dtype = None,
    output: Output = STANDARD_OUTPUT,
    json: Annotated[bool, typer.Option("--json", help="Write JSON lines, links with confidences.")] = False,
    resume: Resume = False,
    on_error: OnError = "stop",
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
) -> None:
    """Translate text, sentence by sentence, and align the words.

    Example: sightline translate --align text.en -o text.es
    """
    check_writable(output)
    check_readable(source)
    check_model_name(model)
    running = Running(resume, on_error, workers, engine, address, gpus)
    running.check()
    from sightline.corpus.jobs import ModelName, TranslateJob

    job = TranslateJob(
        model=ModelName(model, source_lang, target_lang, prefix, dtype=dtype),
        align={"method": method},
        generation=search_options(beam, length_penalty),
        with_links=align,
        as_json=json,
    )
    position = Position()
    run_job(job, try_columns(source, position=position), output, running, position=position)
