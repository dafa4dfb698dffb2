"""`sightline explain`: which inputs counted for each output, in the terminal, as a page or as data."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.cli.options import (
    STANDARD_OUTPUT,
    Address,
    Engine,
    Gpus,
    ModelOption,
    OnError,
    Prefix,
    Resume,
    SourceLanguage,
    TargetLanguage,
    Workers,
)
from sightline.cli.settings import read_settings
from sightline.corpus.running import Running, run_job
from sightline.corpus.shards import try_columns
from sightline.errors import InputError
from sightline.files import Position, check_readable, check_writable, write_text
from sightline.models.box import BOX_MODEL
from sightline.models.names import check_model_name

AUTO, USUAL = "auto", "norms"


def explain(
    source: Annotated[str, typer.Argument(help="The text that the model reads; with --file, a file of texts.")],
    target: Annotated[
        str | None, typer.Argument(help="The output to explain, or a file of them; by default the model's own.")
    ] = None,
    file: Annotated[
        bool, typer.Option("-f", "--file", help="Explain every line of a file, into the lines of --jsonl.")
    ] = False,
    second: Annotated[
        str | None, typer.Option(help="A second segment of the source, for encoders such as BERT.")
    ] = None,
    model: ModelOption = BOX_MODEL,
    method: Annotated[
        str, typer.Option(help="A method of `sightline methods`; auto is norms of the layer that usually reads best.")
    ] = AUTO,
    setting: Annotated[list[str], typer.Option("-s", "--set", help="A setting of the method: name=value.")] = [],  # noqa: B006
    calibration: Annotated[
        bool,
        typer.Option("--calibration", help="Show a calibrated model's attention before and after, and its mask."),
    ] = False,
    pieces: Annotated[bool, typer.Option("--pieces", help="Show sub-word pieces instead of words.")] = False,
    special: Annotated[bool, typer.Option("--special", help="Show special tokens (begin, end, language) too.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page to this file.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the heat map to this file as a vector graphic.")] = None,
    png: Annotated[Path | None, typer.Option(help="Write the heat map to this file as an image.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the scores to this file; - is standard output.")] = None,
    jsonl: Annotated[Path | None, typer.Option(help="The same as one line of JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write one row for each score to this file.")] = None,
    source_lang: SourceLanguage = None,
    target_lang: TargetLanguage = None,
    prefix: Prefix = "",
    chat: Annotated[bool, typer.Option("--chat", help="Wrap the source in the model's chat template.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing to the terminal.")] = False,
    resume: Resume = False,
    on_error: OnError = "stop",
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
) -> None:
    """Show which inputs the model used for each output.

    Example: sightline explain --method norms -s layer=2 "The cat sleeps." "El gato duerme."

    Example: sightline explain --file text.en --jsonl text.jsonl
    """
    from sightline.methods import find_method

    settings = read_settings(setting)
    usual = USUAL if method == AUTO else method
    find_method(usual).settings(usual, settings)
    if calibration and (settings or method != AUTO):
        raise InputError("--calibration shows attention and mask as they are: leave --method and --set out.")
    formats = {"svg": svg, "png": png, "jsonl": jsonl, "csv": csv}
    if calibration and any(formats.values()):
        raise InputError("--calibration has three pictures: write them with --html, or the scores with --json.")
    for path in (html, json, *formats.values()):
        if path is not None:
            check_writable(path)
    check_model_name(model)
    running = Running(resume, on_error, workers, engine, address, gpus)
    running.check()
    if file:
        if calibration or second is not None or any((html, svg, png, json, csv)):
            raise InputError("--file writes the scores of every line: name where with --jsonl, and no other format.")
        check_readable(source)
        check_readable(target)
        from sightline.corpus.jobs import ExplainJob, ModelName

        job = ExplainJob(
            model=ModelName(model, source_lang, target_lang, prefix, chat),
            method=method,
            settings=settings,
            by_words=not pieces,
            with_special=special,
        )
        position = Position()
        run_job(
            job, try_columns(source, target, position=position), jsonl or STANDARD_OUTPUT, running, position=position
        )
        return
    if running != Running():
        raise InputError("One text is explained at once, in this process: these options go with --file.")
    import sightline

    loaded = sightline.load(model, source_lang=source_lang, target_lang=target_lang, prefix=prefix, chat=chat)
    text = source if second is None else (source, second)
    why: Any
    if calibration:
        why = sightline.compare_calibration(loaded, text, target)
    else:
        why = sightline.explain(loaded, text, target, method=method, **settings)
    why = why if pieces else why.words()
    if not special and not calibration:
        why = why.without_special()
    if html is not None:
        write_text(html, why.to_html())
    if json is not None:
        write_text(json, json_module.dumps(why.to_dict(), ensure_ascii=False) + "\n")
    for format, path in formats.items():
        if path is not None:
            why.save(path, format)
    if not quiet and all(str(path) != "-" for path in (json, *formats.values())):
        why.show()
