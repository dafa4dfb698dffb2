"""Sentence pairs: every way of reading them, what is left out, and that no held-out sentence is trained on."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.data.corpora import TextPair
from sightline.errors import InputError
from sightline.training.corpus import Corpora, _hold_out, _without_seen, read_corpora, sentence_key
from sightline.training.recipe import CorpusSettings, DataSettings, read_recipe

SOURCES = ["The cat sleeps.", "A dog sees it!", "the cat sleeps", "", "Yes.", "Yes.", "No.", "Perhaps so."]
TARGETS = ["El gato duerme.", "Un perro lo ve.", "Duerme el gato.", "Nada.", "Sí.", "Sí.", "No.", "Quizá."]


def _read(folder: Path, seed: int = 1, **data: Any) -> Corpora:
    read = read_recipe({"data": data, "training": {"steps": 1}})
    return read_corpora(read.data, folder, seed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.en").write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    with gzip.open(tmp_path / "text.es.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(TARGETS) + "\n")
    rows = [f"x\t{target}\t{source}" for source, target in zip(SOURCES, TARGETS, strict=True)]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "dev.en").write_text("A dog sees it.\n", encoding="utf-8")
    (tmp_path / "dev.es").write_text("Lo ve un perro.\n", encoding="utf-8")
    return tmp_path


FILES = {"source": "text.en", "target": "text.es.gz"}
DEV = {"source": "dev.en", "target": "dev.es"}


def test_two_files_and_columns_give_the_same_pairs(folder: Path) -> None:
    from_files = _read(folder, train=FILES, dev=DEV)
    from_columns = _read(folder, train={"pairs": "pairs.tsv", "columns": [2, 1]}, dev=DEV)
    assert from_files == from_columns
    assert from_files.dev == [("A dog sees it.", "Lo ve un perro.")]
    assert from_files.train == [
        ("The cat sleeps.", "El gato duerme."),
        ("the cat sleeps", "Duerme el gato."),
        ("Yes.", "Sí."),
        ("No.", "No."),
        ("Perhaps so.", "Quizá."),
    ]
    assert from_files.skipped == {"with an empty side": 1, "repeated": 1, "of a held-out sentence": 1}
    assert "5 pairs to train on, 1 for dev, 0 for test; left out: 1 with an empty side" in from_files.summary()


def test_a_line_of_ten_thousand_words_is_skipped_and_counted(folder: Path) -> None:
    (folder / "long.en").write_text("word " * 10_000 + "\nA short one.\n", encoding="utf-8")
    (folder / "long.es").write_text("Palabra.\nUno corto.\n", encoding="utf-8")
    corpora = _read(folder, train={"source": "long.en", "target": "long.es"}, dev=DEV)
    assert corpora.train == [("A short one.", "Uno corto.")]
    assert corpora.skipped == {"longer than 100 words": 1}
    assert "1 longer than 100 words" in corpora.summary()


def test_only_the_first_sentences_are_read_if_so_many_are_asked_for(folder: Path) -> None:
    corpora = _read(folder, train=FILES | {"sentences": 1}, dev=DEV)
    assert corpora.train == [("The cat sleeps.", "El gato duerme.")]


def test_all_pairs_of_a_held_out_source_leave_the_training_text(folder: Path) -> None:
    for seed in range(8):
        corpora = _read(folder, seed, train=FILES, dev={"held_out": 1}, test={"held_out": 2})
        held_out = {sentence_key(source) for source, _ in corpora.dev + corpora.test}
        assert len(held_out) == 3, "the two cats are one sentence"
        assert not held_out & {sentence_key(source) for source, _ in corpora.train}
        assert len(corpora.train) + corpora.skipped["of a held-out sentence"] == 6
    assert _read(folder, 1, train=FILES, dev={"held_out": 2}) == _read(folder, 1, train=FILES, dev={"held_out": 2})


def test_several_corpora_are_held_out_of_one_by_one_and_trained_on_together(folder: Path) -> None:
    rows = [f"Number {number}.\tNúmero {number}." for number in range(20)]
    (folder / "numbers.tsv").write_text("\n".join(rows) + "\nYes.\tSí.\n", encoding="utf-8")
    corpora = _read(folder, train=[FILES, {"pairs": "numbers.tsv"}], dev={"held_out": 2}, test={"held_out": 1})
    for held_out, each in ((corpora.dev, 2), (corpora.test, 1)):
        assert [source.startswith("Number") for source, _ in held_out] == [False] * each + [True] * each
    seen = {sentence_key(source) for source, _ in corpora.dev + corpora.test}
    assert not seen & {sentence_key(source) for source, _ in corpora.train}
    assert len({pair for pair in corpora.train if pair[0].startswith("Number")}) == 17
    assert sum(pair == ("Yes.", "Sí.") for pair in corpora.train) <= 1, "both corpora have it"


MISTAKES = [
    ({"train": [], "dev": DEV}, "data.train is an empty list"),
    ({"train": [FILES, {"pears": "a"}], "dev": DEV}, "no key 'data.train.pears'. Did you mean 'data.train.pairs'"),
    ({"train": {"source": "none.en", "target": "text.es.gz"}, "dev": DEV}, "There is no file .*none.en"),
    (
        {"train": {"source": "text.en", "target": "dev.es"}, "dev": DEV},
        "dev.es ends after line 1, but .*text.en goes on",
    ),
    ({"train": {"pairs": "pairs.tsv", "columns": [0, 7]}, "dev": DEV}, "line 1: 3 columns, but number 7"),
    ({"train": FILES, "dev": {"held_out": 5}}, "5 source sentences cannot be held out of 5 different ones"),
    ({"train": DEV, "dev": DEV}, "Nothing is left to train on"),
    ({"train": FILES, "dev": DEV, "max_words": 1}, "data.dev has no usable pair"),
    ({"train": DEV, "dev": FILES, "max_words": 1}, "The training text has no usable pair: 1 are left out, longer than"),
]


def test_a_corpus_may_come_several_times_but_not_what_is_held_out(folder: Path) -> None:
    (folder / "more.tsv").write_text("Maybe.\tTal vez.\nYes.\tSí.\n", encoding="utf-8")
    read = _read(folder, train=[FILES, {"pairs": "more.tsv", "columns": [0, 1], "times": 3}], dev=DEV)
    counts = Counter(read.train)
    assert counts["Maybe.", "Tal vez."] == 3
    assert counts["Yes.", "Sí."] == 3
    assert counts["No.", "No."] == 1
    assert ("A dog sees it!", "Un perro lo ve.") not in counts
    again = _read(folder, train=FILES | {"times": 2}, dev=DEV)
    assert Counter(again.train) == Counter(2 * _read(folder, train=FILES, dev=DEV).train)


@pytest.mark.parametrize(("data", "sentence"), MISTAKES)
def test_mistakes_are_named(data: dict[str, Any], sentence: str, folder: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        _read(folder, **data)


def test_a_missing_file_is_named_with_the_places_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = folder / "corpora"
    corpora.mkdir()
    monkeypatch.setenv("SIGHTLINE_DATA", str(corpora))
    with pytest.raises(InputError, match=f"There is no file none.en, neither in {folder} nor in {corpora}"):
        _read(folder, train={"source": "none.en", "target": "dev.es"}, dev=DEV)
    (corpora / "none.en").write_text("One.\n", encoding="utf-8")
    assert _read(folder, train={"source": "none.en", "target": "dev.es"}, dev=FILES).train


def test_the_hansards_are_cleaned_in_either_direction(tmp_path: Path) -> None:
    for name, line in {"a.en": "Mr. Speaker, yes.", "a.fr": "Qu'en est-il?", "b.en": "No.", "b.fr": "Non."}.items():
        (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    english = _read(
        tmp_path,
        train={"source": "a.en", "target": "a.fr"},
        dev={"source": "b.en", "target": "b.fr"},
        languages=["en", "fr"],
        clean="hansard",
    )
    french = _read(
        tmp_path,
        train={"source": "a.fr", "target": "a.en"},
        dev={"source": "b.fr", "target": "b.en"},
        languages=["fr", "en"],
        clean="hansard",
    )
    assert english.train == [("mr. speaker , yes .", "que en est - il ?")]
    assert french.train == [english.train[0][::-1]]


sentences = st.text("ab .!B", min_size=1, max_size=4).filter(str.strip)
pairs = st.lists(st.tuples(sentences, sentences), min_size=6, max_size=40)


@settings(max_examples=40)
@given(pairs, st.integers(0, 3), st.booleans(), st.randoms())
def test_no_held_out_sentence_is_seen(pairs: list[TextPair], seed: int, both_ways: bool, random: Any) -> None:
    sources = {sentence_key(source) for source, _ in pairs}
    if len(sources) < 4:
        return
    held_out = _hold_out(pairs, {"dev": 2, "test": 1}, seed)
    gone = held_out["dev"] + held_out["test"]
    train = _without_seen(pairs, gone, both_ways, Counter())
    for side in (0, 1) if both_ways else (0,):
        seen = {sentence_key(pair[side]) for pair in train}
        assert not seen & {sentence_key(pair[side]) for pair in gone}
    shuffled = random.sample(pairs, len(pairs))
    chosen = [
        {sentence_key(pair[0]) for pair in _hold_out(order, {"dev": 2}, seed)["dev"]} for order in (pairs, shuffled)
    ]
    assert chosen[0] == chosen[1], "the choice does not depend on the order of the text"


def test_joined_pairs_are_counted_as_pairs_and_texts(tmp_path: Path) -> None:
    (tmp_path / "all.tsv").write_text("".join(f"a {n}\tb {n}\n" for n in range(50)), encoding="utf-8")
    corpora = _read(tmp_path, train={"pairs": "all.tsv"}, dev={"held_out": 10}, joined=0.5)
    assert corpora.train_pairs == 40
    assert 20 < len(corpora.train) < 40
    assert corpora.summary().startswith(f"40 pairs to train on in {len(corpora.train)} texts, 10 for dev, 0 for test")
    assert all(len(source.split()) == 2 for source, _ in corpora.dev)


def test_test_pairs_are_known_by_the_name_of_their_corpus(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        lines = [f"{name} {number} a\t{name} {number} b\n" for number in range(9)]
        (tmp_path / name / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    corpora = tuple(CorpusSettings(pairs=f"{name}/pairs.tsv") for name in ("first", "second"))
    held_out = CorpusSettings(held_out=2)
    found = read_corpora(DataSettings(train=corpora, dev=held_out, test=held_out), tmp_path, seed=1)
    assert list(found.tests) == ["first", "second"]
    assert [*found.tests["first"], *found.tests["second"]] == found.test
    assert all(pair[0].startswith(name) for name, pairs in found.tests.items() for pair in pairs)
    own = CorpusSettings(pairs="second/pairs.tsv")
    found = read_corpora(DataSettings(train=corpora[0], dev=held_out, test=own), tmp_path, seed=1)
    assert found.tests == {"second": found.test}
    assert CorpusSettings(source="text.en.gz", target="text.es.gz").name == "text"
