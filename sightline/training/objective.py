"""The loss: label-smoothed cross-entropy (Szegedy et al. 2016), computed together with the output projection.

With logits z = W h, smoothing e, vocabulary size V and label y,

    loss = log sum_v exp z_v - (1 - e) z_y - e/V sum_v z_v
    d loss / d z_v = softmax(z)_v - (1 - e) [v = y] - e/V

The logits of a whole batch are never there at once: a few hundred positions at a time are projected, and their
gradients taken, while they are in the processor's cache. That is the greatest saving of a training step on a CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sightline.training.batches import IGNORED

CHUNK = 256
COUNTED = ("cross_entropy", "correct", "labels")
"""What is counted in addition to a loss."""


class Objective(nn.Module):
    """A translation model with its loss, as one module that can be run on many processes."""

    counted: tuple[str, ...] = COUNTED

    def __init__(self, model: Any, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"],
        attention_mask: Int[Tensor, "batch source"],
        decoder_input_ids: Int[Tensor, "batch target"],
        labels: Int[Tensor, "batch target"],
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " count"]]:
        """Return the smoothed loss, summed over labels, and with it (cross-entropy, correct labels, labels)."""
        return self.predict(
            labels,
            self.label_smoothing,
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
        )

    def predict(
        self, labels: Int[Tensor, "batch target"], smoothing: float, **inputs: Any
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " count"]]:
        """Run the model on some inputs; give the loss and the counts."""
        states = self.model.base_model(**inputs, use_cache=False)[0]
        weight = self.model.get_output_embeddings().weight
        return ProjectedCrossEntropy.apply(states, weight, labels, smoothing, torch.is_grad_enabled())


class ProjectedCrossEntropy(torch.autograd.Function):
    """The loss of states and output weights; the gradients are made in the forward pass, where the logits are."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Float[Tensor, "batch target width"],
        weight: Float[Tensor, "vocabulary width"],
        labels: Int[Tensor, "batch target"],
        smoothing: float,
        with_gradients: bool,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " count"]]:
        device = states.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype
        with torch.autocast(device, enabled=False):
            flat = states.flatten(0, 1)
            matrix = weight.to(dtype)
            positions = labels.flatten().ne(IGNORED).nonzero()[:, 0]
            state_grad, weight_grad = torch.zeros_like(flat), torch.zeros_like(weight)
            sums = weight.new_zeros(3)
            for chunk in positions.split(CHUNK):
                chosen = flat[chunk].to(dtype)
                # 16 bits are enough for products, not for sums over a vocabulary.
                logits = (chosen @ matrix.T).to(weight.dtype)
                sums += _turn_into_gradients(logits, labels.flatten()[chunk, None], smoothing)
                if with_gradients:
                    gradients = logits.to(dtype)
                    state_grad[chunk] = (gradients @ matrix).to(states.dtype)
                    if not ctx.needs_input_grad[1]:
                        continue
                    if dtype == weight.dtype:
                        weight_grad.addmm_(gradients.T, chosen)
                    else:
                        weight_grad += gradients.T @ chosen
        ctx.save_for_backward(state_grad.view_as(states), weight_grad)
        counts = torch.stack([sums[1], sums[2], sums.new_tensor(float(len(positions)))])
        ctx.mark_non_differentiable(counts)
        return sums[0].clone(), counts

    @staticmethod
    def backward(ctx: Any, loss_grad: Float[Tensor, ""], _: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        state_grad, weight_grad = ctx.saved_tensors
        return state_grad * loss_grad, weight_grad * loss_grad, None, None, None


def _turn_into_gradients(
    logits: Float[Tensor, "position vocabulary"], label: Int[Tensor, "position 1"], smoothing: float
) -> Float[Tensor, " part"]:
    """Overwrite logits with the gradient of the loss by them, and give the sums (loss, cross-entropy, correct).

    In place, since a copy would cost as much as computing them.
    """
    gold = logits.gather(1, label)
    highest = logits.amax(1, keepdim=True)
    mean = logits.mean(1, keepdim=True)
    total = logits.sub_(highest).exp_().sum(1, keepdim=True)
    logits.div_(total).sub_(smoothing / logits.shape[1])
    logits.scatter_add_(1, label, torch.full_like(gold, smoothing - 1))
    normalizer = highest + total.log()
    loss = normalizer - (1 - smoothing) * gold - smoothing * mean
    return torch.stack([loss.sum(), (normalizer - gold).sum(), (gold == highest).sum()])
