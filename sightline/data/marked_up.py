"""Sentences with markup and where it belongs in a given translation, English-Spanish, written by hand.

docs/annotation.md has the conventions. The file is JSON, one sentence a line, beside the gold alignments.
"""

from __future__ import annotations

from dataclasses import dataclass

from sightline.data.gold import GOLD_FOLDER
from sightline.files import read_lines
from sightline.json_files import check_fields, parse_json

MARKED_UP_FILE = GOLD_FOLDER / "markup.jsonl"


@dataclass(frozen=True)
class MarkedUp:
    """A source with markup, its translation without tags, the translation with them, and what the sentence shows.

    `shows` is a kind (`nested`, `break`, ...), a colon, and a few words. The translation has its placeholders and
    entities, as a translator would have left them.
    """

    source: str
    target: str
    expected: str
    shows: str

    @property
    def kind(self) -> str:
        return self.shows.partition(":")[0]


def read_marked_up() -> list[MarkedUp]:
    """Read the sentences with markup of the package."""
    fields = {"source": str, "target": str, "expected": str, "shows": str}
    return [MarkedUp(**check_fields(parse_json(line), fields)) for line in read_lines(MARKED_UP_FILE)]
