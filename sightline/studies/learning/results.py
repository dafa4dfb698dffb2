"""What the study measured on text, by the paper's names of the sets."""

from __future__ import annotations

from typing import Any

from sightline.studies.learning.published import NAMES
from sightline.studies.study import Results


def measured_sets(results: Results, task: str = "") -> dict[str, Any]:
    """Return the figures of the sets that were measured, by the paper's name of each."""
    tasks = (task,) if task else ("classify", "translate")
    found = {}
    for one in tasks:
        for name in NAMES:
            if results.get(f"{one} {name}"):
                found[NAMES[name] if name != "generated" else f"generated ({one})"] = results[f"{one} {name}"]
    return found
