"""Settings that come from outside: checked against the types that they declare, and described to users."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from numbers import Integral, Real
from types import NoneType
from typing import Any, get_args, get_type_hints

from sightline.errors import InputError, check_names
from sightline.limits import LARGEST_COUNT, LARGEST_SEED

KINDS: dict[Any, str] = {
    bool: "true or false",
    int: f"a whole number up to {LARGEST_COUNT:,}",
    float: f"a number up to {LARGEST_COUNT:,}",
    str: "a name",
    NoneType: "none",
}


def checked_values(settings: type, given: Mapping[str, Any], of: str) -> dict[str, Any]:
    """Return values as their fields have them; refuse unknown names, other types, and seeds that generators refuse."""
    valid = [field.name for field in fields(settings)]
    if given and not valid:
        raise InputError(f"There are no settings of {of}, so {next(iter(given))!r} cannot be given.")
    check_names(f"setting of {of}", given, valid)
    hints = get_type_hints(settings)
    checked = {}
    for name, value in given.items():
        wanted = get_args(hints[name]) or (hints[name],)
        if name == "seed" and not (_is_of(value, int) and 0 <= value <= LARGEST_SEED):
            raise InputError(f"The seed of {of} is {value!r}: it should be a whole number from 0 to {LARGEST_SEED:,}.")
        fitting = [kind for kind in wanted if _is_of(value, kind)]
        if not fitting:
            kinds = " or ".join(KINDS.get(kind, kind.__name__) for kind in wanted)
            raise InputError(f"The setting {name} of {of} is {value!r}: it should be {kinds}.")
        checked[name] = fitting[0](value) if fitting[0] in (int, float) else value
    return checked


def _is_of(value: Any, kind: Any) -> bool:
    if isinstance(value, bool):  # which Python takes for an integer
        return kind is bool
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and abs(float(value)) <= LARGEST_COUNT
    return isinstance(value, kind)


def check_share(name: str, value: Any) -> None:
    """Refuse what is not a number from 0 to 1."""
    if not _is_of(value, float) or not 0 <= value <= 1:
        raise InputError(f"The {name} is {value!r}: it should be a number from 0 to 1.")


def describe_fields(settings: type) -> dict[str, str]:
    """Return the strings that stand below the fields of a settings class, its base classes included, each as one line.

    Python does not keep these strings, so they are read from the source.
    """
    described: dict[str, str] = {}
    for cls in reversed(settings.__mro__[:-1]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(body, ast.ClassDef)
        for field, after in pairwise(body.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                text = after.value if isinstance(after, ast.Expr) else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    described[field.target.id] = " ".join(text.value.split())
    return described
