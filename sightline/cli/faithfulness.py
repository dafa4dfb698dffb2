"""`sightline faithfulness`: which attribution methods name the words that a model really used."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.options import ModelName
from sightline.errors import InputError, check_names
from sightline.files import read_lines
from sightline.methods import METHODS, RANDOM
from sightline.models.box import BOX_MODEL
from sightline.models.names import check_model_name


def faithfulness(
    file: Annotated[Path, typer.Argument(help="One text a line; after a tab perhaps the label or translation.")],
    model: ModelName = BOX_MODEL,
    methods: Annotated[str, typer.Option(help="Methods, and `random`, separated by commas.")] = (
        "attention,gradient,erasure,random"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Compare attribution methods by what deleting the words that they name does to the output.

    Works on classifiers, and word by word on translation models; without a target the model gives its own.

    Example: sightline faithfulness -m runs/imdb-lstm --methods attention,gradient,random reviews.txt
    """
    check_model_name(model)
    names = [name.strip() for name in methods.split(",")]
    check_names("method", names, (*METHODS, RANDOM))
    pairs = [line.split("\t") for line in read_lines(file) if line.strip()]
    if not pairs:
        raise InputError(f"{file} has no text.")
    with_target = {len(pair) > 1 for pair in pairs}
    if len(with_target) > 1:
        raise InputError(f"{file}: some lines have a target after a tab and some have none: give it to all or none.")
    from rich.console import Console
    from rich.table import Table

    from sightline.faithfulness import MEASURES, measure_faithfulness

    found = measure_faithfulness(
        model,
        [pair[0] for pair in pairs],
        [pair[1] for pair in pairs] if with_target == {True} else None,
        methods=names,
    )
    if json:
        print(json_module.dumps([one.to_dict() for one in found]))
        return
    table = Table(
        "method", "comprehensiveness (high)", "sufficiency (low)", "correlation with leave-one-out", "outputs"
    )
    for one in found:
        summary = one.summary()
        cells = [f"{summary[name].mean:.3f} ± {summary[name].deviation:.3f}" for name in MEASURES]
        undefined = max(summary[name].undefined for name in MEASURES)
        outputs = f"{len(one.correlation)}" + (f" ({undefined} undefined)" if undefined else "")
        table.add_row(one.method, *cells, outputs)
    Console().print(table)
