"""What all measures share: shapes, masks, Attributions, undefined values."""

import subprocess
import sys

import numpy as np
import pytest

from sightline import measures
from sightline.attribution import Attribution, Tokens
from sightline.errors import InputError
from sightline.measures import Summary, kendall_tau, summarize
from sightline.measures.rows import to_rows

RNG = np.random.default_rng(0)
TWO_ROW_MEASURES = [
    measures.agreement,
    measures.top_overlap,
    measures.kendall_tau,
    measures.spearman,
    measures.kl_divergence,
    measures.js_divergence,
    measures.total_variation,
]
ONE_ROW_MEASURES = [measures.entropy, measures.support_size]


def rows(*shape: int) -> np.ndarray:
    return RNG.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def tokens(length: int) -> Tokens:
    return Tokens(("x",) * length, tuple(range(length)), ("x",) * length)


@pytest.mark.parametrize("measure", TWO_ROW_MEASURES)
def test_leading_axes_are_kept_and_rows_are_independent(measure):
    u, v = rows(2, 3, 4, 9), rows(2, 3, 4, 9)
    result = measure(u, v)
    assert result.shape == (2, 3, 4)
    for index in np.ndindex(2, 3, 4):
        assert result[index] == pytest.approx(float(measure(u[index], v[index])))


@pytest.mark.parametrize("measure", TWO_ROW_MEASURES)
def test_a_missing_leading_axis_is_repeated(measure):
    u, v = rows(2, 3, 9), rows(3, 9)
    np.testing.assert_array_equal(measure(u, v), np.stack([measure(one, v) for one in u]))


def renormalized(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Distribute over the real positions, and leave junk on the others."""
    return np.where(mask, measures.normalize(values, mask), 7.0)


@pytest.mark.parametrize("measure", TWO_ROW_MEASURES)
def test_masked_equals_truncated(measure):
    mask = np.arange(9) < np.array([9, 5, 2, 3])[:, None]
    mask[3, 1] = False  # a hole
    u, v = renormalized(rows(4, 9), mask), renormalized(rows(4, 9), mask)
    truncated = [float(measure(u[i][mask[i]], v[i][mask[i]])) for i in range(4)]
    np.testing.assert_allclose(measure(u, v, mask=mask), truncated)


@pytest.mark.parametrize("measure", ONE_ROW_MEASURES)
def test_masked_equals_truncated_for_one_row(measure):
    mask = np.arange(9) < np.array([9, 5, 2])[:, None]
    u = renormalized(rows(3, 9), mask)
    np.testing.assert_allclose(measure(u, mask), [float(measure(u[i][mask[i]])) for i in range(3)])


@pytest.mark.parametrize("measure", TWO_ROW_MEASURES)
def test_rows_without_a_real_position_are_undefined(measure):
    mask = np.array([[True] * 4, [False] * 4])
    result = measure(rows(2, 4), rows(2, 4), mask=mask)
    assert np.isnan(result).tolist() == [False, True]


def test_attributions_are_measured_over_the_source():
    scores = rows(2, 3, 7).astype(np.float32)
    attribution = Attribution(scores, tokens(5), tokens(3), prefix=tokens(2), axes=("layer",))
    importance = rows(3, 5)
    np.testing.assert_array_equal(kendall_tau(attribution, importance), kendall_tau(scores[..., :5], importance))


def test_what_cannot_be_compared_is_refused_with_its_shapes():
    with pytest.raises(InputError, match=r"\(2, 4\) and \(2, 5\)"):
        to_rows(rows(2, 4), rows(2, 5))
    with pytest.raises(InputError, match=r"\(2, 4\) and \(3,\)"):
        to_rows(rows(2, 4), mask=np.ones(3, dtype=bool))


def test_nan_is_refused_unless_masked():
    values, mask = np.array([0.1, np.nan, 0.9]), np.array([True, False, True])
    assert kendall_tau(values, values, mask) == 1
    with pytest.raises(InputError, match="NaN"):
        kendall_tau(values, values)


def test_undefined_values_are_counted():
    assert summarize(np.array([[1.0, np.nan], [0.5, np.nan]])) == Summary(0.75, 0.25, 2, 2)
    nothing = summarize(np.array([np.nan]))
    assert np.isnan(nothing.mean)
    assert (nothing.defined, nothing.undefined) == (0, 1)


def test_sightline_itself_loads_no_numba():
    code = "import sys, sightline; assert 'numba' not in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
