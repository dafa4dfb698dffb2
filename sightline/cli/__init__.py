"""The command line: one command a file. A command parses, calls one public function, prints.

Whatever goes wrong is caught once, here, and told in one sentence on standard error. Exit codes: 0 is success, also
when the reader of a pipe has seen enough; 1 an error that should not be; 2 the user's mistake (`InputError`) or a full
disk; 130 and 143 an end by Ctrl-C and by SIGTERM. Nothing heavy is imported before `main` is there to catch a Ctrl-C.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from types import FrameType

DEBUG = "--debug"


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():  # elsewhere Python takes no signals
        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except BrokenPipeError:  # the reader of a pipe has seen enough
        code = 0
        _abandon_output()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    sys.exit(128 + received[0] if received else code)


def _run(arguments: list[str]) -> int:
    """Run a command, and tell what goes wrong in one sentence; return the exit code."""
    _prepare()
    from sightline.errors import InputError, missing_package

    rest = arguments.index("--") if "--" in arguments else len(arguments)
    debug = DEBUG in arguments[:rest]
    arguments = [argument for argument in arguments[:rest] if argument != DEBUG] + arguments[rest:]
    try:
        from sightline.cli.app import app

        try:
            app(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # while errors can still be told
    except SystemExit as stopped:  # Typer ends every command so
        if isinstance(stopped.__context__, BrokenPipeError):  # its own answer to which is to exit with 1
            raise stopped.__context__ from None
        return stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BrokenPipeError:
        raise
    except InputError as error:
        _tell(str(error), debug)
        return 2
    except Exception as error:
        if isinstance(error, ImportError) and (explained := missing_package("This command", error)) is not error:
            _tell(str(explained), debug)
            return 2
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            _tell(f"{error.filename or 'Standard output'} cannot be written: {error.strerror}.", debug)
            _abandon_output()
            return 2
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = "see above where it arose" if debug else f"run the command with {DEBUG} to see where it arose"
        _tell(f"An unexpected error, {hint}, and please report it: {what}", debug)
        return 1
    return 0


def _prepare() -> None:
    """Set what the libraries below read when they are imported."""
    import warnings

    # Idle OpenMP threads would spin and slow everything else down; torch reads this when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # What goes wrong is told once, by us; bars are for people, not for files.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    warnings.filterwarnings("ignore", module="transformers")  # its advice is for developers


def _tell(sentence: str, debug: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from sightline.errors import one_line

    if debug:
        import traceback

        traceback.print_exc()
    Console(stderr=True, soft_wrap=True).print(Text.assemble(("sightline: ", "bold red"), one_line(sentence)))


def _abandon_output() -> None:
    """Let what standard output still holds go nowhere, or Python would complain about it at the very end."""
    if sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
