"""`sightline train`: train the model of a recipe; an interrupted run goes on."""

from __future__ import annotations

import dataclasses
import json as json_module
from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[Path, typer.Argument(help="A YAML file, for example recipes/tiny.yaml.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The folder; by default runs/NAME.")] = None,
    setting: Annotated[list[str], typer.Option("-s", "--set", help="Change a key of the recipe: key.sub=value.")] = [],  # noqa: B006
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
) -> None:
    """Train the model of a recipe into a folder that `sightline.load` takes.

    Started again, an interrupted run goes on where it was. On several devices: accelerate launch $(which sightline)
    train RECIPE; on several processors: torchrun --nproc-per-node 2 $(which sightline) train RECIPE.

    Example: sightline train recipes/tiny.yaml --set training.steps=200
    """
    from sightline.training.recipe import read_recipe

    read_recipe(recipe, setting)
    from sightline.training import train as train_recipe

    result = train_recipe(recipe, output=output, set=setting, quiet=quiet)
    if json:
        print(json_module.dumps(dataclasses.asdict(result), default=str, ensure_ascii=False))
    elif not quiet:
        for role, measured in (("dev", result.dev), ("test", result.test)):
            if measured is not None:
                bleu = "".join(f", {direction} BLEU {score:.1f}" for direction, score in measured.bleu.items())
                print(f"{result.folder}: {role} loss {measured.loss:.3f}, accuracy {measured.accuracy:.3f}{bleu}")
