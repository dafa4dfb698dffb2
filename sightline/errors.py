"""The errors that a user can cause, and can mend."""

import difflib
from collections.abc import Iterable


class SightlineError(Exception):
    """The base of every error that Sightline raises on purpose."""


class InputError(SightlineError):
    """The user's mistake: one sentence that names what is wrong and what to do."""


def unknown_name(what: str, name: str, valid: Iterable[str]) -> InputError:
    """Build the error for a name that is not in a table: it lists the valid names, nearest first."""
    names = sorted(valid)
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return InputError(f"There is no {what} {name!r}.{hint} Valid: {', '.join(names)}.")
