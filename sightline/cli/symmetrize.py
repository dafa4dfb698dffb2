"""`sightline symmetrize`: the alignments of two directions as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.options import STANDARD_OUTPUT, Output
from sightline.corpus.progress import Progress
from sightline.files import check_readable, check_writable


def symmetrize(
    forward: Annotated[Path, typer.Argument(help="Source-target links, one sentence a line; - is standard input.")],
    reverse: Annotated[Path, typer.Argument(help="The links of the reverse direction, target-source.")],
    rule: Annotated[
        str,
        typer.Option(
            help="intersection, union, grow-diag, grow-diag-final, grow-diag-final-and (as Moses and atools), "
            "grow-diag-strict, grow-diag-final-strict (as the alignment-scripts)."
        ),
    ] = "grow-diag-strict",
    same_order: Annotated[
        bool,
        typer.Option("--same-order", help="The reverse file, too, lists source-target links (fast_align -r, eflomal)."),
    ] = False,
    format: Annotated[str, typer.Option(help="Format of the files: pharaoh, naacl or jsonl.")] = "pharaoh",
    base: Annotated[int | None, typer.Option(help="What the files count words from: 0 or 1.")] = None,
    confidences: Annotated[
        bool, typer.Option("--confidences", help="Write i-j:c, with c the mean confidence of the directions.")
    ] = False,
    output: Output = STANDARD_OUTPUT,
    json: Annotated[bool, typer.Option("--json", help="Write JSON lines, with confidences.")] = False,
) -> None:
    """Join the word alignments of two directions; the result is written as source-target links.

    Example: sightline symmetrize forward.align reverse.align --rule grow-diag-final-and -o both.align
    """
    check_writable(output)
    for links in (forward, reverse):
        check_readable(links)
    from sightline.alignment.formats import write_alignments
    from sightline.alignment.symmetrization import symmetrize_files

    with Progress("Joining") as steps:
        alignments = symmetrize_files(
            forward, reverse, rule, format=format, base=base, reverse_target_first=not same_order, steps=steps
        )
        write_alignments(alignments, output, "jsonl" if json else format, base, confidences=confidences or json)
