"""The optimal attention: the paper's counter-example, a general solver as oracle, and the certificate."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from sightline.attend.optimal import optimal_attention


def test_the_counter_example() -> None:
    """Claim 11 (eq. 29-31): the position with the highest probe gets no weight at all."""
    gamma = torch.tensor([[[0.0, 0.0, 0.0], [0.0, -10.0, 5.0], [0.0, 5.0, -10.0]]], dtype=torch.float64)
    right = torch.tensor([0])
    beta = gamma.softmax(-1)[0, :, 0]
    assert beta.argmax() == 0
    np.testing.assert_allclose(beta, [1 / 3, np.exp(-5), np.exp(-5)], rtol=0.01)
    weights, gap = optimal_attention(gamma, right)
    np.testing.assert_allclose(weights[0], [0, 0.5, 0.5], atol=1e-5)
    assert gap[0] < 1e-4


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), source=st.integers(1, 6), outputs=st.integers(2, 7), scale=st.floats(0.1, 6))
def test_no_solver_finds_better(seed: int, source: int, outputs: int, scale: float) -> None:
    gamma = scale * np.random.default_rng(seed).standard_normal((source, outputs))

    def loss(alpha: np.ndarray) -> float:
        logits = alpha @ gamma
        return float(logsumexp(logits) - logits[0])

    found = minimize(
        loss,
        np.full(source, 1 / source),
        bounds=[(0, 1)] * source,
        constraints={"type": "eq", "fun": lambda alpha: alpha.sum() - 1},
        method="SLSQP",
    )
    weights, gap = optimal_attention(torch.from_numpy(gamma)[None], torch.tensor([0]), steps=5000)
    ours = loss(weights[0].numpy())
    assert ours <= found.fun + 1e-3 * max(1, abs(found.fun))
    assert ours - found.fun <= gap[0].item() + 1e-9, "the certificate bounds what is left"
    np.testing.assert_allclose(weights.sum(), 1)


def test_two_outputs_ask_for_the_best_position() -> None:
    """With two labels the loss falls with sum alpha_l gamma_l (eq. 12): the highest probe gets all."""
    gamma = torch.tensor([[0.3, -1.0], [1.2, 0.1], [0.9, -2.0]])[None]
    weights, _ = optimal_attention(gamma, torch.tensor([0]))
    np.testing.assert_allclose(weights[0], [0, 0, 1], atol=1e-3)


def test_what_is_masked_gets_nothing_and_changes_nothing() -> None:
    torch.manual_seed(0)
    gamma, right = torch.randn(2, 5, 4), torch.tensor([1, 3])
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    together, _ = optimal_attention(gamma, right, mask)
    alone, _ = optimal_attention(gamma[1:, :3], right[1:])
    assert (together[1, 3:] == 0).all()
    np.testing.assert_allclose(together[1, :3], alone[0], atol=1e-6)


def test_where_there_is_one_output_every_position_serves() -> None:
    weights, gap = optimal_attention(torch.randn(2, 4, 1), torch.tensor([0, 0]))
    np.testing.assert_allclose(weights, np.full((2, 4), 0.25), rtol=1e-6)
    np.testing.assert_allclose(gap, 0, atol=1e-6)
