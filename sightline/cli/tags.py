"""`sightline tags`: text with inline markup translated, the markup put back by the alignment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.options import (
    STANDARD_OUTPUT,
    AligningMethod,
    Beam,
    LengthPenalty,
    ModelName,
    Output,
    Prefix,
    SourceLanguage,
    TargetLanguage,
    search_options,
)
from sightline.files import check_readable, check_writable, read_lines, write_lines
from sightline.models.box import BOX_MODEL
from sightline.models.names import check_model_name


def tags(
    source: Annotated[Path, typer.Argument(help="Text with tags and placeholders, one sentence a line; - is input.")],
    target: Annotated[
        Path | None, typer.Argument(help="Its translation without tags; if it is not given, the text is translated.")
    ] = None,
    model: ModelName = BOX_MODEL,
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
    import sightline

    loaded = sightline.load(model, source_lang=source_lang, target_lang=target_lang, prefix=prefix)
    options: dict[str, object] = {"method": method}
    if reverse is not None:
        options["reverse"] = sightline.load(reverse, source_lang=target_lang, target_lang=source_lang, prefix=prefix)
    if target is None:
        search = search_options(beam, length_penalty)
        marked = sightline.translate_markup(loaded, read_lines(source), align=options, **search)
    else:
        marked = sightline.transfer_markup(loaded, read_lines(source), read_lines(target), **options)
    write_lines((text + "\n" for text in marked), output)
