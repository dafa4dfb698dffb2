"""`sightline score`: the error rate of a word alignment against a gold standard."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from sightline.corpus.progress import Progress
from sightline.errors import InputError
from sightline.limits import LARGEST_SEED


def score(
    hypothesis: Annotated[Path, typer.Argument(help="The alignments to score; - is standard input.")],
    gold: Annotated[Path, typer.Argument(help="The gold alignments: i-j sure, ipj possible.")],
    gold_base: Annotated[int | None, typer.Option(help="What the gold file counts words from: 0 or 1.")] = None,
    base: Annotated[int | None, typer.Option(help="What the hypothesis counts words from: 0 or 1.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The hypothesis lists target-source links.")] = False,
    gold_reverse: Annotated[bool, typer.Option("--gold-reverse", help="The gold file does.")] = False,
    format: Annotated[str, typer.Option(help="Format of the hypothesis: pharaoh, naacl or jsonl.")] = "pharaoh",
    gold_format: Annotated[str, typer.Option(help="Format of the gold file.")] = "pharaoh",
    source: Annotated[Path | None, typer.Option(help="The source text, to check links by.")] = None,
    target: Annotated[Path | None, typer.Option(help="The target text, to check links by.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of the bootstrap intervals.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Score a word alignment: AER, precision, recall and F1 in percent, with 95% bootstrap intervals.

    Words count from 0 (from 1 in naacl files) unless said otherwise.

    Example: sightline score my.align test.gold --gold-base 1
    """
    from sightline.alignment.error_rate import score_files

    if source is None and target is not None:
        raise InputError("--target also needs --source (which may hold both sides of each pair by itself).")
    with Progress("Reading") as steps:
        scores = score_files(
            hypothesis,
            gold,
            format=format,
            gold_format=gold_format,
            base=base,
            gold_base=gold_base,
            target_first=reverse,
            gold_target_first=gold_reverse,
            texts=None if source is None else (source, target),
            seed=seed,
            steps=steps,
        )
    print(json_module.dumps(scores.to_dict()) if json else scores)
