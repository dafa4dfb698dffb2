"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

_MODEL = typer.Option("-m", "--model", help="A folder, a name on the hub, or en-es, the model in the box.")

ModelName = Annotated[str, _MODEL]
OptionalModelName = Annotated[str | None, _MODEL]
SourceLanguage = Annotated[
    str | None, typer.Option("--source-lang", help="Language of the source (en-es, NLLB, M2M100, mBART).")
]
TargetLanguage = Annotated[
    str | None, typer.Option("--target-lang", help="Language of the target (the same, and OPUS-MT).")
]
