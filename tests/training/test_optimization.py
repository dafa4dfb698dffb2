"""Learning rates and the optimiser."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from sightline.models.classifier import ClassifierConfig, ClassifierForSequenceClassification
from sightline.training.optimization import SCHEDULES, build_optimizer, learning_rate, set_learning_rate
from sightline.training.recipe import TrainingSettings


@given(st.integers(1, 5000), st.sampled_from(sorted(SCHEDULES)), st.integers(0, 600))
def test_rates_are_positive_and_never_above_the_highest(step: int, schedule: str, warmup: int) -> None:
    settings = TrainingSettings(steps=5001, schedule=schedule, warmup=warmup, learning_rate=0.5)  # type: ignore[arg-type]
    assert 0 < learning_rate(step, settings) <= 0.5 * (1 + 1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_warm_up_is_linear_and_meets_the_schedule(schedule: str) -> None:
    settings = TrainingSettings(steps=1000, schedule=schedule, warmup=100, learning_rate=2.0)  # type: ignore[arg-type]
    assert [learning_rate(step, settings) for step in (1, 50, 100)] == pytest.approx([0.02, 1.0, 2.0])


def test_each_schedule_falls_as_its_formula_says() -> None:
    rates = {
        name: learning_rate(400, TrainingSettings(steps=700, schedule=name, warmup=100, learning_rate=1.0))  # type: ignore[arg-type]
        for name in SCHEDULES
    }
    assert rates == pytest.approx({"inverse_sqrt": 0.5, "cosine": 0.5, "trapezoid": 1.0, "constant": 1.0})
    last = TrainingSettings(steps=700, schedule="cosine", warmup=100, learning_rate=1.0)
    assert learning_rate(700, last) == pytest.approx(0, abs=1e-12)
    assert math.isclose(learning_rate(9, TrainingSettings(steps=9, warmup=0, learning_rate=3.0)), 1.0)


def test_a_trapezoid_stays_then_falls_and_can_be_made_longer_while_it_stays() -> None:
    short, long = (
        TrainingSettings(steps=steps, schedule="trapezoid", warmup=100, learning_rate=1.0) for steps in (800, 1600)
    )
    assert [learning_rate(step, short) for step in (100, 600, 601, 701, 800)] == pytest.approx([1, 1, 1, 0.5, 0.005])
    assert all(learning_rate(step, short) == learning_rate(step, long) for step in range(1, 601))


def test_only_matrices_decay() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    optimizer = build_optimizer(model, TrainingSettings(steps=1, weight_decay=0.1))
    decays = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert [decays[id(parameter)] for parameter in model.parameters()] == [0.1, 0.0, 0.0, 0.0]


def test_without_decay_it_is_adam() -> None:
    torch.manual_seed(0)
    ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    settings = TrainingSettings(steps=1, learning_rate=0.01)
    optimizers = [build_optimizer(ours, settings), torch.optim.Adam(theirs.parameters(), 0.01, settings.betas, 1e-9)]
    data = torch.randn(5, 3)
    for _ in range(3):
        for model, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            model(data).pow(2).sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight)


def test_a_classifiers_attention_has_its_own_rate_and_no_decay() -> None:
    model = ClassifierForSequenceClassification(ClassifierConfig(vocab_size=9, width=4, embedding_width=4))
    settings = TrainingSettings(steps=1, weight_decay=0.1, learning_rate=0.5, attention_rate=10.0)
    optimizer = build_optimizer(model, settings)
    set_learning_rate(optimizer, 0.5)
    found = {id(p): (group["lr"], group["weight_decay"]) for group in optimizer.param_groups for p in group["params"]}
    assert len(found) == len(list(model.parameters()))
    for name, parameter in model.named_parameters():
        of_attention = name.startswith("attention.")
        assert found[id(parameter)] == (
            5.0 if of_attention else 0.5,
            0.1 if parameter.ndim > 1 and not of_attention else 0,
        )
