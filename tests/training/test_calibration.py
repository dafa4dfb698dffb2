"""Training a calibrated model: both losses as the equations have them, and each parameter on its own loss alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import zoo
from safetensors.torch import load_file
from torch import Tensor
from training.tiny import recipe, same_weights

import sightline
from sightline.attend.calibration import CalibrationSettings
from sightline.models.lstm import LstmSettings, build_lstm
from sightline.models.transformer import TransformerSettings, build_transformer
from sightline.training import train
from sightline.training.batches import IGNORED
from sightline.training.calibration import CalibratedObjective
from sightline.training.recipe import read_recipe
from sightline.verbs.calibrating import attach_calibration

ALPHA, SMOOTHING = 0.7, 0.1


def calibrated(architecture: str = "transformer", **settings: Any) -> Any:
    """Build a small calibrated model without dropout, some way from its beginning."""
    torch.manual_seed(0)
    tokenizer = zoo.marian_tokenizer()
    if architecture == "transformer":
        sizes = TransformerSettings(2, 2, width=16, heads=2, feed_forward=24, dropout=0.0, max_positions=32)
        model: Any = build_transformer(sizes, tokenizer)
    else:
        form = {"bidirectional": False, "input_feeding": True, "combination": "tanh", "tied": "none"}
        model = build_lstm(LstmSettings(layers=1, width=16, heads=2, dropout=0.0, **form), tokenizer)
    calibration = attach_calibration(
        sightline.load(model, tokenizer), CalibrationSettings(alpha=ALPHA, fusion="gate", **settings)
    )
    with torch.no_grad():
        for parameter in calibration.parameters():
            parameter.normal_(0, 0.4)
    return model


def batch() -> dict[str, Tensor]:
    """Give two pairs of different lengths, padded on both sides."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(5, 40, (2, 6), generator=generator)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    labels = torch.randint(5, 40, (2, 5), generator=generator)
    labels[1, 3:] = IGNORED
    decoder = torch.cat([torch.full((2, 1), 3), labels[:, :-1]], 1).masked_fill(labels == IGNORED, 3)
    return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": decoder.clamp(min=0), "labels": labels}


def literal_losses(model: Any, tensors: dict[str, Tensor], penalty: str) -> tuple[Tensor, Tensor]:
    """Compute the translation loss (eq. 11, smoothed) and the mask's loss (eq. 5 and 6), from whole passes."""
    inputs = {name: tensors[name] for name in ("input_ids", "attention_mask", "decoder_input_ids")}
    labels = tensors["labels"]
    hidden = {"use_cache": False, **inputs}
    vocabulary = model.get_output_embeddings().weight
    logits = model.base_model(**hidden)[0] @ vocabulary.T
    translation = F.cross_entropy(logits.transpose(1, 2), labels, label_smoothing=SMOOTHING, reduction="sum")
    with model.calibration.running("perturbed") as masks:
        perturbed = model.base_model(**hidden)[0] @ vocabulary.T
    cross_entropy = F.cross_entropy(perturbed.transpose(1, 2), labels, reduction="sum")
    layers = masks.by_layer()
    total = torch.zeros(())
    for b in range(len(labels)):
        real = int(tensors["attention_mask"][b].sum())
        for t in range(labels.shape[1]):
            if labels[b, t] == IGNORED:
                continue
            for layer in layers:
                for head in range(layer.shape[1]):
                    removed = (1 - layer[b, head, t, :real]).square().sum()
                    if penalty == "released":
                        total = total + removed
                    else:
                        total = total + (removed / real).sqrt() / (len(layers) * layer.shape[1])
    if penalty == "released":
        total = total.sqrt() / labels.new_tensor(tensors["input_ids"].shape[1])
    return translation, ALPHA * total - cross_entropy


@pytest.mark.parametrize(
    ("architecture", "penalty"), [("transformer", "mean"), ("transformer", "released"), ("lstm", "mean")]
)
def test_each_parameter_has_the_gradient_of_its_own_loss(architecture: str, penalty: str) -> None:
    model, tensors = calibrated(architecture, penalty=penalty), batch()
    objective = CalibratedObjective(model, SMOOTHING).train()
    loss, counts = objective(**tensors)
    loss.backward()
    translation, mask_loss = literal_losses(model, tensors, penalty)
    assert loss.item() == pytest.approx((translation + mask_loss).item(), rel=1e-4)
    mask_parameters = {id(p) for p in model.calibration.mask_parameters}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:  # sinusoidal positions
            continue
        of_mask = id(parameter) in mask_parameters
        (expected,) = torch.autograd.grad(mask_loss if of_mask else translation, [parameter], retain_graph=True)
        torch.testing.assert_close(parameter.grad, expected, atol=2e-5, rtol=1e-3, msg=name)
        if of_mask:
            (other,) = torch.autograd.grad(translation, [parameter], retain_graph=True, allow_unused=True)
            assert other is None, f"the translation loss reaches {name}"
    assert counts[2] == 8
    assert 0 < counts[4] / counts[2] < 1


def test_translation_learns_through_the_mask_s_value() -> None:
    model, tensors = calibrated(), batch()
    parameter = model.get_encoder().embed_tokens.weight
    (whole,) = torch.autograd.grad(literal_losses(model, tensors, "mean")[0], [parameter])
    with model.calibration.running("calibrated", change=lambda mask: mask.detach()):
        (cut,) = torch.autograd.grad(literal_losses(model, tensors, "mean")[0], [parameter])
    assert not torch.allclose(whole, cut, rtol=1e-3, atol=1e-6)


def test_it_measures_the_calibrated_model_alone() -> None:
    model, tensors = calibrated(), batch()
    objective = CalibratedObjective(model, SMOOTHING).eval()
    with torch.no_grad():
        loss, counts = objective(**tensors)
    assert loss.item() == pytest.approx(literal_losses(model, tensors, "mean")[0].item(), rel=1e-4)
    assert len(counts) == 3


def log_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Path]:
    """Train the tiny recipe with a cheap and with a dear mask."""
    folders = {}
    for alpha in (0.0, 8.0):
        folders[alpha] = tmp_path_factory.mktemp("trained") / str(alpha)
        calibration = {"fusion": "gate", "alpha": alpha, "renormalize": "sum"}
        changed = recipe(training={"steps": 24, "checkpoint_every": 8}) | {"calibration": calibration}
        train(changed, output=folders[alpha], quiet=True)
    return folders


def test_a_dearer_mask_is_nearer_to_one(trained: dict[float, Path]) -> None:
    last = {a: [line for line in log_of(folder) if line["kind"] == "train"][-1] for a, folder in trained.items()}
    assert last[0.0]["mask"] < last[8.0]["mask"]
    assert all(line["perturbed_loss"] > 0 for line in last.values())


def test_a_trained_model_loads_translates_and_gives_its_mask(trained: dict[float, Path]) -> None:
    model = sightline.load(trained[8.0])
    assert model.calibration.settings.alpha == 8.0
    source = "a b c"
    assert isinstance(sightline.translate(model, source, num_beams=2).text, str)
    why = sightline.explain(model, source, source, method="perturbation_mask")
    assert why.axes == ("layer", "head")
    assert ((why.scores >= 0) & (why.scores <= 1)).all()


def test_a_run_that_stopped_goes_on_to_the_same_weights(trained: dict[float, Path], tmp_path: Path) -> None:
    calibration = {"fusion": "gate", "alpha": 8.0, "renormalize": "sum"}
    for steps in (8, 24):
        changed = recipe(training={"steps": steps, "checkpoint_every": 8}) | {"calibration": calibration}
        train(changed, output=tmp_path, quiet=True)
    whole = trained[8.0]
    assert same_weights(whole, tmp_path)
    one, other = (load_file(folder / "calibration.safetensors") for folder in (whole, tmp_path))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_base_stays_as_it_is(tmp_path: Path) -> None:
    base, twin = tmp_path / "base", tmp_path / "twin"
    train(recipe(training={"steps": 4}), output=base, quiet=True)
    calibrated_recipe = recipe(training={"steps": 4}) | {"calibration": {"base": str(base), "renormalize": "sum"}}
    result = train(calibrated_recipe, output=twin, quiet=True)
    assert same_weights(base, twin)
    model = sightline.load(twin)
    assert result.parameters == sum(p.numel() for p in model.calibration.parameters())
    assert any(float(p.detach().abs().max()) > 0 for p in (model.calibration.layers[0].gate_weight,))
    wider = recipe(model={"width": 32}) | {"calibration": {"base": str(base)}}
    with pytest.raises(sightline.InputError, match="not the one that the recipe"):
        train(wider, output=tmp_path / "wider", quiet=True)


def test_annealing_is_saved_with_the_weights(tmp_path: Path) -> None:
    changed = recipe(training={"steps": 4, "average": 1}) | {"calibration": {"fusion": "anneal"}}
    train(changed, output=tmp_path, quiet=True)
    assert float(sightline.load(tmp_path).calibration.gamma) == pytest.approx(math.exp(-1.5))
    checkpoint = sightline.load(tmp_path / "checkpoints" / "step-0000004")
    assert float(checkpoint.calibration.gamma) == pytest.approx(math.exp(-1.5))


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        ({"fusions": "gate"}, r"calibration\.fusion"),
        ({"fusion": "mean"}, "gate"),
        ({"alpha": -1}, "alpha"),
    ],
)
def test_wrong_recipes_are_refused(calibration: dict, message: str) -> None:
    with pytest.raises(sightline.InputError, match=message):
        read_recipe(recipe() | {"calibration": calibration})
