"""Pairs joined into longer texts, marks set apart, names and numbers invented."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.training.augmentation import MOST_JOINED, augment, rename, shared_names, space_marks

PAIRS = [(f"one{number}, two.", f"¡uno{number}!") for number in range(100)]


def _augment(pairs: list[tuple[str, str]] = PAIRS, **changes: Any) -> list[tuple[str, str]]:
    return augment(pairs, **{"joined": 0.0, "spaced": 0.0, "renamed": 0.0, "max_words": 100, "seed": 1} | changes)


@given(st.floats(0, 0.99), st.floats(0, 0.99), st.integers(0, 5))
def test_every_pair_is_trained_on_once_whatever_is_joined(joined: float, spaced: float, seed: int) -> None:
    for side in (0, 1):
        words = Counter(space_marks(" ".join(pair[side] for pair in PAIRS)).split())
        texts = _augment(joined=joined, spaced=spaced, seed=seed)
        assert Counter(space_marks(" ".join(text[side] for text in texts)).split()) == words


def test_the_shares_are_those_asked_for() -> None:
    texts = _augment(joined=0.4)
    sizes = Counter(source.count("one") for source, _ in texts)
    assert sizes[1] in (60, 61), "one joined pair may be left over"
    assert max(sizes) <= MOST_JOINED
    assert all(source.count("one") == target.count("uno") for source, target in texts)
    apart = sum(" ." in source for source, _ in _augment(PAIRS * 10, spaced=0.3))
    assert 250 < apart < 350


def test_both_sides_of_a_text_have_their_marks_apart() -> None:
    for source, target in _augment(joined=0.5, spaced=0.5, seed=2):
        assert (" ." in source) == (" !" in target)


def test_without_shares_nothing_changes() -> None:
    assert _augment() == PAIRS


@pytest.mark.parametrize(
    ("text", "spaced"),
    [
        ("¿Dónde estás, Tom?", "¿ Dónde estás , Tom ?"),
        ("I don't know: a well-known 'fact'.", "I don't know : a well-known 'fact' ."),
        ("  already , apart  ", "already , apart"),
    ],
)
def test_marks_are_words_of_their_own(text: str, spaced: str) -> None:
    assert space_marks(text) == spaced


def test_joined_texts_keep_to_the_greatest_number_of_words() -> None:
    texts = _augment(joined=0.9, max_words=6)  # two words a source
    sizes = Counter(source.count("one") for source, _ in texts)
    assert set(sizes) <= {1, 2, 3}
    assert sizes[3] > 10


@pytest.mark.parametrize(
    ("source", "target", "shared"),
    [
        ("I saw Tom in Boston.", "Vi a Tom en Boston.", ["Tom", "Boston"]),
        ("In 2012, 14:30 was late.", "En 2012, las 14:30 era tarde.", ["2012", "14:30"]),
        ("Tom knows Tom.", "Tom se conoce.", []),  # twice in one
        ("The NATO summit", "La cumbre NATO", []),  # an acronym may have a translation
        ("a hotel in May", "un hotel en mayo", []),
        ("Article 7(g) of it", "Artículo 7(g) de él", ["7"]),
        ("the G20 on CO2 in 3a", "el G20 sobre CO2 en 3a", []),  # parts of words
    ],
)
def test_names_and_numbers_that_both_sides_have_once_are_shared(source: str, target: str, shared: list[str]) -> None:
    assert shared_names(source, target) == shared


def test_a_renamed_pair_has_the_same_invented_name_on_both_sides() -> None:
    names = ["Barbara", "Clementine", "Montgomery", "Alexander"]
    pairs = [(f"Yesterday {name} slept.", f"Ayer durmió {name}.") for name in names] * 50
    renamed = rename(pairs, 0.5, np.random.default_rng(1))
    changed = [(old, new) for old, new in zip(pairs, renamed, strict=True) if old != new]
    assert 60 < len(changed) < 110, "half of 200, but for those that are given their own name again"
    for (old_source, _), (source, target) in changed:
        name, old = source.split()[1], old_source.split()[1]
        assert target == f"Ayer durmió {name}."
        assert name[0].isupper()
        assert name.endswith(old[len(old) // 2 :])


def test_an_invented_number_keeps_its_form() -> None:
    pairs = [("It cost 1,050.25 then.", "Costó 1,050.25 entonces.")] * 100
    numbers = {source.split()[2] for source, _ in rename(pairs, 0.9, np.random.default_rng(1))}
    assert len(numbers) > 50
    assert all(len(number) == 8 and number[1] == "," and number[5] == "." and number[0] != "0" for number in numbers)
