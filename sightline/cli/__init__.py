"""The command line: one command a file. A command parses, calls one public function, prints.

The user's mistakes (`InputError`) are caught once, here: one sentence on standard error and exit code 2.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module

# Idle OpenMP threads would spin and slow everything else down; torch reads this when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# What goes wrong is told once, by us; bars are for people, not for files.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_VERBOSITY", "error")
if not sys.stderr.isatty():
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import typer
from rich.console import Console
from rich.text import Text

import sightline
from sightline.errors import InputError

COMMANDS = (
    "explain",
    "align",
    "score",
    "symmetrize",
    "translate",
    "tags",
    "train",
    "faithfulness",
    "study",
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
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    warnings.filterwarnings("ignore", module="transformers")  # its advice is for developers
    try:
        app(arguments)
    except InputError as error:
        Console(stderr=True, soft_wrap=True).print(Text.assemble(("sightline: ", "bold red"), str(error)))
        sys.exit(2)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
