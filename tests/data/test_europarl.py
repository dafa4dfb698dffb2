"""Europarl's text in the form of the RWTH test set."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.data.corpora import data_folder
from sightline.data.europarl import clean, plain_text, read_test_set
from sightline.errors import InputError


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Wir müssen, daß weiß ich, handeln!", "wir müssen , dass weiss ich , handeln !"),
        ("bzw. die Wirtschafts- und Sozialpolitik", "bzw. die wirtschafts- und sozialpolitik"),
        ("The Commission’s proposal (B4-0971/96)", "the commission 's proposal ( b4-0971 / 96 )"),
        ("the States’ 1,500.50 euro at 10:30...", "the states ' 1,500.50 euro at 10:30 ..."),
        ("CO2 – 5% of it; “so”", 'co2 - 5 % of it ; " so "'),
        ("It ends with etc. and a.m.", "it ends with etc. and a.m."),
        ("1997. Then", "1997 . then"),
    ],
)
def test_text_is_tokenised_as_the_test_set_is(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text())
def test_cleaning_loses_no_letter_and_is_done_once(text: str) -> None:
    assert "".join(clean(text).split()) == "".join(plain_text(text).split())
    assert clean(clean(text)) == clean(text)


def test_the_test_set_is_in_that_form_already() -> None:
    try:
        folder = data_folder() / "rwth-de-en"
    except InputError as error:
        pytest.skip(str(error))
    test_set = read_test_set(Path(folder))
    assert len(test_set.pairs) == len(test_set.gold) == 508
    changed = [words for pair in test_set.pairs for words in pair if clean(" ".join(words)).split() != words]
    assert len(changed) < 0.02 * 2 * 508, changed[:5]
