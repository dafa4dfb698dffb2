"""A number that travels with the settings it was measured under and the version of Sightline, as sacreBLEU's do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sightline.version import __version__


@dataclass(frozen=True)
class Score:
    """One measurement: its name, its value, an interval where one was estimated, and what it depends on.

    The settings name what was measured and how, never what was found.

    >>> print(Score("AER", 10.75, (9.9, 11.6), {"sentences": 447, "bootstrap": 1000}, version="1.2"))
    AER|sentences:447|bootstrap:1000|sightline:1.2 = 10.75 [9.90, 11.60]
    """

    name: str
    value: float
    interval: tuple[float, float] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    decimals: int = 2
    version: str = __version__
    """The version of Sightline that measured it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    @property
    def signature(self) -> str:
        """Return the settings and the version on one line: `name:value|name:value`."""
        return "|".join(f"{name}:{value}" for name, value in {**self.settings, "sightline": self.version}.items())

    def __float__(self) -> float:
        return self.value

    def __hash__(self) -> int:
        return hash((self.name, self.value, self.interval, self.signature))

    def __reduce__(self) -> tuple[object, ...]:  # a mapping proxy cannot be pickled
        return Score, (self.name, self.value, self.interval, dict(self.settings), self.decimals, self.version)

    def __str__(self) -> str:
        bounds = ", ".join(f"{bound:.{self.decimals}f}" for bound in self.interval or ())
        return f"{self.name}|{self.signature} = {self.value:.{self.decimals}f}" + (f" [{bounds}]" if bounds else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python data, ready for JSON."""
        return {
            "name": self.name,
            "value": self.value,
            "interval": list(self.interval) if self.interval else None,
            "signature": self.signature,
        }
