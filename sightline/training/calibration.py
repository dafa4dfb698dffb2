"""Training a calibrated model: translation and mask side by side, each on its own loss (Lu et al. 2021, section 3).

One encoder pass and two decoder passes: with calibrated attention for the translation loss (eq. 11), with perturbed
attention for the loss of the mask model (eq. 5),

    L(theta^m) = - L_NMT(a^p) + alpha L_c

where both cross-entropies have the run's label smoothing, as in the released code. The penalty falls on the mask of the
perturbed pass, which is the one that does the harm; as `released`, on that of the calibrated pass. The translation
model and the gate learn from the first alone, the mask's W^Q and W^K from the second alone. Since no parameter sees
both, one backward pass through their sum gives each its own gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sightline.attend.calibration import Calibration, Mask
from sightline.attend.settings import CalibrationSettings
from sightline.models.loaded import LoadedModel
from sightline.training.architectures import load_trained
from sightline.training.batches import IGNORED
from sightline.training.objective import COUNTED, Objective
from sightline.training.recipe import CalibratedTrainingSettings
from sightline.verbs.calibrating import attach_calibration

FORMED = 0.1
"""The harm, in nats a token, that shows that attention has formed: perturbing what is still near uniform does none."""
RECENT = 0.1
"""The weight of the last batch in the average of the harm."""
TINY = 1e-12
"""Stands under the root of a norm, whose slope at zero would be infinite."""


def prepare_calibration(model: LoadedModel, settings: CalibratedTrainingSettings) -> None:
    """Attach a new calibration to a model and, where the recipe names a base, load its weights, which are then kept."""
    if settings.base is not None:
        load_trained(model.module, settings.base, "calibration.base")
        model.module.requires_grad_(False)
    attach_calibration(
        model, CalibrationSettings(**{f.name: getattr(settings, f.name) for f in fields(CalibrationSettings)})
    )


def average_harm(average: float, latest: float) -> float:
    """Return the average of the mask's harm with that in the latest batch."""
    return (1 - RECENT) * average + RECENT * latest


class CalibratedObjective(Objective):
    """A calibrated translation model with its two losses, as one module that can be run on many processes."""

    @property
    def counted(self) -> tuple[str, ...]:  # type: ignore[override]
        """Name what is counted in training: the perturbed cross-entropy too, and the mean mask, in all and by layer."""
        return (*COUNTED, "perturbed_loss", "mask", *mask_names(len(self.model.calibration.layers)))

    def forward(
        self,
        input_ids: Int[Tensor, "batch source"],
        attention_mask: Int[Tensor, "batch source"],
        decoder_input_ids: Int[Tensor, "batch target"],
        labels: Int[Tensor, "batch target"],
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " count"]]:
        """Return the smoothed translation loss, in training plus the mask's, summed over labels; and the counts."""
        calibration: Calibration = self.model.calibration
        penalty = calibration.settings.penalty
        encoded = self.model.get_encoder()(input_ids=input_ids, attention_mask=attention_mask)
        inputs = {"attention_mask": attention_mask, "decoder_input_ids": decoder_input_ids}
        with calibration.running("calibrated", penalized=self.training and penalty == "released") as calibrated:
            loss, counts = self.predict(labels, self.label_smoothing, encoder_outputs=encoded, **inputs)
        if not self.training:
            return loss, counts
        apart = type(encoded)(**{name: part.detach() for name, part in encoded.items()})
        with _only_the_mask_learns(self.model, calibration), calibration.running("perturbed") as perturbed:
            harm, of_harm = self.predict(labels, self.label_smoothing, encoder_outputs=apart, **inputs)
        masks, steps = perturbed.by_layer(), labels.ne(IGNORED)
        penalized = calibrated.by_layer() if penalty == "released" else masks
        size = mask_size(penalized, attention_mask, steps, penalty)
        kept = sums_of_means(masks, attention_mask, steps)
        more = torch.cat([of_harm[:1], kept.mean(0, keepdim=True), kept]).to(counts.dtype)
        return loss - harm + calibration.alpha * size, torch.cat([counts, more])


def mask_names(layers: int) -> list[str]:
    """Name the mean mask of each layer, as the log has it."""
    return [f"mask_{number}" for number in range(layers)]


def mask_size(
    masks: Sequence[Mask],
    source_mask: Int[Tensor, "batch source"],
    steps: Bool[Tensor, "batch target"],
    penalty: str,
) -> Float[Tensor, ""]:
    """Sum the penalty L_c over real steps (eq. 6).

    mean: the mean over layers and heads of ||1 - m_t|| / sqrt(n) for n real source positions
    squared: the mean over layers and heads of ||1 - m_t||^2 / n
    released: one norm of 1 - m over layers, heads, sentences, steps and positions, divided by the source's length
    """
    # At padding the mask is 1, so that 1 - m counts real source positions only.
    squares = [(1 - mask).square().sum(-1) * steps[:, None] for mask in masks]  # (batch, head, target) each
    if penalty == "released":
        return (torch.stack([layer.sum() for layer in squares]).sum() + TINY).sqrt() / source_mask.shape[1]
    length = source_mask.sum(1).to(squares[0].dtype)[:, None, None]
    # Deviation: the paper's norm is not squared. Its slope does not fall as m nears 1, so that a layer whose mask does
    # less harm than a critical amount stays at m = 1; squared, no layer does.
    sizes = [layer / length if penalty == "squared" else ((layer + TINY) / length).sqrt() for layer in squares]
    return (torch.stack([size.mean(1) for size in sizes]).mean(0) * steps).sum()


@torch.no_grad()
def sums_of_means(
    masks: Sequence[Mask], source_mask: Int[Tensor, "batch source"], steps: Bool[Tensor, "batch target"]
) -> Float[Tensor, " layer"]:
    """Sum the mean of each layer's mask over heads and real source positions, over real steps."""
    real = source_mask[:, None, None].to(masks[0].dtype)
    means = torch.stack([(mask * real).sum(-1).mean(1) for mask in masks]) / real.sum(-1)[:, 0]  # (layer, batch, step)
    return (means * steps).sum((1, 2))


@contextmanager
def _only_the_mask_learns(model: nn.Module, calibration: Calibration) -> Iterator[None]:
    """Make constants of all parameters but those of the mask, for the passes of the context."""
    mask = {id(parameter) for parameter in calibration.mask_parameters}
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in mask]
    for parameter in others:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in others:
            parameter.requires_grad_(True)
