"""The bill of materials: it lists what constraints.txt pins."""

from __future__ import annotations

import json
import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_every_pin_is_a_component() -> None:
    """If this fails, run tools/write_sbom.py."""
    document = json.loads((REPOSITORY / "sbom.cdx.json").read_text(encoding="utf-8"))
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (REPOSITORY / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(pins) > 100
    assert [(one["name"], one["version"]) for one in document["components"]] == pins
    assert all(one["purl"].startswith("pkg:pypi/") for one in document["components"])
    version = (REPOSITORY / "sightline" / "version.py").read_text(encoding="utf-8")
    assert f'"{document["metadata"]["component"]["version"]}"' in version
