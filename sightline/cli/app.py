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
    rich_markup_mode=None,  # plain help: a flag is not shown as taking a value, and examples can be copied
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name in COMMANDS:
    command = getattr(import_module(f"sightline.cli.{name}"), name)
    app.command(name, short_help=command.__doc__.partition("\n")[0])(command)


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
