"""The Hansards: cleaning by example, and what comes out of the real files."""

import pytest

from sightline.data.corpora import data_path
from sightline.data.hansard import (
    clean_english,
    clean_french,
    plain_letters,
    read_test_set,
    read_training_pairs,
)
from sightline.errors import InputError


@pytest.fixture
def folder():
    try:
        return data_path("hansard-en-fr")
    except InputError as absent:
        pytest.skip(str(absent))


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("Mr. Speaker, I say: no!", "mr. speaker , i say : no !"),
        ("The Government's two-thirds at 3 p.m.", "the government 's two - thirds at 3 p.m."),
        ("$1,122,000.50 (or 6.42%) on the 36th", "$ 1,122,000.50 ( or 6.42 % ) on the 36th"),
        ("   ", ""),
    ],
)
def test_english(raw, clean):
    assert clean_english(raw) == clean
    assert clean_english(clean) == clean


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("L'an dernier, c'est-à-dire...", "le an dernier , ce est - a - dire ..."),
        ("Lorsqu'il s'agit du droit des autres", "lorsque il se agit de le droit de les autres"),
        ("Aujourd'hui au Sénat, aux côtés de M. Roy", "aujourd' hui a le senat , a les cotes de m. roy"),
    ],
)
def test_french(raw, clean):
    assert clean_french(raw) == clean
    assert clean_french(clean) == clean


def test_plain_letters():
    assert plain_letters("ÉTÉ Cœur naïve") == "ete coeur naive"


def test_the_test_set_is_already_in_the_form_that_cleaning_gives(folder):
    test = read_test_set(folder)
    assert len(test.pairs) == len(test.gold) == 447
    assert sum(map(len, test.gold)) == 4038
    assert sum(len(gold.possible) for gold in test.gold) == 17438
    changed = sum(clean_french(" ".join(french)).split() != french for _, french in test.pairs)
    changed += sum(clean_english(" ".join(english)).split() != english for english, _ in test.pairs)
    assert changed <= 5, "only oddities such as 'le1er' and 'dû' differ"


@pytest.mark.slow
def test_training_pairs_are_distinct(folder):
    pairs = list(read_training_pairs(folder))
    assert len(pairs) == len(set(pairs)) == 227_388
    assert all(english and french for english, french in pairs)
