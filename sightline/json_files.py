"""The one way to read and write JSON: what is read is checked, since it may come from outside or be damaged."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from sightline.errors import InputError
from sightline.files import FilePath, reason_of, write_text

DEEPEST = 100
"""How deeply JSON may be nested."""
LARGEST = 2**64
"""What integers in JSON stay below."""


def read_json(path: FilePath, fields: Mapping[str, Any], remedy: str) -> dict[str, Any]:
    """Read a JSON file that holds an object with at least these fields, each of its type; NaN is read as None.

    A type may be a union; `float` takes integers too. Anything else is an InputError that ends in the `remedy`, a
    sentence on what to do.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is damaged: it is not UTF-8. {remedy}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason_of(error)}. {remedy}") from None
    try:
        return check_fields(parse_json(text), fields)
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}. {remedy}") from None


def read_json_lines(path: FilePath, fields: Mapping[str, Any], remedy: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line of a file that a process appends objects to, and the object, checked as `read_json` does.

    A last line without its end was cut off by a crash: it is left out.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason_of(error)}. {remedy}") from None
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode()
            yield text, check_fields(parse_json(text), fields)
        except UnicodeDecodeError:
            raise InputError(f"{path}, line {number} is damaged: it is not UTF-8. {remedy}") from None
        except ValueError as error:
            raise InputError(f"{path}, line {number} is damaged: {error}. {remedy}") from None


def parse_json(text: str) -> Any:
    """Parse JSON from outside; a ValueError says what is odd: cut off, nested too deeply, a huge number, half a letter.

    NaN and infinities, which Python writes and JSON lacks, are None.
    """
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_int=_parse_int, parse_float=_parse_float)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON (line {error.lineno}, column {error.colno}: {error.msg})") from None
    except RecursionError:
        raise ValueError(f"it is nested more than {DEEPEST} deep") from None
    if text.count("[") + text.count("{") > DEEPEST and _is_deep(value):
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it has half of a surrogate pair, which is no letter") from None
    return value


def check_fields(plain: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object from JSON if it has these fields, each of its type; else a ValueError says what is odd.

    A whole number where a float is wanted becomes one.
    """
    if not isinstance(plain, dict):
        raise ValueError(f"it holds {_kind(plain)}, not an object")
    for name, wanted in fields.items():
        if name not in plain:
            raise ValueError(f"it has no field {name!r}")
        if not _is_of(plain[name], wanted):
            raise ValueError(f"its field {name!r} is {_kind(plain[name])}")
    return plain | {name: float(plain[name]) for name, wanted in fields.items() if _lacks_a_point(plain[name], wanted)}


def _is_of(value: Any, wanted: Any) -> bool:
    if wanted is Any:
        return True
    allowed = get_args(wanted) or (wanted,)
    if isinstance(value, bool):  # which Python takes for an integer
        return bool in allowed
    return isinstance(value, allowed) or (float in allowed and isinstance(value, int))


def _lacks_a_point(value: Any, wanted: Any) -> bool:
    allowed = get_args(wanted) or (wanted,)
    return type(value) is int and float in allowed and int not in allowed


def _parse_int(digits: str) -> int:
    if len(digits) > len(str(LARGEST)) or abs(int(digits)) >= LARGEST:
        raise ValueError(f"the number {digits[:20]}... is too large")
    return int(digits)


def _parse_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}
    return "null" if value is None else names.get(type(value), "an object")


def write_json(path: FilePath, plain: Any) -> None:
    """Write what is ready for JSON, indented."""
    write_text(path, json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
