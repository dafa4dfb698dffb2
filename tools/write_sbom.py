"""Write the bill of materials of the tested set of versions: sbom.cdx.json, in CycloneDX 1.6.

    python tools/write_sbom.py

Every pin of constraints.txt is a component, with its licence where the package is installed here and names one. The
file has no time and no random number in it, so that it changes only when a version or a licence does.
"""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from sightline.version import __version__

REPOSITORY = Path(__file__).resolve().parents[1]
SBOM = REPOSITORY / "sbom.cdx.json"
LONGEST_LICENCE = 100  # some packages put the whole text there


def read_pins() -> list[tuple[str, str]]:
    """Read names and versions of constraints.txt."""
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [(name, version) for name, equals, version in (line.partition("==") for line in lines) if equals]


def build_sbom() -> dict[str, Any]:
    """Build the document."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "sightline-nlp", "version": __version__}},
        "components": [_component(name, version) for name, version in read_pins()],
    }


def _component(name: str, version: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    component: dict[str, Any] = {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}
    licence = _licence(name)
    return component | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def _licence(name: str) -> str:
    """Return the licence that an installed package names: as an expression, in a classifier, or in a line."""
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return ""
    classifiers = found.get_all("Classifier") or []
    classified = [text.split(" :: ")[-1] for text in classifiers if text.startswith("License :: OSI Approved :: ")]
    line = (found.get("License") or "").strip()
    plain = line if len(line) <= LONGEST_LICENCE and "\n" not in line else ""
    return found.get("License-Expression") or " or ".join(classified) or plain


def main() -> None:
    SBOM.write_text(json.dumps(build_sbom(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(SBOM)


if __name__ == "__main__":
    main()
