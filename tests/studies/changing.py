"""Made-up results of a study with one figure changed, to see which claims turn on it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any


def changed(results: dict[str, Any], path: Sequence[Any], value: Any) -> dict[str, Any]:
    """Return a copy in which the figure at a path of keys is another."""
    results = deepcopy(results)
    place: Any = results
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return results
