"""What a server takes on, and the refusals with their status codes; each is one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sightline.errors import SightlineError

SAMPLE_SETTINGS = ("smoothgrad", "steps")
"""Settings of methods that multiply their work."""


@dataclass(frozen=True)
class Limits:
    """The bounds of one request and of the queue; `picture_bytes` is that of scores sent back to be saved as a page."""

    characters: int = 20_000
    tokens: int = 1_000
    lines: int = 500
    samples: int = 100
    seconds: float = 60.0
    waiting: int = 64
    batch: int = 16
    picture_bytes: int = 32_000_000

    @property
    def body_bytes(self) -> int:
        """Return how long a body may be: two texts in the longest encoding of JSON, and the rest."""
        return 2 * 12 * self.characters + 65_536


class Refused(SightlineError):  # noqa: N818  what was refused is a request
    """A request that is not carried out, with the status code of the answer."""

    status = 400


class NotFound(Refused):
    """What was asked for is not there."""

    status = 404


class TooLarge(Refused):
    """The request is longer than the server takes."""

    status = 413


class Unprocessable(Refused):
    """The request asks for something that cannot be."""

    status = 422


class TooMany(Refused):
    """Too many requests wait already."""

    status = 429


class ClientLeft(Refused):
    """Nobody waits for the answer any more."""

    status = 499


class Unavailable(Refused):
    """The server is loading or stopping."""

    status = 503


class TooSlow(Refused):
    """The request took longer than one may."""

    status = 504


def check_characters(limits: Limits, *texts: str | None) -> None:
    """Refuse texts that are too long together."""
    count = sum(len(text) for text in texts if text is not None)
    if count > limits.characters:
        raise TooLarge(
            f"The texts have {count:,} characters, and this server takes {limits.characters:,}: shorten them."
        )


def check_settings(limits: Limits, settings: Mapping[str, Any]) -> None:
    """Refuse settings that would multiply the work beyond the bound."""
    for name in SAMPLE_SETTINGS:
        value = settings.get(name)
        if isinstance(value, int | float) and value > limits.samples:
            raise Unprocessable(f"The setting {name} is {value}, and this server takes at most {limits.samples}.")
