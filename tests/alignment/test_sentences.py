"""Sentences of two texts, found by their punctuation and matched by their lengths."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.alignment.sentences import KINDS, Part, _cost, find_sentences, split_pair

WORDS = st.sampled_from(["a", "house", "Mr.", "end.", "”", ".", "...", "why?", "?", "…", "(so", "much)", "said.”"])


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("The cat sleeps now . The dog is awake .", [5, 10]),
        ("The cat sleeps now. The dog is awake.", [4, 8]),
        ("It was Mr. Smith who came. He did not stay.", [6, 10]),  # "It was Mr." is too short to be a sentence
        ("“ He never came here . ” She said so twice .", [7, 12]),
        ("He never came here.” She said so twice.", [4, 8]),
        ("Did he come here ? ! She said so twice .", [6, 11]),
        ("This is where it ends. Yes.", [6]),  # the last sentence is too short to stand alone
        ("without an end", [3]),
        ("Yes.", [1]),
        ("", []),
    ],
)
def test_where_sentences_end(text: str, ends: list[int]) -> None:
    assert find_sentences(text.split()) == ends


@given(st.lists(WORDS, max_size=40), st.lists(WORDS, max_size=40))
def test_parts_cover_both_texts_in_order(source: list[str], target: list[str]) -> None:
    parts = split_pair(source, target)
    for side, words in enumerate((source, target)):
        bounds = [part[side] for part in parts]
        assert bounds[0][0] == 0
        assert bounds[-1][1] == len(words)
        assert all(one[1] == other[0] for one, other in pairwise(bounds))
    if len(parts) > 1:
        assert all(begin < end for part in parts for begin, end in part)


def _sentence(letters: int, words: int = 5) -> list[str]:
    """Make up a sentence of so many letters, its point among them."""
    return ["a"] * (words - 1) + ["a" * (letters - words) + "."]


def _text(*letters: int) -> list[str]:
    return [word for count in letters for word in _sentence(count)]


def test_sentences_of_like_length_belong_together() -> None:
    parts = split_pair(_text(20, 60, 30), _text(22, 66, 33))
    assert [part.source for part in parts] == [part.target for part in parts] == [(0, 5), (5, 10), (10, 15)]


def test_one_sentence_may_become_two_and_two_one() -> None:
    assert split_pair(_text(80, 30), _text(40, 40, 30)) == [Part((0, 5), (0, 10)), Part((5, 10), (10, 15))]
    assert split_pair(_text(40, 40, 30), _text(80, 30)) == [Part((0, 10), (0, 5)), Part((10, 15), (5, 10))]


def test_what_cannot_be_matched_stays_whole() -> None:
    assert split_pair(_text(30, 30), _text(*[15] * 9)) == [Part((0, 10), (0, 45))]
    assert split_pair(_text(30), _text(30, 30)) == [Part((0, 5), (0, 10))]


def test_a_match_is_the_cheapest_of_all() -> None:
    """By trying every path over a few sentences."""
    source, target = [31, 12, 55, 40], [29, 70, 12, 33]
    ratio = sum(target) / sum(source)

    def cheapest(i: int, j: int) -> tuple[float, list[Part]]:
        if (i, j) == (0, 0):
            return 0.0, []
        found = [(math.inf, list[Part]())]
        for (di, dj), share in KINDS.items():
            if di <= i and dj <= j:
                before, path = cheapest(i - di, j - dj)
                cost = before - math.log(share) + _cost(source[i - di : i], target[j - dj : j], ratio)
                found.append((cost, [*path, Part((5 * (i - di), 5 * i), (5 * (j - dj), 5 * j))]))
        return min(found, key=lambda one: one[0])

    assert split_pair(_text(*source), _text(*target)) == cheapest(4, 4)[1]


def test_a_length_as_expected_costs_nothing_and_others_more() -> None:
    assert _cost([10], [12], 1.2) == 0.0
    # The deviation is sqrt(6.8 x 85) = 24.04; 15.9 % of a normal distribution lie further out than 1.41 of them.
    assert _cost([85], [119], 1.0) == pytest.approx(-math.log(0.1573), rel=1e-3)
    assert _cost([10], [500], 1.0) < math.inf


def test_thousands_of_sentences_take_no_minute() -> None:
    parts = split_pair(_text(*[20, 50, 35] * 1000), _text(*[22, 55, 38] * 1000))
    assert len(parts) == 3000
