"""Projections of scores to weights: definitions, gradients, masks, axes, and their names."""

import sys
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.attend.projections import PROJECTIONS, build_projection, entmax, softmax, sparsegen, sparsemax
from sightline.errors import InputError

NAMES = [
    "softmax",
    "sparsemax",
    "sparsegen:-10",
    "sparsegen:0.5",
    "entmax:1",
    "entmax:1.25",
    "entmax:1.5",
    "entmax:2",
]
every_projection = pytest.mark.parametrize("name", NAMES)


def scores_of(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def literal_entmax(scores: np.ndarray, alpha: float) -> np.ndarray:
    """Find the threshold at which the weights sum to 1."""
    if alpha == 1:
        return scipy.special.softmax(scores)
    scaled = (alpha - 1) * scores

    def weights(threshold: float) -> np.ndarray:
        return np.maximum(scaled - threshold, 0) ** (1 / (alpha - 1))

    return weights(scipy.optimize.brentq(lambda t: weights(t).sum() - 1, scaled.max() - 1, scaled.max(), xtol=1e-15))


@pytest.mark.parametrize(
    ("name", "alpha", "scale"),
    [
        ("softmax", 1, 1),
        ("sparsemax", 2, 1),
        ("sparsegen:0", 2, 1),
        ("sparsegen:-10", 2, 1 / 11),
        ("sparsegen:0.5", 2, 2),
        ("entmax:1", 1, 1),
        ("entmax:1.25", 1.25, 1),
        ("entmax:1.5", 1.5, 1),
        ("entmax:2", 2, 1),
        ("entmax:2.5", 2.5, 1),
        ("entmax:3", 3, 1),
    ],
)
def test_projections_are_their_definitions(name, alpha, scale):
    scores = scores_of(20, 7)
    expected = np.stack([literal_entmax(scale * row, alpha) for row in scores.numpy()])
    np.testing.assert_allclose(build_projection(name)(scores).numpy(), expected, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-40, 40), min_size=1, max_size=6))
def test_sparsemax_is_the_nearest_distribution(eighths):
    """Enumerate the supports: on the right one the conditions of the projection hold."""
    scores = torch.tensor(eighths, dtype=torch.float64) / 8
    candidates = []
    for support in product([False, True], repeat=len(eighths)):
        inside = torch.tensor(support)
        if inside.any():
            threshold = (scores[inside].sum() - 1) / inside.sum()
            weights = torch.where(inside, scores - threshold, 0)
            if (weights >= 0).all():
                candidates.append(weights)
    nearest = min(candidates, key=lambda weights: float(((weights - scores) ** 2).sum()))
    torch.testing.assert_close(sparsemax(scores), nearest)


@every_projection
def test_weights_are_distributions(name):
    weights = build_projection(name)(scores_of(5, 4, 9))
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(5, 4, dtype=torch.float64))


@every_projection
@pytest.mark.parametrize("axis", [-1, 0])
def test_gradients_are_exact(name, axis):
    projection, scores = build_projection(name), scores_of(4, 5).requires_grad_()
    mask = torch.rand(4, 5, generator=torch.Generator().manual_seed(1)) > 0.3
    mask[0], mask[:, 0] = False, False
    assert torch.autograd.gradcheck(lambda x: projection(x, mask, axis=axis), scores)
    assert torch.autograd.gradcheck(lambda x: projection(x, axis=axis), scores)


@every_projection
def test_gradients_come_in_batches_too(name):
    """All rows of a Jacobian by one batched product, as the gradient methods ask for them."""
    scores = scores_of(6).requires_grad_()
    mask = torch.tensor([True, True, False, True, True, True])
    weights = build_projection(name)(scores, mask)
    identity = torch.eye(6, dtype=torch.float64)
    (batched,) = torch.autograd.grad(weights, scores, identity, is_grads_batched=True, retain_graph=True)
    one_by_one = [torch.autograd.grad(weights, scores, row, retain_graph=True)[0] for row in identity]
    torch.testing.assert_close(batched, torch.stack(one_by_one))


@every_projection
@settings(max_examples=15, deadline=None)
@given(lengths=st.lists(st.integers(0, 7), min_size=1, max_size=4), seed=st.integers(0, 100))
def test_masked_equals_truncated(name, lengths, seed):
    projection, scores = build_projection(name), 3 * scores_of(len(lengths), 7, seed=seed)
    mask = torch.arange(7) < torch.tensor(lengths)[:, None]
    junk = torch.where(mask, scores, 100.0)
    for given_scores, given_mask in ((junk, mask), (scores.masked_fill(~mask, -torch.inf), None)):
        weights = projection(given_scores, given_mask)
        for row, length in enumerate(lengths):
            if length:
                torch.testing.assert_close(weights[row, :length], projection(scores[row, :length]))
            assert (weights[row, length:] == 0).all()


@every_projection
def test_rows_without_a_real_position_give_zeros_and_no_nan(name):
    scores = scores_of(2, 3, 4).requires_grad_()
    mask = torch.ones(2, 1, 4, dtype=torch.bool)
    mask[1] = False
    weights = build_projection(name)(scores, mask)
    assert (weights[1] == 0).all()
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(3, dtype=torch.float64))
    (weights**2).sum().backward()
    assert scores.grad.isfinite().all()
    assert (scores.grad[1] == 0).all()


@every_projection
@pytest.mark.parametrize("axis", [0, 1, -2, -3])
def test_any_axis_equals_the_last_one_moved(name, axis):
    projection, scores = build_projection(name), scores_of(3, 4, 5)
    mask = scores_of(3, 4, 5, seed=1) > -1
    moved = projection(scores.movedim(axis, -1), mask.movedim(axis, -1)).movedim(-1, axis)
    torch.testing.assert_close(projection(scores, mask, axis=axis), moved)


@every_projection
def test_masks_are_repeated_along_missing_axes(name):
    projection, scores = build_projection(name), scores_of(2, 3, 4)
    mask = torch.tensor([True, False, True, True])
    torch.testing.assert_close(projection(scores, mask), projection(scores, mask.expand(2, 3, 4)))


@every_projection
def test_half_precision_is_computed_in_single(name):
    scores = scores_of(4, 300).to(torch.bfloat16)
    weights = build_projection(name)(scores)
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights.sum(-1), torch.ones(4))


# With 1 - sparsity a power of two and scores in eighths, all arithmetic up to the threshold is exact.
SPARSITIES = [-31.0, -7.0, -1.0, 0.0, 0.5, 0.75, 0.875]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-64, 64), min_size=1, max_size=12))
def test_support_shrinks_with_sparsity(eighths):
    scores = torch.tensor(eighths, dtype=torch.float64) / 8
    supports = [sparsegen(scores, sparsity=sparsity) > 0 for sparsity in SPARSITIES]
    for denser, sparser in pairwise(supports):
        assert (denser | ~sparser).all(), "a position once dropped stays dropped"
    assert supports[-1].any()


def test_sparsity_goes_from_uniform_to_one_position():
    scores = torch.tensor([0.1, 0.9, 0.5, -0.3])
    assert (sparsegen(scores, sparsity=-100.0) > 0).all()
    assert sparsegen(scores, sparsity=0.9).tolist() == [0, 1, 0, 0]
    torch.testing.assert_close(sparsegen(scores, sparsity=0.0), sparsemax(scores))
    for sparsity in (1.0, 2.0, -float("inf"), float("nan")):
        with pytest.raises(InputError, match="it must be a number less than 1"):
            sparsegen(scores, sparsity=sparsity)
    assert (softmax(scores) > 0).all()


def test_names_say_kind_and_parameter():
    scores = scores_of(3, 5)
    for name, expected in [
        ("softmax", softmax(scores)),
        ("sparsemax", sparsemax(scores)),
        ("sparsegen:0.5", sparsegen(scores, sparsity=0.5)),
        ("sparsegen:-1e1", sparsegen(scores, sparsity=-10.0)),
        ("entmax:1.5", entmax(scores, alpha=1.5)),
    ]:
        torch.testing.assert_close(build_projection(name)(scores, None), expected)
    assert set(PROJECTIONS) == {"softmax", "sparsemax", "sparsegen", "entmax"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sparsmax", r"Did you mean 'sparsemax'\?"),
        ("sparsegen", "needs its sparsity"),
        ("sparsegen:much", "needs its sparsity"),
        ("sparsegen:1", "less than 1"),
        ("sparsegen:nan", "less than 1"),
        ("sparsegen:-inf", "less than 1"),
        ("entmax:", "needs its alpha"),
        ("entmax:0.9", "at least 1"),
        ("entmax:inf", "at least 1"),
        ("softmax:2", "softmax takes none"),
    ],
)
def test_wrong_names_are_refused_at_once(name, message):
    with pytest.raises(InputError, match=message):
        build_projection(name)


def test_without_the_package_only_softmax_works(monkeypatch):
    monkeypatch.setitem(sys.modules, "entmax", None)
    build_projection("softmax")
    build_projection("entmax:1")
    for name in ("sparsemax", "sparsegen:0.5", "entmax:1.5"):
        with pytest.raises(InputError, match=r"pip install 'sightline-nlp\[sparse\]'"):
            build_projection(name)
