"""Adversarial attention: a classifier that predicts as another one does, and attends elsewhere.

The loss of Wiegreffe and Pinter 2019 (section 4), which Meister et al. 2021 (appendix C.1) minimise: over texts,

    TVD(y_a, y_b) - strength x divergence(alpha_a, alpha_b)

where b is the base model, whose predictions y and attention alpha are given, and a the adversary. The divergence is
Jensen-Shannon's (in nats, at most log 2), or Kullback and Leibler's KL(alpha_a || alpha_b), which sparse attention of
the base model makes infinite: there its zeros count as 1e-12. A frozen adversary has the base model's parameters but
for those of attention, which alone are trained; an unfrozen one is a new model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sightline.attend.watch import watch
from sightline.errors import InputError
from sightline.models.classifier import ClassifierForSequenceClassification
from sightline.models.loading import load
from sightline.training.recipe import AdversarySettings

SMALLEST = 1e-12


def js_divergence(p: Float[Tensor, "*rows position"], q: Float[Tensor, "*rows position"]) -> Float[Tensor, "*rows"]:
    """Return the Jensen-Shannon divergence, with gradients that are finite at zeros."""
    middle = (p + q) / 2
    return (kl_divergence(p, middle) + kl_divergence(q, middle)) / 2


def kl_divergence(p: Float[Tensor, "*rows position"], q: Float[Tensor, "*rows position"]) -> Float[Tensor, "*rows"]:
    """Return KL(p || q), with gradients that are finite at zeros."""
    return (p * (p.clamp(min=SMALLEST).log() - q.clamp(min=SMALLEST).log())).sum(-1)


DIVERGENCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"jsd": js_divergence, "kl": kl_divergence}


def load_base(settings: AdversarySettings, device: torch.device) -> ClassifierForSequenceClassification:
    """Load the base model, whose parameters stay as they are."""
    base = load(settings.of).module
    if not isinstance(base, ClassifierForSequenceClassification):
        raise InputError(f"adversary.of: {settings.of} is a {type(base).__name__}, not a classifier of Sightline's.")
    return base.to(device).eval().requires_grad_(False)


def transfer(base: nn.Module, model: ClassifierForSequenceClassification) -> None:
    """Copy the base model's parameters into a model, frozen, but for those of attention."""
    # Deviation: attention starts anew, since from the base model's own the loss only rises: the distance of predictions
    # grows at once, the divergence with the square of a step.
    own = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("attention.")}
    try:
        model.load_state_dict(base.state_dict() | own)
    except RuntimeError as error:
        raise InputError("A frozen adversary must have the architecture of its base model: keep `model:`.") from error
    model.requires_grad_(False)
    model.attention.requires_grad_(True)


class AdversarialObjective(nn.Module):
    """An adversary with its loss, as one module that can be run on many processes."""

    def __init__(self, model: Any, base: nn.Module, settings: AdversarySettings) -> None:
        super().__init__()
        self.model = model
        self._base = (base,)  # not a part: it is neither trained nor put into training mode
        self.strength = settings.strength
        self.divergence = DIVERGENCES[settings.divergence]

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"],
        attention_mask: Int[Tensor, "batch source"],
        labels: Int[Tensor, " batch"],
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " count"]]:
        """Return the loss, summed over texts, and with it (the same, correct labels, labels)."""
        with torch.no_grad():
            base_logits, base_weights = classify(self._base[0], input_ids, attention_mask)
        logits, weights = classify(self.model, input_ids, attention_mask)
        distance = (logits.softmax(-1) - base_logits.softmax(-1)).abs().sum(-1) / 2
        loss = (distance - self.strength * self.divergence(weights, base_weights)).sum()
        correct = (logits.argmax(-1) == labels).sum().float()
        return loss, torch.stack([loss.detach(), correct, torch.full_like(correct, len(labels))])


def classify(
    model: nn.Module, input_ids: Int[Tensor, "batch source"], attention_mask: Int[Tensor, "batch source"]
) -> tuple[Float[Tensor, "batch label"], Float[Tensor, "batch source"]]:
    """Return a classifier's logits and its attention over the text."""
    with watch(model, [model.attention]) as seen:  # type: ignore[list-item]
        logits = model(input_ids=input_ids, attention_mask=attention_mask).logits.float()
    return logits, seen[model.attention].weights[:, 0, 0]  # type: ignore[index]
