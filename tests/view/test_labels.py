import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sightline.view.labels import Label, clip, clusters, right_to_left, visible

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # surrogates and controls too


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("cat", "cat"),
        ("▁the", "▁the"),
        ("[red]x[/red]", "[red]x[/red]"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\nb\t", r"a\nb\t"),
        ("\u2028", r"\u2028"),
        ("\u202eabc", r"\u202eabc"),
        ("\ud800", r"\ud800"),
        ("\ufffe", r"\ufffe"),
        ("\xa0", r"\xa0"),
        (" the ", "␣the␣"),
        ("   ", "␣␣␣"),
        ("New York", "New York"),
        ("", "∅"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\u200d", r"a\u200d"),
        ("\u200d", r"\u200d"),
        ("猫", "猫"),
    ],
)
def test_every_token_can_be_seen(token, shown):
    assert visible(token) == shown


@given(ANY_TEXT)
def test_no_label_can_act_or_vanish(token):
    shown = visible(token)
    assert cell_len(shown) > 0
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown)
    shown.encode("utf-8")


@given(st.text(st.characters(categories=("Lu", "Ll", "Lo", "Nd", "Po", "Sm")), min_size=1))
def test_ordinary_text_is_shown_as_it_is(token):
    assert visible(token) == token


@given(ANY_TEXT, st.integers(1, 12))
def test_clipped_text_fits_and_says_that_it_was_clipped(token, cells):
    text = visible(token)
    short = clip(text, cells)
    assert cell_len(short) <= cells
    assert short == text or short.endswith("…")


@given(ANY_TEXT)
def test_clusters_lose_nothing(text):
    assert "".join(clusters(text)) == text


def test_marks_stay_on_their_letters():
    assert clusters("cafe\u0301s") == ["c", "a", "f", "e\u0301", "s"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [(["the", "cat"], False), (["ذهب", "الولد", "."], True), (["שלום", "ok"], True), ([], False), (["."], False)],
)
def test_reading_direction(texts, expected):
    assert right_to_left([Label(text, False) for text in texts]) is expected
