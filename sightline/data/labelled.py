"""Readers of labelled text: the sets that papers on attention in classifiers use, and a user's own files.

A set is read from the folder of corpora by its name and split, cleaned as the papers do, and given in an order that
depends on nothing but the text (some sets are sorted by label). Words are lower-cased and separated by spaces, so that
what white space delimits is a word of the vocabulary.

| set | task | cleaning |
|---|---|---|
| imdb | sentiment of film reviews | `<br />` is a space |
| sst | sentiment of sentences | more than 5 words, fewer than the longest: 6,355 / 1,725, as Meister et al. 2021 |
| 20news-sports | baseball or hockey | headers, quotes and signatures are stripped; numbers are unknown words |
| agnews | world or business news | numbers are unknown words (Snell et al. 2021); no text is in two splits |
| yelp | at most 2 stars, or at least 4 | none |
| generated | made-up reviews: which words of opinion prevail | needs no file |
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sightline.errors import InputError
from sightline.files import read_lines
from sightline.json_files import check_fields, parse_json

UNKNOWN = "<unk>"
TOKENS = re.compile(rf"{UNKNOWN}|\w+(?:['’]\w+)*|[^\w\s]")
LONG_NUMBER = re.compile(r"\b\d{2,}\b")
SPLITS = ("train", "dev", "test")


class Labelled(NamedTuple):
    """A text, its words separated by spaces, and the name of its label."""

    text: str
    label: str


def read_labelled(name: str, split: str, folder: Path) -> list[Labelled]:
    """Read a split of a set that the folder of corpora holds, in an order that is the same for all."""
    read = SETS[name]
    return shuffled(read(folder / name, split))


def read_labelled_file(path: Path) -> list[Labelled]:
    """Read a user's file: `.jsonl` or `.csv`, perhaps with `.gz`, with the fields `text` and `label`."""
    return shuffled(Labelled(split_into_words(row["text"]), row["label"]) for row in read_rows(path, ("text", "label")))


def split_into_words(text: str) -> str:
    """Lower-case a text and put spaces between its words and marks."""
    return " ".join(TOKENS.findall(text.lower()))


def shuffled(examples: Iterable[Labelled]) -> list[Labelled]:
    """Order texts by their hash: neither their order in the file nor the rest of them matters."""
    return sorted(examples, key=lambda one: hashlib.blake2b(one.text.encode()).digest())


def strip_message(message: str) -> str:
    """Keep what the writer of a newsgroup message says: no header, no quotes, no signature."""
    _, _, body = message.partition("\n\n")
    lines = [line for line in body.split("\n") if not _QUOTED.search(line)]
    for number in range(len(lines) - 1, 0, -1):  # a signature is what follows the last line of dashes, or such
        if lines[number].strip() and not lines[number].strip(" -_=~*#"):
            return "\n".join(lines[:number]) if number > len(lines) - SIGNATURE_LINES else "\n".join(lines)
    return "\n".join(lines)


_QUOTED = re.compile(
    r"^\s*[>|:}]|\b(?:writes|wrote|says|said)( in [^:]*)?:\s*$|^In article|^Quoted from", re.IGNORECASE
)
SIGNATURE_LINES = 12


def _read_imdb(folder: Path, split: str) -> Iterator[Labelled]:
    for row in read_rows(
        _split_file(folder, split, {"train": "train.jsonl.gz", "test": "test.jsonl.gz"}), ("text", "label")
    ):
        text = row["text"].replace("<br />", " ")
        yield Labelled(split_into_words(text), _class(row, "label", ("negative", "positive")))


def _read_sst(folder: Path, split: str) -> Iterator[Labelled]:
    path = _split_file(folder, split, dict.fromkeys(SPLITS, "sst_dataset.csv"))
    rows = [row for row in read_rows(path, ("text", "label", "exp_split")) if row["exp_split"] == split]
    lengths = [len(row["text"].split()) for row in rows]
    for row, length in zip(rows, lengths, strict=True):
        if SHORTEST < length < max(lengths):
            yield Labelled(row["text"], _class(row, "label", ("negative", "positive")))


SHORTEST = 5


def _read_newsgroups(folder: Path, split: str) -> Iterator[Labelled]:
    for row in read_rows(
        _split_file(folder, split, {"train": "train.jsonl.gz", "test": "test.jsonl.gz"}), ("text", "label")
    ):
        text = split_into_words(_without_numbers(strip_message(row["text"])))
        if text:
            yield Labelled(text, _class(row, "label", ("baseball", "hockey")))


def _read_agnews(folder: Path, split: str) -> Iterator[Labelled]:
    classes = {"1": "world", "3": "business"}
    classes_of_train = {"0": "world", "2": "business"}
    test = {}
    for row in read_rows(
        _split_file(folder, split, dict.fromkeys(("train", "test"), "test.csv")), (), ("class", "title", "text")
    ):
        test[split_into_words(_without_numbers(row["text"]))] = classes.get(row["class"])
    if split == "test":
        yield from (Labelled(text, label) for text, label in test.items() if label)
        return
    seen = set(test)
    for name in ("train_a.csv", "train_b.csv"):
        for row in read_rows(folder / name, (), ("class", "text")):
            text = split_into_words(_without_numbers(row["text"]))
            label = classes_of_train.get(row["class"])
            if label and text not in seen:
                yield Labelled(text, label)
            seen.add(text)


def _read_yelp(folder: Path, split: str) -> Iterator[Labelled]:
    path = _split_file(folder, split, {"train": "dev.csv.gz", "test": "test.csv.gz"})
    for row in read_rows(path, ("text", "label2")):
        try:
            stars = float(row["label2"].rpartition(":")[2])
        except ValueError:
            raise InputError(f"{path}: the label {row['label2']!r} has no number of stars.") from None
        if stars <= 2 or stars >= 4:
            yield Labelled(split_into_words(row["text"]), "negative" if stars <= 2 else "positive")


def _generate_reviews(folder: Path, split: str) -> Iterator[Labelled]:
    """Make reviews of neutral words, a few of them with opinions; the opinion of most of those is the label."""
    rng = np.random.default_rng(SPLITS.index(split))
    opinions = {label: [f"{label}{number}" for number in range(OPINION_WORDS)] for label in ("negative", "positive")}
    frequencies = 1 / np.arange(1, NEUTRAL_WORDS + 1)
    for _ in range(GENERATED_TEXTS):
        label, other = rng.permutation(list(opinions)).tolist()
        words = [f"word{n}" for n in rng.choice(NEUTRAL_WORDS, rng.integers(8, 40), p=frequencies / frequencies.sum())]
        for side, count in ((label, rng.integers(2, 5)), (other, rng.integers(0, 2))):
            for word in rng.choice(opinions[side], count):
                words.insert(int(rng.integers(len(words) + 1)), str(word))
        yield Labelled(" ".join(words), label)


GENERATED_TEXTS, NEUTRAL_WORDS, OPINION_WORDS = 2000, 300, 20

SETS: dict[str, Callable[[Path, str], Iterator[Labelled]]] = {
    "imdb": _read_imdb,
    "sst": _read_sst,
    "20news-sports": _read_newsgroups,
    "agnews": _read_agnews,
    "yelp": _read_yelp,
    "generated": _generate_reviews,
}


def _without_numbers(text: str) -> str:
    return LONG_NUMBER.sub(f" {UNKNOWN} ", text)


def _split_file(folder: Path, split: str, files: dict[str, str]) -> Path:
    if split not in files:
        raise InputError(f"{folder.name} has no {split} split, only {', '.join(files)}: hold some of train out.")
    return folder / files[split]


def read_rows(path: Path, needed: tuple[str, ...], names: tuple[str, ...] | None = None) -> Iterator[dict[str, str]]:
    """Yield the rows of a file of JSON lines or comma-separated values as texts by name.

    `names` are the columns of a file that does not name them itself.
    """
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    rows = _json_rows(path) if ".jsonl" in path.suffixes else _csv_rows(path, names)
    for number, row in enumerate(rows, start=1):
        missing = [name for name in needed if row.get(name) is None]
        if missing:
            raise InputError(f"{path}, row {number}: there is no field {missing[0]!r}.")
        odd = [name for name in needed if isinstance(row[name], list | dict)]
        if odd:
            raise InputError(f"{path}, row {number}: the field {odd[0]!r} should be a text or a number.")
        yield {name: str(value) for name, value in row.items() if name is not None}


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            yield check_fields(parse_json(line), {})
        except ValueError as error:
            raise InputError(f"{path}, line {number}: each line should be an object in JSON, but {error}.") from None


def _csv_rows(path: Path, names: tuple[str, ...] | None) -> Iterator[dict[str, Any]]:
    rows = csv.DictReader((line + "\n" for line in read_lines(path)), names)
    try:
        yield from rows
    except csv.Error as error:
        raise InputError(f"{path}, line {rows.line_num + 1}: these are not comma-separated values ({error}).") from None


def _class(row: dict[str, str], field: str, classes: tuple[str, ...]) -> str:
    """Name the class that a row gives by its number."""
    if row[field] not in map(str, range(len(classes))):
        raise InputError(f"The field {field!r} is {row[field]!r}, and should be from 0 to {len(classes) - 1}.")
    return classes[int(row[field])]
