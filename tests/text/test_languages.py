"""Telling two languages apart: scores by their definition, what does not count, the file beside a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import InputError
from sightline.text.languages import FILE_NAME, LIMIT, SURE, LanguageGuess, listed_words, pieces_of, read_language_guess

GUESS = LanguageGuess(("en", "es"), {"the": -3.5, "no": 2.0, "el": 3.0}, {" c": -1.0, "at": -0.5, "o ": 0.75, "ñ": 5.0})


def test_pieces_are_the_n_grams_of_a_word_between_spaces() -> None:
    assert pieces_of("no") == {" n", " no", " no ", "n", "no", "no ", "o", "o "}
    assert " madr" not in pieces_of("madrid")
    assert {"madr", "drid", "rid "} <= pieces_of("madrid")


def test_a_listed_word_has_its_own_score_and_others_those_of_their_pieces() -> None:
    assert GUESS.score("the cat gato") == pytest.approx(-3.5 + (-1.0 - 0.5) + (0.75 - 0.5))
    assert GUESS.score("no") == 2.0  # not also that of its piece "o "
    assert GUESS.score("ñandú") == LIMIT
    assert GUESS.score(["the", "cat", "gato"]) == GUESS.score("the cat gato")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat, 3 times!", ["the", "cat", "times"]),
        ("Mary met José in Madrid.", ["mary", "met", "in"]),
        ("¿DÓNDE ESTÁ?", ["dónde", "está"]),
        ("cafe\u0301", ["café"]),
        ("12:30 ...", []),
        ("", []),
    ],
)
def test_which_words_count(text: str, words: list[str]) -> None:
    assert list(listed_words(text)) == words


@pytest.mark.parametrize(
    ("text", "language"),
    [("the", "en"), ("el", "es"), ("No.", None), ("1987", None), ("", None), ("el the", None), ("el no el", "es")],
)
def test_a_language_is_named_where_it_is_sure(text: str, language: str | None) -> None:
    assert abs(GUESS.score("no")) < SURE
    assert GUESS.language_of(text) == language


def test_a_pair_is_told_by_both_sides() -> None:
    assert GUESS.source_language_of("No.", "the no") == "es"
    assert GUESS.source_language_of("the no", "No.") == "en"
    assert GUESS.source_language_of("No.", "No.") is None
    assert GUESS.source_language_of("", "el") == "en"


@given(st.text(), st.text())
def test_a_flipped_pair_has_the_other_language(source: str, target: str) -> None:
    straight, flipped = GUESS.source_language_of(source, target), GUESS.source_language_of(target, source)
    assert (straight is None) == (flipped is None)
    assert straight is None or {straight, flipped} == {"en", "es"}


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    assert read_language_guess(tmp_path) is None
    GUESS.save(tmp_path)
    assert read_language_guess(tmp_path) == GUESS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "its format is 2, not 1"),
        ({"languages": ["en"]}, "does not name two languages"),
        ({"languages": ["en", "en"]}, "does not name two languages"),
        ({"languages": [1, 2]}, "does not name two languages"),
        ({"words": {"the": "no"}}, "its field 'the' is a text"),
        ({"pieces": [1]}, "its field 'pieces' is a list"),
    ],
)
def test_a_damaged_file(tmp_path: Path, change: dict[str, object], message: str) -> None:
    GUESS.save(tmp_path)
    path = tmp_path / FILE_NAME
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_language_guess(tmp_path)
    assert "Restore it from a copy, or remove it" in str(caught.value)
    path.write_bytes(b'{"format": 1, "wor')
    with pytest.raises(InputError, match="is damaged: it is not JSON"):
        read_language_guess(tmp_path)
