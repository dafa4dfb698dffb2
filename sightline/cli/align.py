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
from sightline.corpus.progress import Progress
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
    method: Annotated[
        str,
        typer.Option(
            help="auto (the model's adapter, or else chosen on the first pairs), similarity, or one of `sightline "
            "methods`."
        ),
    ] = "auto",
    effort: Annotated[
        str, typer.Option(help="fast, or best: try SmoothGrad saliency too, which takes about 30 times as long.")
    ] = "fast",
    choose_again: Annotated[
        bool, typer.Option("--choose-again", help="Choose how to read the model anew, even if a choice was saved.")
    ] = False,
    setting: Annotated[list[str], typer.Option("-s", "--set", help="A setting of the method: layer=2.")] = [],  # noqa: B006
    extraction: Annotated[
        str | None,
        typer.Option(
            help="How links are read off scores: argmax-words (the default; of similarity mutual-pieces), argmax, "
            "pieces, threshold, mutual, mutual-pieces or softmax."
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="The least share for a link, with --extraction threshold (0.2) or softmax (0.001)."),
    ] = None,
    symmetrize: Annotated[
        str | None,
        typer.Option(
            help="Rule that joins the links of two directions, by default grow-diag-strict; all are in `sightline "
            "symmetrize --help`."
        ),
    ] = None,
    join: Annotated[
        str, typer.Option(help="What of two directions is joined: scores (and then links), or links alone.")
    ] = "scores",
    min_confidence: Annotated[float, typer.Option(help="Leave out links with a lower confidence, from 0 to 1.")] = 0.0,
    with_aligner: Annotated[
        str | None,
        typer.Option(
            help="Join the model with a statistical aligner: diagonal, hmm or ibm1, trained on these texts first, or "
            "the file of a saved one."
        ),
    ] = None,
    aligner: Annotated[
        str | None,
        typer.Option(
            help="Train a statistical aligner on these texts, and align with it instead of a model: ibm1, diagonal, "
            "hmm or eflomal."
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the trained statistical aligner in this file.")] = None,
    load: Annotated[Path | None, typer.Option(help="Align with a statistical aligner that --save kept.")] = None,
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
    reads_standard_input = STANDARD_INPUT in (str(source), str(target))
    if reads_standard_input and (html is not None or (format == "words" and (aligner or load))):
        raise InputError("Pictures and words read the texts a second time: give files instead of standard input.")
    format = "jsonl" if json else format
    if model is not None and (aligner or load):
        raise InputError("Align either with --model or with a statistical aligner (--aligner, --load).")
    if aligner or load:
        from sightline.alignment.files import align_files
        from sightline.alignment.formats import write_alignments
        from sightline.alignment.links import draw_page

        unfit = [reverse, one_way, choose_again, explain_choice, setting, extraction, threshold, with_aligner, dtype]
        if any(unfit) or (method, effort) != ("auto", "fast"):
            raise InputError(
                "A statistical aligner needs no reverse model, way, method, effort, choice, setting, extraction or "
                "precision."
            )
        if min_confidence:
            raise InputError("--min-confidence belongs to a model's links: give --confidences, and filter them.")
        if running != Running():
            raise InputError(
                "A statistical aligner runs in one process, in minutes: leave out --resume, --on-error, --workers and "
                "--engine."
            )
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
    skip = on_error == "skip"
    if with_aligner is not None:
        from sightline.alignment.statistical import ALIGNERS

        if reads_standard_input and with_aligner in ALIGNERS:
            raise InputError(
                f"--with-aligner {with_aligner} reads the texts twice, first to train it: give files instead of "
                f"standard input, or the file of a saved aligner (`align --aligner {with_aligner} --save FILE`)."
            )
        with Progress("Reading") as steps:
            job = job.with_aligner_trained_on(try_pairs(source, target), steps, skip=skip)
    position = Position()
    settled = run_job(job, try_pairs(source, target, position), output, running, position=position)
    if html is not None:
        write_text(html, job.draw(settled, islice(try_pairs(source, target), MOST_DRAWN), skip=skip))


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
    elif with_candidates:
        console.print(
            f"Read by {choice.forward}: there is nothing to choose (`--method norms` or `attention` leaves the layer "
            "open).",
            markup=False,
        )
    if not with_candidates or len(choice.candidates) < 2:
        return
    table = Table("direction", "candidate", "alone", "joined", box=None, header_style="bold")
    for one in sorted(choice.candidates, key=lambda one: (one.direction == "backward", -(one.joined or 0), -one.score)):
        joined = "" if one.joined is None else f"{one.joined:.4f}"
        table.add_row(one.direction, str(one.readout), f"{one.score:.4f}", joined)
    console.print(table)
