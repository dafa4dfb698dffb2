"""Reading `name=value` settings from the command line."""

from __future__ import annotations

from typing import Any

from sightline.errors import InputError


def read_settings(texts: list[str]) -> dict[str, Any]:
    """Read settings given as `name=value`."""
    return dict(_read_setting(text) for text in texts)


def _read_setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"The setting {text!r} should look like name=value, for example layer=2.")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:  # also of too many digits
            continue
    return name, {"true": True, "false": False, "none": None}.get(value.lower(), value)
