"""A number that travels with the settings it was measured under, as sacreBLEU's signatures do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Score:
    """One measurement: its name, its value, an interval where one was estimated, and what it depends on.

    >>> print(Score("AER", 10.75, (9.9, 11.6), {"sentences": 447, "bootstrap": 1000}))
    AER|sentences:447|bootstrap:1000 = 10.75 [9.90, 11.60]
    """

    name: str
    value: float
    interval: tuple[float, float] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    decimals: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))

    @property
    def signature(self) -> str:
        """Give the settings on one line: `name:value|name:value`."""
        return "|".join(f"{name}:{value}" for name, value in self.settings.items())

    def __float__(self) -> float:
        return self.value

    def __hash__(self) -> int:
        return hash((self.name, self.value, self.interval, self.signature))

    def __reduce__(self) -> tuple[object, ...]:  # a mapping proxy cannot be pickled
        return Score, (self.name, self.value, self.interval, dict(self.settings), self.decimals)

    def __str__(self) -> str:
        label = "|".join(filter(None, (self.name, self.signature)))
        bounds = ", ".join(f"{bound:.{self.decimals}f}" for bound in self.interval or ())
        return f"{label} = {self.value:.{self.decimals}f}" + (f" [{bounds}]" if bounds else "")

    def to_dict(self) -> dict[str, Any]:
        """Give plain Python data, ready for JSON."""
        return {
            "name": self.name,
            "value": self.value,
            "interval": list(self.interval) if self.interval else None,
            "signature": self.signature,
        }
