"""`sightline translate`: translations, and with them the alignment of their words."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from itertools import tee
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


def translate(
    source: Annotated[Path, typer.Argument(help="The text to translate, one sentence a line; - is standard input.")],
    model: ModelName = BOX_MODEL,
    align: Annotated[
        bool, typer.Option("--align", help="Write `translation ||| 0-0 1-2`, words counted from 0.")
    ] = False,
    method: AligningMethod = "auto",
    beam: Beam = 4,
    length_penalty: LengthPenalty = 0.6,
    source_lang: SourceLanguage = None,
    target_lang: TargetLanguage = None,
    prefix: Prefix = "",
    output: Output = STANDARD_OUTPUT,
    json: Annotated[bool, typer.Option("--json", help="Write JSON lines, links with confidences.")] = False,
) -> None:
    """Translate text, sentence by sentence, and align the words.

    Example: sightline translate --align text.en -o text.es
    """
    check_writable(output)
    check_readable(source)
    check_model_name(model)
    import sightline
    from sightline.alignment.formats import render_alignments

    loaded = sightline.load(model, source_lang=source_lang, target_lang=target_lang, prefix=prefix)
    search = search_options(beam, length_penalty)
    sources, same_sources = tee(read_lines(source))
    translations = sightline.translate(loaded, sources, align={"method": method} if align else False, **search)

    def lines() -> Iterator[str]:
        for text, translation in zip(same_sources, translations, strict=True):
            links = translation.alignment
            if json:
                plain: dict[str, object] = {"source": text, "translation": translation.text}
                if links is not None:
                    plain["links"] = [[*link, confidence] for link, confidence in links.confidences.items()]
                yield json_module.dumps(plain, ensure_ascii=False) + "\n"
            elif links is not None:
                yield f"{translation.text} ||| {next(render_alignments([links]))}"
            else:
                yield translation.text + "\n"

    write_lines(lines(), output)
