"""The commands and their options, as Typer has them."""

from __future__ import annotations

from importlib import import_module

import typer

import sightline

COMMANDS = (
    "explain",
    "align",
    "score",
    "symmetrize",
    "translate",
    "tags",
    "train",
    "adapt",
    "faithfulness",
    "study",
    "serve",
    "methods",
    "models",
    "demo",
    "doctor",
)

app = typer.Typer(
    name="sightline",
    help="See which inputs a neural text model used for each output.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name in COMMANDS:
    app.command(name)(getattr(import_module(f"sightline.cli.{name}"), name))


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"sightline {sightline.__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(False, "--debug", help="After an error, show where it arose; works anywhere."),
) -> None:
    pass
