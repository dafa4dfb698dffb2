"""`sightline align`: word alignments of parallel text, by a translation model or a statistical aligner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.cli.options import (
    STANDARD_OUTPUT,
    Address,
    Dtype,
    Engine,
    Gpus,
    OnError,
    OptionalModelOption,
    Output,
    Prefix,
    Resume,
    SourceLanguage,
    TargetLanguage,
    Workers,
)
from sightline.cli.settings import read_settings
from sightline.corpus.running import Running, run_job
from sightline.errors import InputError
from sightline.files import STANDARD_INPUT, Position, check_readable, check_writable, write_text
from sightline.models.box import BOX_MODEL
from sightline.models.names import check_model_name

if TYPE_CHECKING:
    from sightline.alignment.columns import Alignments
    from sightline.alignment.links import Alignment
    from sightline.verbs.readout import Choice

MOST_DRAWN = 100


def align(
    source: Annotated[Path, typer.Argument(help="The source, one sentence a line; - is standard input.")],
    target: Annotated[
        Path | None, typer.Argument(help="The target; without it SOURCE has both sides, with a tab or ||| between.")
    ] = None,
    model: OptionalModelOption = None,
    reverse: Annotated[
        str | None, typer.Option("-r", "--reverse", help="A model of the reverse direction; en-es is its own.")
    ] = None,
    one_way: Annotated[
        bool, typer.Option("--one-way", help="Use one direction only, of a model that translates both ways.")
    ] = False,
    method: Annotated[str, typer.Option(help="auto, similarity, or one of `sightline methods`.")] = "auto",
    effort: Annotated[
        str, typer.Option(help="fast, or best: try SmoothGrad saliency too, which takes about 30 times as long.")
    ] = "fast",
    choose_again: Annotated[
        bool, typer.Option("--choose-again", help="Choose how to read the model anew, whatever is remembered.")
    ] = False,
    setting: Annotated[list[str], typer.Option("-s", "--set", help="A setting of the method: layer=2.")] = [],  # noqa: B006
    extraction: Annotated[
        str | None, typer.Option(help="argmax, argmax-words, pieces, threshold, mutual, mutual-pieces or softmax.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Of the extractions threshold and softmax.")] = None,
    symmetrize: Annotated[
        str | None, typer.Option(help="Rule that joins two directions: see `sightline symmetrize --help`.")
    ] = None,
    join: Annotated[
        str, typer.Option(help="What of two directions is joined: their scores first, or their links alone.")
    ] = "scores",
    min_confidence: Annotated[float, typer.Option(help="Leave out links that are less sure, from 0 to 1.")] = 0.0,
    with_aligner: Annotated[
        str | None,
        typer.Option(
            help="Join the model with a statistical aligner: diagonal, hmm, ibm1, or the file of a saved one."
        ),
    ] = None,
    aligner: Annotated[
        str | None, typer.Option(help="A statistical aligner instead of a model: ibm1, diagonal, hmm or eflomal.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the trained statistical aligner in this file.")] = None,
    load: Annotated[Path | None, typer.Option(help="Align with a statistical aligner that was saved.")] = None,
    source_lang: SourceLanguage = None,
    target_lang: TargetLanguage = None,
    prefix: Prefix = "",
    dtype: Dtype = None,
    format: Annotated[
        str, typer.Option(help="Format of the result: pharaoh, naacl, jsonl or words (cat–gato).")
    ] = "pharaoh",
    confidences: Annotated[bool, typer.Option("--confidences", help="Write i-j:c, with c how sure it is.")] = False,
    explain_choice: Annotated[
        bool, typer.Option("--explain-choice", help="Show, on standard error, the candidates and their scores.")
    ] = False,
    output: Output = STANDARD_OUTPUT,
    html: Annotated[Path | None, typer.Option(help="Draw the first 100 pairs on a page, in this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON lines, with confidences.")] = False,
    resume: Resume = False,
    on_error: OnError = "stop",
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
) -> None:
    """Align the words of parallel text; links are written as source-target pairs counted from 0, one line a pair.

    Example: sightline align text.en text.es -o text.align
    """
    for path in (output, save, html):
        if path is not None:
            check_writable(path)
    for text in (source, target):
        check_readable(text)
    for name in (model, reverse):
        check_model_name(name)
    running = Running(resume, on_error, workers, engine, address, gpus)
    running.check()
    if STANDARD_INPUT in (str(source), str(target)) and (html is not None or (format == "words" and (aligner or load))):
        raise InputError("Pictures and words read the texts a second time: give files instead of standard input.")
    format = "jsonl" if json else format
    if model is not None and (aligner or load):
        raise InputError("Align either with --model or with a statistical aligner (--aligner, --load).")
    if aligner or load:
        from sightline.alignment.files import align_files
        from sightline.alignment.formats import write_alignments
        from sightline.alignment.links import draw_page
        from sightline.corpus.progress import Progress

        if any([reverse, setting, extraction, threshold, explain_choice, with_aligner, dtype, method != "auto"]):
            raise InputError("A statistical aligner needs no reverse model, method, setting, extraction or precision.")
        if min_confidence:
            raise InputError("--min-confidence belongs to a model's links: give --confidences, and filter them.")
        if running != Running():
            raise InputError("A statistical aligner runs in one process and in minutes: it has nothing to resume.")
        alignments: Iterable[Alignment | Alignments]
        drawn: list[Alignment] = []
        with Progress("Reading") as steps:
            alignments = align_files(
                source, target, aligner=aligner, rule=symmetrize, save=save, load=load, steps=steps
            )
            if html is not None or format == "words":
                alignments = _with_words(chain.from_iterable(alignments), source, target, drawn)
            write_alignments(alignments, output, format, confidences=confidences or json)
        if html is not None:
            write_text(html, draw_page(drawn))
        return
    if save is not None:
        raise InputError("--save keeps a statistical aligner: name one with --aligner.")
    if one_way and reverse is not None:
        raise InputError("Give either --reverse or --one-way.")
    from sightline.alignment.parallel import try_pairs
    from sightline.corpus.jobs import AlignJob, ModelName

    named = ModelName(model or BOX_MODEL, source_lang, target_lang, prefix, dtype=dtype)
    options = {
        "method": method,
        "effort": effort,
        "choose_again": choose_again,
        "with_aligner": with_aligner,
        "extraction": extraction,
        "threshold": threshold,
        "symmetrize": symmetrize,
        "join": join,
        "min_confidence": min_confidence,
        **({"reverse": False} if one_way else {}),
        **read_settings(setting),
    }
    job = AlignJob(
        model=named,
        reverse=None if reverse is None else named.reverse(reverse),
        align=options,
        on_choice=partial(_show_choice, with_candidates=explain_choice),
        format=format,
        confidences=confidences or json,
    )
    position = Position()
    run_job(job, try_pairs(source, target, position), output, running, position=position)
    if html is not None:
        write_text(html, job.open().draw(_first_pairs(source, target)))


def _first_pairs(source: Path, target: Path | None) -> list[tuple[str, str]]:
    """Read the pairs to be drawn, once more."""
    from sightline.alignment.parallel import read_pairs

    return list(islice(read_pairs(source, target), MOST_DRAWN))


def _with_words(
    alignments: Iterable[Alignment], source: Path, target: Path | None, drawn: list[Alignment]
) -> Iterator[Alignment]:
    """Add their words to the alignments of a statistical aligner, and keep the first ones to be drawn."""
    from sightline.alignment.parallel import read_pairs

    for alignment, pair in zip(alignments, read_pairs(source, target), strict=True):
        with_words = alignment.with_words(*pair)
        if len(drawn) < MOST_DRAWN:
            drawn.append(with_words)
        yield with_words


def _show_choice(choice: Choice, with_candidates: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from sightline.verbs.readout import BY_USER

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if choice.criterion != BY_USER:
        console.print(str(choice), markup=False)
    if not with_candidates or len(choice.candidates) < 2:
        return
    table = Table("direction", "candidate", "alone", "joined", box=None, header_style="bold")
    for one in sorted(choice.candidates, key=lambda one: (one.direction == "backward", -(one.joined or 0), -one.score)):
        joined = "" if one.joined is None else f"{one.joined:.4f}"
        table.add_row(one.direction, str(one.readout), f"{one.score:.4f}", joined)
    console.print(table)
