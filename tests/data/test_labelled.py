"""Labelled text: every set is cleaned as its papers do, every file is read or refused in one sentence."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from sightline.data.corpora import data_folder
from sightline.data.labelled import Labelled, read_labelled, read_labelled_file, split_into_words, strip_message
from sightline.errors import InputError


def _real(name: str) -> Path:
    try:
        folder = data_folder()
    except InputError:
        pytest.skip("there is no folder of real corpora")
    if not (folder / name).is_dir():
        pytest.skip(f"the folder of corpora has no {name}")
    return folder


def test_words_are_what_white_space_delimits() -> None:
    assert split_into_words("It's GOOD (really)... 5/10") == "it's good ( really ) . . . 5 / 10"


@pytest.mark.parametrize(("split", "sentences"), [("train", 6355), ("test", 1725)])
def test_sst_has_the_sentences_of_the_paper(split: str, sentences: int) -> None:
    assert len(read_labelled("sst", split, _real("sst"))) == sentences  # Meister et al. 2021, table 3


def test_newsgroups_lose_headers_quotes_and_signatures() -> None:
    examples = read_labelled("20news-sports", "test", _real("20news-sports"))
    assert len(examples) > 780
    assert Counter(example.label for example in examples)["hockey"] > 390
    with_header = [example for example in examples if "nntp - posting - host" in example.text]
    assert len(with_header) < 5  # one that a writer quoted is the writer's


def test_agnews_keeps_two_classes_and_no_text_twice() -> None:
    folder = _real("agnews")
    train, test = (read_labelled("agnews", split, folder) for split in ("train", "test"))
    assert Counter(example.label for example in test).keys() == {"world", "business"}
    texts = [example.text for example in [*train, *test]]
    assert len(set(texts)) == len(texts)
    assert not any(word.isdigit() and len(word) > 1 for text in texts for word in text.split())


def test_a_message_keeps_what_its_writer_says() -> None:
    message = (
        "From: a@b.c\nSubject: Goals\nLines: 9\n\nIn article <1@x> c@d.e writes:\n> Who won?\nThe Rangers did.\n"
        "And so it goes.\n----\nAnn, Goal University\n"
    )
    assert strip_message(message) == "The Rangers did.\nAnd so it goes."


def test_a_users_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,label\n"Good, very good.",yes\nBad.,no\n')
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text": "Good, very good.", "label": "yes"}) + "\n")
        file.write(json.dumps({"text": "Bad.", "label": "no"}) + "\n")
    expected = {Labelled("good , very good .", "yes"), Labelled("bad .", "no")}
    assert set(read_labelled_file(tmp_path / "a.csv")) == expected
    assert read_labelled_file(tmp_path / "a.csv") == read_labelled_file(tmp_path / "a.jsonl.gz")


def test_mistakes_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("words,label\nGood.,yes\n")
    with pytest.raises(InputError, match="row 1: there is no field 'text'"):
        read_labelled_file(tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_text('{"text": "Good.", "label": 1}\n{"text": \n')
    with pytest.raises(InputError, match="line 2: each line should be an object in JSON, but it is not JSON"):
        read_labelled_file(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="There is no file"):
        read_labelled("imdb", "train", tmp_path)
    with pytest.raises(InputError, match="imdb has no dev split"):
        read_labelled("imdb", "dev", tmp_path)


def test_generated_reviews_are_decided_by_their_words_of_opinion(tmp_path: Path) -> None:
    examples = read_labelled("generated", "train", tmp_path)
    assert examples == read_labelled("generated", "train", tmp_path)
    assert {e.text for e in examples}.isdisjoint(e.text for e in read_labelled("generated", "test", tmp_path))
    for text, label in examples:
        other = {"positive": "negative", "negative": "positive"}[label]
        assert text.count(label) > text.count(other)


DAMAGED = {
    "a.jsonl": (b'{"text": "a", "label": "\xff"}\n', "line 1: this is not UTF-8"),
    "b.jsonl": (
        b'{"text": "a", "label": "b"}\n[1]\n',
        "line 2: each line should be an object in JSON, but it holds a list",
    ),
    "c.jsonl": (b'{"text": "a", "label": ' + b"9" * 5000 + b"}", "line 1: .*too large"),
    "d.jsonl": (b"[" * 100_000, "line 1: .*nested more than 100 deep"),
    "e.jsonl": (b'{"text": ["a"], "label": 1}\n', "row 1: the field 'text' should be a text or a number"),
    "f.jsonl.gz": (gzip.compress(b'{"text": "a", "label": "b"}\n' * 99)[:-20], "is not a complete gzip file"),
    "g.jsonl.gz": (b"\x1f\x8b\x08\x00nonsense and more nonsense", "is not a complete gzip file"),
    "h.csv": (b"text,label\n\xff,b\n", "line 2: this is not UTF-8"),
    "i.csv": (b'text,label\n"' + b"a" * 200_000 + b'",b\n', "line 2: these are not comma-separated values"),
    "j.csv": (b"text,label\na\n", "row 1: there is no field 'label'"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_told_in_one_sentence(name: str, tmp_path: Path) -> None:
    content, message = DAMAGED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_labelled_file(tmp_path / name)


def test_labels_that_a_set_does_not_have_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "imdb"
    folder.mkdir()
    (folder / "test.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a", "label": "7"}\n'))
    with pytest.raises(InputError, match="'label' is '7', and should be from 0 to 1"):
        read_labelled("imdb", "test", tmp_path)
