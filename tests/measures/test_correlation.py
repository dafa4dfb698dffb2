"""Rank correlations against scipy, their undefined values, and their speed."""

import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sightline.measures import kendall_tau, spearman, summarize

ORACLES = {
    kendall_tau: lambda u, v: scipy.stats.kendalltau(u, v, variant="b").statistic,
    spearman: lambda u, v: scipy.stats.spearmanr(u, v).statistic,
}
both = pytest.mark.parametrize("correlation", ORACLES)

elements = st.one_of(
    st.integers(-2, 2).map(float),  # ties
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.sampled_from([np.inf, -np.inf, 0.0, -0.0, 1e-300]),
)
pairs_of_rows = hnp.arrays(np.float64, st.tuples(st.just(2), st.integers(2, 40)), elements=elements)


@both
@settings(max_examples=150, deadline=None)
@given(pair=pairs_of_rows)
@pytest.mark.filterwarnings("ignore::scipy.stats.ConstantInputWarning")
def test_equal_to_scipy(correlation, pair):
    u, v = pair
    np.testing.assert_allclose(float(correlation(u, v)), ORACLES[correlation](u, v), atol=1e-12)


@both
def test_equal_to_scipy_for_long_and_sparse_rows(correlation):
    rng = np.random.default_rng(0)
    u, v = rng.random((2, 20, 3000))
    u = np.maximum(u - 0.9, 0)
    expected = [ORACLES[correlation](*pair) for pair in zip(u, v, strict=True)]
    np.testing.assert_allclose(correlation(u, v), expected, atol=1e-12)


@both
def test_perfect_correlations_are_exactly_one(correlation):
    values = np.random.default_rng(0).random((100, 37))
    assert (correlation(values, np.exp(values)) == 1).all()
    assert (correlation(values, -values) == -1).all()


@both
def test_constant_rows_are_undefined_and_counted(correlation):
    u = np.array([[0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4]])
    summary = summarize(correlation(u, u[::-1].copy()))
    assert (summary.defined, summary.undefined) == (0, 2)
    summary = summarize(correlation(u, u))
    assert (summary.mean, summary.defined, summary.undefined) == (1, 1, 1)
    assert np.isnan(correlation(u[1, :1], u[1, :1])), "one position has no order"


@both
def test_read_only_and_single_precision_rows(correlation):
    u, v = np.random.default_rng(0).random((2, 5, 8)).astype(np.float32)
    u.flags.writeable = False
    np.testing.assert_array_equal(correlation(u, v), correlation(u.astype(np.float64), v.astype(np.float64)))


def test_equal_values_have_the_mean_of_their_places():
    # The ranks are 3, 0.5, 0.5, 2 and 0, 1, 2, 3, whose means are 1.5.
    found = spearman(np.array([3.0, 1.0, 1.0, 2.0]), np.arange(4.0))
    assert found == pytest.approx((-2.25 + 0.5 - 0.5 + 0.75) / np.sqrt((2.25 + 1 + 1 + 0.25) * 5))


def test_no_rows_give_no_values():
    assert kendall_tau(np.ones((0, 5)), np.ones((0, 5))).shape == (0,)


def _tau_in_child(_: int) -> float:
    return float(kendall_tau(np.arange(5.0), np.arange(5.0)))


def test_works_from_several_threads_and_after_a_fork():
    u, v = np.random.default_rng(0).random((2, 1000, 30))
    expected = kendall_tau(u, v)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: kendall_tau(u, v), range(8)):
            np.testing.assert_array_equal(result, expected)
    with get_context("fork").Pool(1) as pool:
        assert pool.map(_tau_in_child, [0]) == [1]


def test_much_faster_than_a_loop_over_scipy():
    u, v = np.random.default_rng(0).random((2, 10_000, 50))
    kendall_tau(u[:1], v[:1])  # compiled, or read from the cache
    ours = min(_seconds(lambda: kendall_tau(u, v)) for _ in range(5))
    a_hundredth = _seconds(lambda: [scipy.stats.kendalltau(a, b) for a, b in zip(u[:100], v[:100], strict=True)])
    assert 100 * a_hundredth / ours > 50, "about 300 times on a quiet machine"


def _seconds(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
