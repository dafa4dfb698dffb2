"""Documents: running text as it was written, cleaned, in an order that depends on nothing but the text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sightline.data.documents import read_documents
from sightline.data.gold import ALL_REGISTERS, read_gold
from sightline.errors import InputError


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def test_reviews(tmp_path: Path) -> None:
    reviews = ["Good film.<br /><br />It's 2 hours.", "Bad  film.", "Bad film.", " "]
    for name, order in (("a", reviews), ("b", reviews[::-1])):
        rows = [json.dumps({"text": text, "label": 0, "id": 1, "rating": 1}) for text in order]
        _write(tmp_path / name / "imdb" / "test.jsonl.gz", "\n".join(rows) + "\n")
    found = read_documents("imdb", tmp_path / "a")
    assert sorted(found) == ["Bad film.", "Good film. It's 2 hours."]
    assert read_documents("imdb", tmp_path / "b") == found
    _write(tmp_path / "yelp" / "test.csv.gz", 'text,label1,label2\n"Fine, I say.",x,Review Stars: 4\n')
    assert read_documents("yelp", tmp_path) == ["Fine, I say."]


def test_messages_have_no_header_and_no_quotes(tmp_path: Path) -> None:
    message = "From: someone\nSubject: hockey\n\nHe wrote:\n> old text\nThe 12 teams\nplay."
    row = json.dumps({"text": message, "label": 1})
    _write(tmp_path / "20news-sports" / "test.jsonl.gz", row + "\n")
    assert read_documents("20news-sports", tmp_path) == ["The 12 teams play."]


def test_sentences_of_the_package() -> None:
    texts = read_documents("package", Path())
    sentences = [pair.source for register in ALL_REGISTERS for pair in read_gold(register)]
    assert sum(len(text.split()) for text in texts) == sum(len(sentence.split()) for sentence in sentences)
    assert any(text.startswith(" ".join(sentences[:8])) for text in texts)


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(InputError, match="set of documents"):
        read_documents("nothing", Path())
