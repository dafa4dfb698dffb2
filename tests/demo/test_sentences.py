"""The sentences chosen for the demo: in both languages, each with a word on what it shows, none of them gold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import sightline.demo
from sightline.data.gold import ALL_REGISTERS, read_gold
from sightline.files import read_lines
from sightline.json_files import check_fields, parse_json

FILE = Path(sightline.demo.__file__).parent / "sentences.jsonl"


def test_sentences_are_complete_and_different() -> None:
    fields = {"language": str, "text": str, "shows": str}
    sentences = [check_fields(parse_json(line), fields) for line in read_lines(FILE)]
    assert Counter(one["language"] for one in sentences) == {"en": 12, "es": 6}
    assert len({one["text"] for one in sentences}) == 18
    kinds = {one["shows"].partition(": ")[0] for one in sentences}
    assert {"reordering", "idiom", "negation", "long distance", "names", "numbers"} <= kinds
    assert all(one["shows"].partition(": ")[2] for one in sentences)
    gold = {"".join(text.split()) for pair in read_gold(*ALL_REGISTERS) for text in (pair.source, pair.target)}
    assert not gold & {"".join(one["text"].split()) for one in sentences}
