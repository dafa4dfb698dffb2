"""Options that several commands share."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.models.box import BOX_MODEL

_MODEL = partial(typer.Option, "-m", "--model", help="A folder, a name on the hub, or en-es, the model in the box.")

ModelOption = Annotated[str, _MODEL()]
OptionalModelOption = Annotated[str | None, _MODEL(show_default=BOX_MODEL)]
SourceLanguage = Annotated[
    str | None, typer.Option("--source-lang", help="Language of the source (NLLB, M2M100, mBART; en-es recognises it).")
]
TargetLanguage = Annotated[
    str | None, typer.Option("--target-lang", help="Language of the target (the same, and OPUS-MT).")
]
Prefix = Annotated[str, typer.Option(help="Text to put before each source (T5).")]
Dtype = Annotated[
    str | None, typer.Option(help="Precision: float32, float16 or bfloat16 (faster where the processor has it).")
]
Beam = Annotated[int, typer.Option(min=1, help="Hypotheses kept at a time; 1 is greedy.")]
LengthPenalty = Annotated[float, typer.Option(help="Power of the length; larger values favour longer translations.")]
AligningMethod = Annotated[str, typer.Option(help="How to align: see `sightline align --help`.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Where to write; - is standard output.")]
STANDARD_OUTPUT = Path("-")
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Write to OUT.partial until all is done, and continue there if an earlier run was stopped."
    ),
]
OnError = Annotated[
    str,
    typer.Option(
        "--on-error",
        help="stop at a line that cannot be processed, or skip it: an empty line, its reason in OUT.errors.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(help="Number of worker processes; by default one for each core, if there are thousands of lines."),
]
Engine = Annotated[str, typer.Option(help="local, or ray: the workers are on a Ray cluster.")]
Address = Annotated[str | None, typer.Option(help="Address of the Ray cluster; by default one on this machine alone.")]
Gpus = Annotated[float, typer.Option(help="Graphics cards, or the share of one, for each worker on the cluster.")]


def search_options(beam: int, length_penalty: float) -> dict[str, Any]:
    """Return the options of transformers' `generate`, which refuses a length penalty where there is no beam."""
    return {"num_beams": beam} | ({"length_penalty": length_penalty} if beam > 1 else {})
