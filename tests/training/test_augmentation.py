"""Pairs joined into longer texts, and marks set apart."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.training.augmentation import MOST_JOINED, augment, space_marks

PAIRS = [(f"one{number}, two.", f"¡uno{number}!") for number in range(100)]


@given(st.floats(0, 0.99), st.floats(0, 0.99), st.integers(0, 5))
def test_every_pair_is_trained_on_once_whatever_is_joined(joined: float, spaced: float, seed: int) -> None:
    for side in (0, 1):
        words = Counter(space_marks(" ".join(pair[side] for pair in PAIRS)).split())
        texts = augment(PAIRS, joined, spaced, seed)
        assert Counter(space_marks(" ".join(text[side] for text in texts)).split()) == words


def test_the_shares_are_those_asked_for() -> None:
    texts = augment(PAIRS, joined=0.4, spaced=0.0, seed=1)
    sizes = Counter(source.count("one") for source, _ in texts)
    assert sizes[1] in (60, 61), "one joined pair may be left over"
    assert max(sizes) <= MOST_JOINED
    assert all(source.count("one") == target.count("uno") for source, target in texts)
    apart = sum(" ." in source for source, _ in augment(PAIRS * 10, joined=0.0, spaced=0.3, seed=1))
    assert 250 < apart < 350


def test_both_sides_of_a_text_have_their_marks_apart() -> None:
    for source, target in augment(PAIRS, joined=0.5, spaced=0.5, seed=2):
        assert (" ." in source) == (" !" in target)


def test_without_shares_nothing_changes() -> None:
    assert augment(PAIRS, joined=0.0, spaced=0.0, seed=1) == PAIRS


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
