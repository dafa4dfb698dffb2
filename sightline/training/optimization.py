"""The optimiser and the learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from sightline.training.recipe import TrainingSettings

COOLING = 0.25
"""The share of the steps over which `trapezoid` falls."""


def inverse_sqrt(step: int, settings: TrainingSettings) -> float:
    """Fall with the root of the step (Vaswani et al. 2017, eq. 3), from 1 at the end of the warm-up."""
    return math.sqrt(max(settings.warmup, 1) / step)


def cosine(step: int, settings: TrainingSettings) -> float:
    """Fall to 0 at the last step along half a cosine."""
    share = (step - settings.warmup) / max(settings.steps - settings.warmup, 1)
    return 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))


def trapezoid(step: int, settings: TrainingSettings) -> float:
    """Stay, then fall linearly to 0 over the last part of the steps.

    Before the fall the rate does not depend on the number of steps, so that a run can still be made longer then
    (Hägele et al. 2024 find it as good as a cosine).
    """
    return min(1.0, (settings.steps - step + 1) / (COOLING * settings.steps))


def constant(step: int, settings: TrainingSettings) -> float:
    """Stay."""
    return 1.0


SCHEDULES: dict[str, Callable[[int, TrainingSettings], float]] = {
    "inverse_sqrt": inverse_sqrt,
    "cosine": cosine,
    "trapezoid": trapezoid,
    "constant": constant,
}


def learning_rate(step: int, settings: TrainingSettings) -> float:
    """Return the rate of a step, counted from 1: a linear warm-up, then the schedule."""
    if step < settings.warmup:
        return settings.learning_rate * step / settings.warmup
    return settings.learning_rate * SCHEDULES[settings.schedule](step, settings)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every group of parameters to that of this step, times its own factor."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("times", 1.0)


def build_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    """Build AdamW; weights decay, biases, normalisations and a classifier's attention do not."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    # A model with one attention of its own, as our classifiers have, gives it a rate of its own.
    attention = getattr(model, "attention", None)
    inside = set() if attention is None else set(attention.parameters())
    others = [parameter for parameter in trained if parameter not in inside]
    groups = [
        {"params": [p for p in others if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in others if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if attention is not None:
        of_attention = [parameter for parameter in trained if parameter in inside]
        groups.append({"params": of_attention, "weight_decay": 0.0, "times": settings.attention_rate})
    return torch.optim.AdamW(
        groups,
        lr=settings.learning_rate,
        betas=settings.betas,
        eps=1e-9,
        amsgrad=settings.amsgrad,
        fused=trained[0].device.type in ("cpu", "cuda"),
    )
