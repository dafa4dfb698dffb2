"""The attention that would serve best: weights that make the right output most probable (Snell et al. 2021, A.1).

Where the output is linear in the context, p = softmax(sum_l alpha_l gamma_l) with gamma_l the logits of position l
alone (the state's own part included, since weights sum to 1), the loss

    -log p_y = log sum_o exp(sum_l alpha_l (gamma_lo - gamma_ly))        (eq. 35-37)

is convex in alpha on the simplex. It is minimised by exponentiated gradients (mirror descent), whose step each row
finds for itself. What is left to gain is bounded by the gap of Frank and Wolfe, max_l <slope, alpha - e_l>.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TOLERANCE = 1e-5
FASTER, SLOWER = 1.5, 0.5
LONGEST = 4.0
"""What a step may change in the logarithm of a weight."""


@torch.no_grad()
def optimal_attention(
    logits: Float[Tensor, "row source output"],
    outputs: Int[Tensor, " row"],
    mask: Bool[Tensor, "row source"] | None = None,
    steps: int = 500,
) -> tuple[Float[Tensor, "row source"], Float[Tensor, " row"]]:
    """Find the weights of least loss for each row; give them, and for each how far its loss may be from the least."""
    real = torch.ones_like(logits[..., 0], dtype=torch.bool) if mask is None else mask
    right = outputs[:, None, None].expand(-1, logits.shape[1], 1)
    differences = logits - logits.gather(2, right)  # (row, source, output): 0 at the right one
    # Logarithms of weights: what one step makes tiny, a later one can bring back.
    log_weights = torch.zeros_like(logits[..., 0]).masked_fill(~real, -torch.inf).log_softmax(1)
    weights = log_weights.exp()
    loss, slope = _loss_and_slope(weights, differences)
    rate = torch.ones_like(loss)
    for _ in range(steps):
        gap = _gap(weights, slope, real)
        if (gap <= TOLERANCE).all():
            break
        change = rate[:, None] * (slope - (weights * slope).sum(1, keepdim=True)) * real
        change = change * (LONGEST / change.abs().amax(1, keepdim=True)).clamp(max=1)
        proposed = (log_weights - change).log_softmax(1)
        proposed_loss, proposed_slope = _loss_and_slope(proposed.exp(), differences)
        better = (proposed_loss <= loss) & (gap > TOLERANCE)  # a row that is done stays, whatever others need
        log_weights = torch.where(better[:, None], proposed, log_weights)
        slope = torch.where(better[:, None], proposed_slope, slope)
        loss = torch.where(better, proposed_loss, loss)
        rate = torch.where(better, rate * FASTER, rate * SLOWER)
        weights = log_weights.exp()
    return weights, _gap(weights, slope, real)


def _loss_and_slope(
    weights: Float[Tensor, "row source"], differences: Float[Tensor, "row source output"]
) -> tuple[Float[Tensor, " row"], Float[Tensor, "row source"]]:
    """Return -log p of the right outputs, and its derivative by each weight: sum_o p_o (gamma_lo - gamma_ly)."""
    mixed = torch.bmm(weights[:, None], differences)[:, 0]
    slope = torch.bmm(differences, mixed.softmax(1)[..., None])[..., 0]
    return mixed.logsumexp(1), slope


def _gap(
    weights: Float[Tensor, "row source"], slope: Float[Tensor, "row source"], real: Bool[Tensor, "row source"]
) -> Float[Tensor, " row"]:
    """Bound what is left to gain: <slope, alpha - e_l> at the best l."""
    return (weights * slope).sum(1) - slope.masked_fill(~real, torch.inf).amin(1)
