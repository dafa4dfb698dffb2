"""Agreement of tops against their literal definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sightline.errors import InputError
from sightline.measures import agreement, contextualize, random_agreement, summarize, top_overlap

# Few distinct values, so that ties are common.
pairs_of_rows = hnp.arrays(np.float64, st.tuples(st.just(2), st.integers(1, 60)), elements=st.integers(0, 5).map(float))


def literal_agreement(u: list[float], v: list[float]) -> bool:
    highest = u.index(max(u))
    return sum(value > v[highest] for value in v) < math.ceil(len(v) / 20)


@given(pairs_of_rows)
def test_agreement_is_its_definition(pair):
    u, v = pair
    assert agreement(u, v) == literal_agreement(u.tolist(), v.tolist())


@pytest.mark.parametrize(("length", "allowed"), [(1, 1), (20, 1), (21, 2), (40, 2), (140, 7), (141, 8)])
def test_five_percent_is_exact(length, allowed):
    v = np.arange(length)[::-1].astype(float)
    u = np.eye(length)[: allowed + 1]  # its highest position is 0, 1, ... in v's order
    assert agreement(u, v).tolist() == [1] * allowed + [0] * (len(u) - allowed)


def test_agreement_is_not_symmetric():
    u, v = np.array([3.0, 2.0, 1.0]), np.array([1.0, 1.0, 0.0])
    assert agreement(u, v) == 1
    assert agreement(v[::-1], u) == 0
    assert agreement(u, v[::-1]) == 0


def test_random_baseline_is_close_to_five_percent_and_repeatable():
    rng = np.random.default_rng(1)
    u = rng.random((20_000, 30))
    baseline = random_agreement(u, u, seed=0)
    assert summarize(baseline).mean == pytest.approx(2 / 30, abs=0.006)  # ceil(5% of 30) positions of 30
    np.testing.assert_array_equal(baseline, random_agreement(u, u, seed=0))
    assert (baseline != random_agreement(u, u, seed=1)).any()
    assert summarize(agreement(u, u)).mean == 1


def test_random_baseline_shuffles_among_real_positions_only():
    # Were the masked mountain ever shuffled into v, it would stand above the only value.
    u = np.array([[1.0, 0.0, 9.0]] * 200)
    v = np.array([[1.0, 1.0, 99.0]] * 200)
    mask = np.array([True, True, False])
    assert random_agreement(u, v, seed=0, mask=mask).all()
    assert random_agreement(u.reshape(10, 20, 3), v.reshape(10, 20, 3), seed=0, mask=mask).all()
    assert random_agreement(u[0], v[0], seed=0, mask=mask)


@given(pairs_of_rows, st.integers(1, 70))
def test_overlap_is_its_definition(pair, k):
    u, v = pair

    def top(row: np.ndarray) -> set[int]:
        return set(sorted(range(len(row)), key=lambda i: (-row[i], i))[:k])

    assert top_overlap(u, v, k=k) == pytest.approx(len(top(u) & top(v)) / min(k, len(u)))


def test_overlap_counts_no_position_that_is_not_real():
    u, v = np.array([1.0, 2.0, 9.0, 9.0]), np.array([2.0, 1.0, 9.0, 9.0])
    mask = np.array([True, True, False, False])
    assert top_overlap(u, v, k=1, mask=mask) == 0
    assert top_overlap(u, v, k=4, mask=mask) == 1


def test_overlap_takes_scores_of_any_size():
    u, v = np.array([-np.inf, -3.0, -2.0]), np.array([-1.0, -2.0, -np.inf])
    assert top_overlap(u, v, k=2) == 0.5
    with pytest.raises(InputError, match="k is 0"):
        top_overlap(u, v, k=0)


def test_the_performance_at_which_attention_agrees_more() -> None:
    """Snell et al., eq. 11: strictly more, at the first such checkpoint; else the last performance, marked."""
    agreements, performances = [0.05, 0.3, 0.2, 0.6], [10.0, 40.0, 45.0, 60.0]
    assert contextualize(0.1, agreements, performances) == (40.0, True)
    assert contextualize(0.3, agreements, performances) == (60.0, True)
    assert contextualize(0.6, agreements, performances) == (60.0, False)
    with pytest.raises(InputError, match="2 agreements and 1 performances"):
        contextualize(0.1, [1, 2], [1])
