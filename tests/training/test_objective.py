"""The loss with its projection: value and gradients against torch's own cross-entropy."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.training import objective
from sightline.training.batches import IGNORED
from sightline.training.objective import Objective, ProjectedCrossEntropy


def _example(batch: int, target: int, vocabulary: int, dtype: torch.dtype = torch.float64) -> tuple[Any, Any, Any]:
    states = torch.randn(batch, target, 5, dtype=dtype, requires_grad=True)
    weight = torch.randn(vocabulary, 5, dtype=dtype, requires_grad=True)
    labels = torch.randint(0, vocabulary, (batch, target))
    labels[torch.rand(batch, target) < 0.3] = IGNORED
    return states, weight, labels


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 9), st.integers(2, 12), st.sampled_from([0.0, 0.1, 0.5]), st.integers(1, 7))
def test_it_is_torchs_cross_entropy(batch: int, target: int, vocabulary: int, smoothing: float, chunk: int) -> None:
    states, weight, labels = _example(batch, target, vocabulary)
    logits = (states @ weight.T).flatten(0, 1)
    flat = labels.flatten()
    expected = F.cross_entropy(logits, flat, label_smoothing=smoothing, ignore_index=IGNORED, reduction="sum")
    before, objective.CHUNK = objective.CHUNK, chunk
    try:
        loss, counts = ProjectedCrossEntropy.apply(states, weight, labels, smoothing, True)
    finally:
        objective.CHUNK = before
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(
        torch.autograd.grad(3 * loss, (states, weight)), torch.autograd.grad(3 * expected, (states, weight))
    )
    real = flat != IGNORED
    plain = F.cross_entropy(logits, flat, ignore_index=IGNORED, reduction="sum")
    torch.testing.assert_close(counts[0], plain.detach())
    assert counts[1] == (logits.argmax(1) == flat)[real].sum()
    assert counts[2] == real.sum()


def test_its_gradient_is_that_of_finite_differences() -> None:
    states, weight, labels = _example(2, 4, 6)

    def loss(states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return ProjectedCrossEntropy.apply(states, weight, labels, 0.1, True)[0]

    assert torch.autograd.gradcheck(loss, (states, weight))


@pytest.mark.filterwarnings("ignore")
def test_in_16_bits_it_is_close_to_32() -> None:
    states, weight, labels = _example(4, 8, 50, torch.float32)
    exact, _ = ProjectedCrossEntropy.apply(states, weight, labels, 0.1, True)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = ProjectedCrossEntropy.apply(states, weight, labels, 0.1, True)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=0.02, atol=0)
    for one, other in zip(
        torch.autograd.grad(rough, (states, weight)), torch.autograd.grad(exact, (states, weight)), strict=True
    ):
        assert torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), 0) > 0.999


def test_without_labels_there_is_no_loss_and_no_gradient() -> None:
    states, weight, labels = _example(2, 3, 4)
    loss, counts = ProjectedCrossEntropy.apply(states, weight, torch.full_like(labels, IGNORED), 0.1, True)
    loss.backward()
    assert loss == 0
    assert counts[2] == 0
    assert weight.grad.abs().sum() == 0


def test_great_logits_do_not_overflow() -> None:
    states = torch.full((1, 2, 5), 1e4, requires_grad=True)
    weight = torch.randn(7, 5)
    loss, _ = ProjectedCrossEntropy.apply(states, weight, torch.tensor([[1, 2]]), 0.1, True)
    loss.backward()
    assert loss.isfinite()
    assert states.grad is not None
    assert states.grad.isfinite().all()


def test_the_objective_is_the_loss_of_the_models_own_logits() -> None:
    from training.tiny import RECIPE

    from sightline.models.transformer import TransformerSettings, build_transformer
    from sightline.training.vocabulary import train_tokenizer

    tokenizer = train_tokenizer(["a b c d e f"] * 3, 30, 16)
    model = build_transformer(TransformerSettings(**RECIPE["model"]), tokenizer).eval()
    labels = torch.tensor([[5, 4, 1], [6, 1, IGNORED]])
    inputs = {
        "input_ids": torch.tensor([[4, 5, 6, 1], [7, 1, 0, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
        "decoder_input_ids": torch.tensor([[0, 5, 4], [0, 6, 1]]),
    }
    expected = F.cross_entropy(
        model(**inputs).logits.flatten(0, 1), labels.flatten(), reduction="sum", label_smoothing=0.1
    )
    loss, _ = Objective(model, 0.1)(**inputs, labels=labels)
    torch.testing.assert_close(loss, expected)
