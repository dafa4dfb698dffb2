"""`sightline adapt`: train an alignment adapter for a translation model on parallel text."""

from __future__ import annotations

import dataclasses
import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.options import ModelOption, SourceLanguage, TargetLanguage
from sightline.files import check_readable
from sightline.models.box import BOX_MODEL
from sightline.models.names import check_model_name


def adapt(
    source: Annotated[Path, typer.Argument(help="The source, one sentence a line.")],
    target: Annotated[
        Path | None, typer.Argument(help="The target; without it SOURCE has both sides, with a tab or ||| between.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="A new folder for the model and its adapter.")] = ...,  # type: ignore[assignment]
    model: ModelOption = BOX_MODEL,
    reverse: Annotated[
        str | None, typer.Option("-r", "--reverse", help="A model of the reverse direction; en-es is its own.")
    ] = None,
    with_aligner: Annotated[
        str | None,
        typer.Option(
            help="Learn from the model joined with an aligner: diagonal, hmm, ibm1 or a file of `align --save`."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of training and labelling; the best one is kept.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 1,
    source_lang: SourceLanguage = None,
    target_lang: TargetLanguage = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
) -> None:
    """Train an alignment adapter on your own parallel text, without gold; `sightline align -m FOLDER` then uses it.

    The model stays as it is: a small module learns to read alignments off its states. Tens of thousands of pairs are
    plenty.

    Example: sightline adapt text.en text.es -o adapted
    """
    for name in (model, reverse):
        check_model_name(name)
    for text in (source, target):
        check_readable(text)
    import sightline
    from sightline.alignment.parallel import read_pairs

    forward = sightline.load(model, source_lang=source_lang, target_lang=target_lang)
    backward = None
    if reverse is not None:
        backward = sightline.load(reverse, source_lang=target_lang, target_lang=source_lang)
    pairs = list(read_pairs(source, target))
    result = sightline.adapt(
        forward,
        [source_text for source_text, _ in pairs],
        [target_text for _, target_text in pairs],
        output=output,
        reverse=backward,
        with_aligner=with_aligner,
        rounds=rounds,
        seed=seed,
        quiet=quiet,
    )
    if json:
        print(json_module.dumps(dataclasses.asdict(result), default=str))
