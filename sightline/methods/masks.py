"""A mask on the cross-attention that is fitted to hurt: the deletion game (Lu et al. 2021, eq. 3-6).

A calibrated model has learnt one mask for each layer and head, as a function of its states, and gives it. For any other
model, every sentence pair gets a mask of its own, shared by all cross-attention layers and heads, that mixes the
attention with a uniform one; it is fitted to raise the loss while staying small, the model being frozen. Inputs whose
mask falls are the decisive ones.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from sightline.attend.calibration import Calibration
from sightline.attend.projections import precise
from sightline.attend.watch import Call, Change, watch
from sightline.errors import InputError
from sightline.methods.scored import Scored
from sightline.methods.settings import PerturbationMaskSettings
from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel
from sightline.models.states import EncoderOutput, take_rows


def perturbation_mask(model: LoadedModel, batch: Batch, settings: PerturbationMaskSettings) -> Scored:
    """Return 1 - m of a mask that hurts each output as much as a small mask can: a calibrated model's, or a fitted one.

    a^p = m a + (1 - m) uniform (eq. 3);  m minimises  log p(y_t; a^p) + alpha ||1 - m_t||_2 / sqrt(n)  (eq. 5 and 6)
    """
    if model.calibration is not None:
        return _learnt(model, batch, model.calibration)
    layers = [layer.module for layer in model.layers("cross")]
    if batch.decoder_ids is None:
        raise InputError(f"{type(model.module).__name__} has no decoder whose attention could be masked.")
    with torch.no_grad():
        encoded = model.run_encoder(batch)
    number = precise(encoded.states).dtype
    real = batch.mask[:, None].to(number)  # (batch, 1, source)
    count = real.sum(-1, keepdim=True)
    # The sigmoid of 2 is 0.88: near "nothing perturbed", where its gradient has not vanished.
    logits = torch.full(
        (len(batch), batch.decoder_ids.shape[1], batch.ids.shape[1]), 2.0, device=batch.device, dtype=number
    )
    logits.requires_grad_()
    # A larger epsilon than usual: where the gradient is rounding noise, the mask is to stay where it is.
    optimizer = torch.optim.Adam([logits], settings.rate, eps=1e-4)

    def perturbed(call: Call, weights: Tensor) -> Tensor:
        mask = logits.sigmoid()[:, None, call.first : call.first + weights.shape[2]]
        return mask * weights + (1 - mask) * (real / count)[:, None]

    with torch.enable_grad():
        for _ in range(settings.steps):
            with watch(model.module, layers, record=(), change=Change(weights=perturbed)):
                log_probs = _log_probs(model, batch, encoded)
            removed = (1 - logits.sigmoid()) * real
            # Deviation: the root's slope at zero is infinite, so a small number stands under it.
            size = (removed.square().sum(-1) + 1e-12).sqrt() / count.sqrt()[..., 0]
            size = size.gather(1, batch.rows)
            loss = ((log_probs + settings.alpha * size) * batch.row_mask).sum()
            optimizer.zero_grad()
            loss.backward(inputs=[logits])
            optimizer.step()
    scores = ((1 - logits.sigmoid()) * real).detach()
    return Scored(take_rows(scores, batch.rows))


@torch.no_grad()
def _learnt(model: LoadedModel, batch: Batch, calibration: Calibration) -> Scored:
    """Return 1 - m of a calibrated model's own mask, layer by layer and head by head; 0 in layers that have none."""
    with calibration.running("calibrated") as masks:
        model.run(batch)
    known = dict(zip(masks.parts, masks.by_layer(), strict=True))
    ones = torch.ones_like(next(iter(known.values())))
    layers = [known.get(layer.module, ones) for layer in model.layers("cross")]
    removed = torch.stack([1 - mask for mask in layers], 1)  # (batch, layer, head, step, source)
    rows = batch.rows[:, None, None, :, None].expand(*removed.shape[:3], -1, removed.shape[-1])
    return Scored(removed.gather(3, rows), ("layer", "head"))


def _log_probs(model: LoadedModel, batch: Batch, encoded: EncoderOutput) -> Float[Tensor, "batch target"]:
    """Return the outputs' log-probabilities; the encoder, which the mask does not touch, has run before."""
    logits = take_rows(model.logits_after(batch, encoded), batch.rows)
    return -F.cross_entropy(precise(logits).transpose(1, 2), batch.outputs, reduction="none")
