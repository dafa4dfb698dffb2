"""Entropies and divergences against scipy, with zeros, and the refusal of what is no distribution."""

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sightline.errors import InputError
from sightline.measures import (
    entropy,
    js_divergence,
    kl_divergence,
    normalize,
    summarize,
    support_size,
    total_variation,
)

# Whole numbers, so that zeros and ties are common; at least one position has mass.
counts = st.integers(1, 12).flatmap(
    lambda n: hnp.arrays(np.float64, (2, n), elements=st.integers(0, 4).map(float)).filter(lambda a: a.any(-1).all())
)
distributions = counts.map(lambda a: a / a.sum(-1, keepdims=True))

SPARSE = np.array([0.5, 0.5, 0.0, 0.0])
DENSE = np.array([0.4, 0.3, 0.2, 0.1])


@given(distributions)
def test_equal_to_scipy(pair):
    p, q = pair
    assert entropy(p) == pytest.approx(scipy.stats.entropy(p), abs=1e-12)
    assert kl_divergence(p, q) == pytest.approx(scipy.special.rel_entr(p, q).sum(), abs=1e-12)
    middle = (p + q) / 2
    expected = (scipy.special.rel_entr(p, middle).sum() + scipy.special.rel_entr(q, middle).sum()) / 2
    assert js_divergence(p, q) == pytest.approx(expected, abs=1e-12)
    assert total_variation(p, q) == pytest.approx(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    assert support_size(p) == np.count_nonzero(p)


@given(distributions)
def test_bounds(pair):
    p, q = pair
    assert 0 <= js_divergence(p, q) <= np.log(2) + 1e-12
    assert 0 <= total_variation(p, q) <= 1 + 1e-12
    assert kl_divergence(p, q) >= 0
    assert js_divergence(p, p) == kl_divergence(p, p) == total_variation(p, p) == 0
    if len(p) > 1:
        assert 0 <= entropy(p, normalized=True) <= 1 + 1e-12


def test_zeros_are_exact():
    assert entropy(np.array([1.0, 0.0])) == 0
    assert entropy(SPARSE) == pytest.approx(np.log(2))
    assert kl_divergence(SPARSE, DENSE) == pytest.approx(0.5 * np.log(0.5 / 0.4) + 0.5 * np.log(0.5 / 0.3))
    assert kl_divergence(DENSE, SPARSE) == np.inf
    assert js_divergence(SPARSE, SPARSE[::-1]) == pytest.approx(np.log(2))
    assert total_variation(SPARSE, SPARSE[::-1]) == 1
    assert support_size(np.stack([SPARSE, DENSE])).tolist() == [2, 4]


def test_no_warnings_at_zeros(recwarn):
    kl_divergence(DENSE, SPARSE)
    js_divergence(SPARSE, SPARSE)
    entropy(np.zeros(3))
    assert not recwarn.list


def test_normalised_entropy_divides_by_the_log_of_real_positions():
    uniform = np.array([[0.25] * 4, [0.5, 0.5, 0, 0], [1, 0, 0, 0]])
    mask = np.array([[True] * 4, [True, True, False, False], [True, False, False, False]])
    result = entropy(uniform, mask, normalized=True)
    np.testing.assert_allclose(result, [1, 1, np.nan])
    assert summarize(result).undefined == 1
    assert entropy(uniform, normalized=True)[1] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (1.7 * DENSE, "sums to 1.7"),
        (np.array([1.2, -0.2]), "negative"),
        (np.array([3.0, -2.0, -1.0]), "sums to 0"),
        (np.array([np.inf, 0.0]), "sums to inf"),
    ],
)
def test_what_is_no_distribution_is_refused(wrong, why):
    for measure in (entropy, support_size, lambda p: js_divergence(p, p), lambda p: total_variation(p, p)):
        with pytest.raises(InputError, match=f"{why}.*normalize"):
            measure(wrong)


def test_weight_on_padding_is_refused():
    with pytest.raises(InputError, match=r"sums to 0\.9"):
        entropy(DENSE, np.array([True, True, True, False]))


def test_normalize_is_by_name_and_leaves_massless_rows_at_zero():
    values = np.array([[1.0, 3.0, 5.0], [0.0, 0.0, 5.0]])
    mask = np.array([True, True, False])
    result = normalize(values, mask)
    np.testing.assert_array_equal(result, [[0.25, 0.75, 0], [0, 0, 0]])
    assert np.isnan(entropy(result, mask)).tolist() == [False, True]
    with pytest.raises(InputError, match="Negative"):
        normalize(np.array([1.0, -1.0]))


def test_half_precision_passes():
    weights = np.random.default_rng(0).dirichlet(np.ones(200), size=50).astype(np.float16)
    assert np.isfinite(entropy(weights)).all()
