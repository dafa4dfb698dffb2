"""Running English text, document by document, as it was written: for encoders that were trained on such text.

| set | what |
|---|---|
| imdb, yelp | reviews |
| 20news-sports | newsgroup messages, without headers, quotes and signatures |
| package | the sentences of the gold alignments in the package, in texts of eight: needs no file |
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from sightline.data.gold import ALL_REGISTERS, read_gold
from sightline.data.labelled import read_rows, strip_message
from sightline.errors import unknown_name

SENTENCES_OF_A_TEXT = 8


def read_documents(name: str, folder: Path) -> list[str]:
    """Read the documents of a set, each on one line, in an order that depends on nothing but the text."""
    if name not in DOCUMENTS:
        raise unknown_name("set of documents", name, DOCUMENTS)
    texts = {" ".join(text.split()) for text in DOCUMENTS[name](folder / name)} - {""}
    return sorted(texts, key=lambda text: hashlib.blake2b(text.encode()).digest())


def _read_reviews(file: str) -> Callable[[Path], Iterator[str]]:
    def read(folder: Path) -> Iterator[str]:
        return (row["text"].replace("<br />", " ") for row in read_rows(folder / file, ("text",)))

    return read


def _read_messages(folder: Path) -> Iterator[str]:
    return (strip_message(row["text"]) for row in read_rows(folder / "test.jsonl.gz", ("text",)))


def _read_package(_folder: Path) -> Iterator[str]:
    for register in ALL_REGISTERS:
        sentences = [pair.source for pair in read_gold(register)]
        for start in range(0, len(sentences), SENTENCES_OF_A_TEXT):
            yield " ".join(sentences[start : start + SENTENCES_OF_A_TEXT])


DOCUMENTS: dict[str, Callable[[Path], Iterator[str]]] = {
    "imdb": _read_reviews("test.jsonl.gz"),
    "yelp": _read_reviews("test.csv.gz"),
    "20news-sports": _read_messages,
    "package": _read_package,
}
