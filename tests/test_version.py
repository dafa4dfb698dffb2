"""The version is written in one place; the citation has to follow it."""

import re
from pathlib import Path

from sightline.version import __version__


def test_the_citation_names_this_version() -> None:
    citation = (Path(__file__).resolve().parents[1] / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == __version__
