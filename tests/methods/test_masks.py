"""The deletion game: the fitted mask hurts more than chance, and a dearer mask is smaller."""

from __future__ import annotations

import numpy as np
import torch
import zoo

import sightline
from sightline.attend.watch import Change, watch
from sightline.methods.masks import perturbation_mask
from sightline.methods.settings import PerturbationMaskSettings


def loss_under(model, batch, removed: torch.Tensor) -> float:
    """Return the mean loss when this much of the attention is replaced by a uniform one (Lu et al., eq. 3)."""
    uniform = batch.mask[:, None, None].float() / batch.mask.sum(1)[:, None, None, None]

    def perturbed(call, weights):
        return (1 - removed[:, None]) * weights + removed[:, None] * uniform

    layers = [layer.module for layer in model.layers("cross")]
    with torch.no_grad(), watch(model.module, layers, change=Change(weights=perturbed)):
        log_probs = model.log_probs(batch)
    return -(log_probs * batch.row_mask).sum().item() / batch.row_mask.sum().item()


def fitted(model, **settings) -> list[sightline.Attribution]:
    return sightline.explain(model, zoo.SOURCES, zoo.TARGETS, method="perturbation_mask", **settings)


def test_a_fitted_mask_hurts_more_than_a_shuffled_one() -> None:
    model = zoo.model("marian")
    examples = [model.encode(s, t) for s, t in zip(zoo.SOURCES, zoo.TARGETS, strict=True)]
    batch = model.batch(examples)
    removed = torch.zeros(len(examples), batch.decoder_ids.shape[1], batch.ids.shape[1])
    for row, why in enumerate(fitted(model)):
        assert ((why.scores >= 0) & (why.scores <= 1)).all()
        removed[row, : why.scores.shape[0], : why.scores.shape[1]] = torch.from_numpy(why.scores.copy())
    shuffled = removed.clone()
    generator = torch.Generator().manual_seed(0)
    for row, example in enumerate(examples):
        columns = torch.randperm(len(example.ids), generator=generator)
        shuffled[row, :, : len(example.ids)] = removed[row][:, columns]
    nothing = loss_under(model, batch, torch.zeros_like(removed))
    assert loss_under(model, batch, removed) > loss_under(model, batch, shuffled)
    assert loss_under(model, batch, removed) > nothing + 0.1


def test_a_dearer_mask_is_smaller() -> None:
    model = zoo.model("bart")
    sizes = [np.mean([why.scores.mean() for why in fitted(model, alpha=alpha)]) for alpha in (0.0, 1.0, 10.0)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_mask_that_is_too_dear_takes_nothing_away() -> None:
    """Not even numbers that are none: the slope of a root is infinite at zero."""
    for why in fitted(zoo.model("marian"), alpha=1e6, rate=10.0, steps=8):
        assert (why.scores == 0).all()


def test_the_model_is_left_as_it_was() -> None:
    model = zoo.fresh("marian")
    before = {name: (p.clone(), p.requires_grad) for name, p in model.module.named_parameters()}
    fitted(model, steps=2)
    for name, parameter in model.module.named_parameters():
        value, trainable = before[name]
        assert parameter.requires_grad == trainable
        assert parameter.grad is None
        assert torch.equal(parameter, value)


def test_nothing_of_padding_is_removed() -> None:
    model = zoo.model("marian")
    batch = model.batch([model.encode(s, t) for s, t in zip(zoo.SOURCES, zoo.TARGETS, strict=True)])
    removed = perturbation_mask(model, batch, PerturbationMaskSettings(steps=2)).scores
    real = batch.mask[:, None].expand_as(removed)
    assert not real.all()
    assert (removed[~real] == 0).all()
    assert (removed[real] > 0).all()


def test_a_calibrated_model_has_learnt_its_masks() -> None:
    """In a batch, where some are padded, they are those of each pair alone."""
    twin = sightline.calibrate(zoo.model("marian"))
    for why, source, target in zip(fitted(twin), zoo.SOURCES, zoo.TARGETS, strict=True):
        batch = twin.batch([twin.encode(source, target)])
        with torch.no_grad(), twin.calibration.running("calibrated") as masks:
            twin.run(batch)
        expected = [1 - mask[0, :, batch.rows[0]] for mask in masks.by_layer()]
        np.testing.assert_allclose(why.scores, torch.stack(expected), atol=1e-5)
