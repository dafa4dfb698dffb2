"""Confidences as shares of right links, estimated by another aligner."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.alignment.confidence import fit_confidences, set_confidences
from sightline.alignment.links import Alignment


def drawn(seed: int, count: int = 4000) -> tuple[list[Alignment], list[Alignment], np.ndarray, np.ndarray]:
    """Draw links whose score is the square of how likely they are right, and an aligner with recall 0.7."""
    draw = np.random.default_rng(seed)
    likely = draw.uniform(0.3, 1, count)
    right = draw.random(count) < likely
    found = right & (draw.random(count) < 0.7)
    links = [Alignment({(0, i): score}) for i, score in enumerate((likely**2).tolist())]
    return links, [Alignment([(0, i)] if one else []) for i, one in enumerate(found)], likely, right


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_comes_out_is_how_likely_links_are_right(seed: int) -> None:
    links, others, likely, _ = drawn(seed)
    knots = fit_confidences(links, others)
    assert len(knots) == 10
    after = np.array([set_confidences(one, knots).confidences[0, i] for i, one in enumerate(links)])
    before = np.array([one.confidences[0, i] for i, one in enumerate(links)])
    assert np.abs(before - likely).mean() > 0.15
    assert np.abs(after - likely).mean() < 0.06


@given(st.integers(0, 10_000))
def test_the_order_stays_and_shares_stay_shares(seed: int) -> None:
    draw = np.random.default_rng(seed)
    scores = draw.random(300)
    links = [Alignment({(i, 0): float(score)}, [(i, 1)], 300, 2) for i, score in enumerate(scores)]
    others = [Alignment([(i, 0)] if draw.random() < 0.5 else []) for i in range(300)]
    knots = fit_confidences(links, others)
    after = [set_confidences(one, knots) for one in links]
    values = np.array([one.confidences[i, 0] for i, one in enumerate(after)])
    assert ((values >= 0) & (values <= 1)).all()
    assert (np.diff(values[np.argsort(scores)]) >= 0).all()
    assert all(
        one.links == other.links and one.possible == other.possible for one, other in zip(after, links, strict=True)
    )


def test_rates_that_fall_are_averaged_with_their_neighbours() -> None:
    # Ten tenths of 20 links: the aligner confirms 0, 2, 4, ..., but the fourth and the fifth are exchanged.
    confirmed = [0, 2, 4, 8, 6, 10, 12, 14, 16, 20]
    links, others = [], []
    for tenth, count in enumerate(confirmed):
        for number in range(20):
            links.append(Alignment({(0, len(links)): tenth / 10 + number / 1000}))
            others.append(Alignment([(0, len(others))] if number < count else []))
    knots = fit_confidences(links, others)
    assert [after for _, after in knots] == pytest.approx([0, 0.1, 0.2, 0.35, 0.35, 0.5, 0.6, 0.7, 0.8, 1])
    assert [before for before, _ in knots] == pytest.approx([tenth / 10 + 0.0095 for tenth in range(10)])


def test_only_the_surest_tenth_may_be_confirmed() -> None:
    links = [Alignment({(0, i): i / 200}) for i in range(200)]
    others = [Alignment([(0, i)] if i >= 190 else []) for i in range(200)]  # half of the last twenty
    assert [after for _, after in fit_confidences(links, others)] == [0.0] * 9 + [1.0]


def test_too_few_links_or_none_confirmed_change_nothing() -> None:
    few = [Alignment({(0, i): 0.5}) for i in range(199)]
    assert fit_confidences(few, few) == ()
    many = [Alignment({(0, i): 0.5}) for i in range(200)]
    assert fit_confidences(many, [Alignment()] * 200) == ()
    assert set_confidences(many[0], ()) == many[0]
