"""Training a calibrated model: both losses as the equations have them, and each parameter on its own loss alone."""

from __future__ import annotations

import dataclasses
import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import zoo
from safetensors.torch import load_file
from torch import Tensor
from training.tiny import recipe, same_weights

import sightline
from sightline.attend.calibration import GAMMA
from sightline.attend.settings import CalibrationSettings
from sightline.models.lstm import LstmSettings, build_lstm
from sightline.models.transformer import TransformerSettings, build_transformer
from sightline.training import loop, train
from sightline.training.batches import IGNORED
from sightline.training.calibration import FORMED, CalibratedObjective
from sightline.training.checkpoints import Checkpoints, Position
from sightline.training.dead_masks import MaskWatch
from sightline.training.loop import clip_gradients, compute_gradients
from sightline.training.recipe import read_recipe
from sightline.training.run import prepare_run
from sightline.verbs.calibrating import attach_calibration

ALPHA, SMOOTHING = 0.7, 0.1
TINY_RECIPE = Path(__file__).parents[2] / "recipes" / "tiny.yaml"


def calibrated(architecture: str = "transformer", **settings: Any) -> Any:
    """Build a small calibrated model without dropout, some way from its beginning, in float64."""
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
    return model.double()


def batch() -> dict[str, Tensor]:
    """Return two pairs of different lengths, padded on both sides."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(5, 40, (2, 6), generator=generator)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    labels = torch.randint(5, 40, (2, 5), generator=generator)
    labels[1, 3:] = IGNORED
    decoder = torch.cat([torch.full((2, 1), 3), labels[:, :-1]], 1).masked_fill(labels == IGNORED, 3)
    return {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": decoder.clamp(min=0), "labels": labels}


def literal_losses(model: Any, tensors: dict[str, Tensor], penalty: str, alpha: float = ALPHA) -> tuple[Tensor, Tensor]:
    """Compute the translation loss (eq. 11) and the mask's loss (eq. 5 and 6), both smoothed, from whole passes."""
    inputs = {name: tensors[name] for name in ("input_ids", "attention_mask", "decoder_input_ids")}
    labels = tensors["labels"]
    hidden = {"use_cache": False, **inputs}
    vocabulary = model.get_output_embeddings().weight
    released = penalty == "released"
    running = model.calibration.running("calibrated", penalized=True) if released else nullcontext()
    with running as of_calibrated:
        logits = model.base_model(**hidden)[0] @ vocabulary.T
    translation = F.cross_entropy(logits.transpose(1, 2), labels, label_smoothing=SMOOTHING, reduction="sum")
    with model.calibration.running("perturbed") as masks:
        perturbed = model.base_model(**hidden)[0] @ vocabulary.T
    harm = F.cross_entropy(perturbed.transpose(1, 2), labels, label_smoothing=SMOOTHING, reduction="sum")
    layers = (of_calibrated if released else masks).by_layer()
    total = torch.zeros((), dtype=torch.float64)
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
                        size = removed / real if penalty == "squared" else (removed / real).sqrt()
                        total = total + size / (len(layers) * layer.shape[1])
    if penalty == "released":
        total = total.sqrt() / labels.new_tensor(tensors["input_ids"].shape[1])
    return translation, alpha * total - harm


def check_gradients(model: Any, tensors: dict[str, Tensor], translation: Tensor, mask_loss: Tensor) -> None:
    """Check that the mask has the gradient of its own loss alone, and everything else that of the translation."""
    mask_parameters = {id(p) for p in model.calibration.mask_parameters}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:  # sinusoidal positions
            continue
        of_mask = id(parameter) in mask_parameters
        (expected,) = torch.autograd.grad(mask_loss if of_mask else translation, [parameter], retain_graph=True)
        torch.testing.assert_close(parameter.grad, expected, atol=1e-10, rtol=1e-8, msg=name)
        if of_mask:
            (other,) = torch.autograd.grad(translation, [parameter], retain_graph=True, allow_unused=True)
            assert other is None, f"the translation loss reaches {name}"


@pytest.mark.parametrize(
    ("architecture", "penalty"),
    [("transformer", "mean"), ("transformer", "squared"), ("transformer", "released"), ("lstm", "mean")],
)
def test_each_parameter_has_the_gradient_of_its_own_loss(architecture: str, penalty: str) -> None:
    model, tensors = calibrated(architecture, penalty=penalty), batch()
    objective = CalibratedObjective(model, SMOOTHING).train()
    loss, counts = objective(**tensors)
    loss.backward()
    translation, mask_loss = literal_losses(model, tensors, penalty)
    assert loss.item() == pytest.approx((translation + mask_loss).item(), rel=1e-8)
    check_gradients(model, tensors, translation, mask_loss)
    figures = dict(zip(objective.counted, (counts / counts[2]).tolist(), strict=True))
    assert counts[2] == 8
    layers = [value for name, value in figures.items() if name.startswith("mask_")]
    assert len(layers) == len(model.calibration.layers)
    assert figures["mask"] == pytest.approx(sum(layers) / len(layers))
    assert 0 < figures["mask"] < 1


@pytest.mark.parametrize(("since", "risen"), [(None, 0.0), (0.0, 0.0), (0.1, 0.5), (0.2, 1.0), (0.9, 1.0)])
def test_the_penalty_is_warmed_up(since: float | None, risen: float) -> None:
    model, tensors = calibrated(alpha_warmup=0.2), batch()
    model.calibration.set_progress(0.9, since)
    CalibratedObjective(model, SMOOTHING).train()(**tensors)[0].backward()
    check_gradients(model, tensors, *literal_losses(model, tensors, "mean", ALPHA * risen))


def test_the_reported_harm_is_not_smoothed() -> None:
    model, tensors = calibrated(), batch()
    _, counts = CalibratedObjective(model, SMOOTHING).train()(**tensors)
    inputs = {name: tensors[name] for name in ("input_ids", "attention_mask", "decoder_input_ids")}
    with model.calibration.running("perturbed"):
        logits = model.base_model(**inputs, use_cache=False)[0] @ model.get_output_embeddings().weight.T
    harm = F.cross_entropy(logits.transpose(1, 2), tensors["labels"], reduction="sum")
    assert counts[3].item() == pytest.approx(harm.item(), rel=1e-8)


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
    assert loss.item() == pytest.approx(literal_losses(model, tensors, "mean")[0].item(), rel=1e-8)
    assert len(counts) == 3


def log_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def calibration_of(alpha: float) -> dict[str, Any]:
    return {"fusion": "gate", "alpha": alpha, "alpha_warmup": 0.0, "renormalize": "sum"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Path]:
    """Train the tiny recipe with a cheap and with a dear mask."""
    folders = {}
    for alpha in (0.0, 8.0):
        folders[alpha] = tmp_path_factory.mktemp("trained") / str(alpha)
        changed = recipe(training={"steps": 24, "checkpoint_every": 8}) | {"calibration": calibration_of(alpha)}
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
    for steps in (8, 24):
        changed = recipe(training={"steps": steps, "checkpoint_every": 8}) | {"calibration": calibration_of(8.0)}
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


class Progress:
    """A callback that keeps gamma and alpha as they were in each step."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float]] = []

    def __call__(self, step: int, model: Any) -> None:
        gamma = getattr(model.calibration, "gamma", torch.tensor(0.0))
        self.seen.append((float(gamma), model.calibration.alpha))


def test_a_run_anneals_and_warms_up_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention counts as formed at step 3."""
    harms = iter([0.0, 0.0, 1.0])
    monkeypatch.setattr(loop, "average_harm", lambda average, latest: next(harms))
    changed = recipe(training={"steps": 10, "average": 1})
    progress = Progress()
    calibration = {"fusion": "anneal", "alpha": 0.5, "alpha_warmup": 0.2}
    train(changed | {"calibration": calibration}, output=tmp_path, quiet=True, callbacks=[progress])
    gammas, alphas = zip(*progress.seen[1:], strict=True)  # the first is before any update
    assert gammas == pytest.approx([math.exp(-1.5 * step / 10) for step in range(1, 11)])
    assert alphas == pytest.approx([0, 0, 0, 0.25, *[0.5] * 6])


def test_there_is_no_penalty_before_attention_forms(tmp_path: Path) -> None:
    """In so few steps nothing is learned, so that perturbing attention does no harm."""
    progress = Progress()
    train(recipe() | {"calibration": {"alpha": 8.0}}, output=tmp_path, quiet=True, callbacks=[progress])
    assert [alpha for _, alpha in progress.seen[1:]] == [0.0] * 12
    position = Checkpoints(tmp_path / "checkpoints", every=4, keep=2).position(12)
    assert position.formed is None
    assert 0 < abs(position.harm) < FORMED


def test_what_showed_that_attention_had_formed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped before or after that, a run goes on with the same alpha: to the same weights."""
    monkeypatch.setattr(loop, "FORMED", 1e-4)
    calibration = {"calibration": {"alpha": 8.0, "alpha_warmup": 0.5}}
    changed = recipe(training={"steps": 12, "checkpoint_every": 2}) | calibration
    train(changed, output=tmp_path / "whole", quiet=True)
    formed = Checkpoints(tmp_path / "whole" / "checkpoints", every=2, keep=2).position(12).formed
    assert formed is not None
    assert formed < 10

    class StoppedError(Exception):
        pass

    def stop(after: int) -> Any:
        def callback(step: int, _model: Any) -> None:
            if step == after:
                raise StoppedError

        return callback

    for after in (3, 9):
        with pytest.raises(StoppedError):
            train(changed, output=tmp_path / "parts", quiet=True, callbacks=[stop(after)])
    train(changed, output=tmp_path / "parts", quiet=True)
    one, other = (load_file(tmp_path / name / "calibration.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_averaged_weights_have_the_last_annealing_share(tmp_path: Path) -> None:
    changed = recipe(training={"steps": 8, "average": 2}) | {"calibration": {"fusion": "anneal"}}
    train(changed, output=tmp_path, quiet=True)
    run = Checkpoints(tmp_path / "checkpoints", every=4, keep=2)
    shares = {step: float(run.weights([step])[GAMMA]) for step in (4, 8)}
    assert shares == pytest.approx({4: math.exp(-0.75), 8: math.exp(-1.5)})
    mean = run.weights([4, 8])
    assert float(mean[GAMMA]) == pytest.approx(math.exp(-1.5))
    name = "calibration.layers.0.query.weight"
    torch.testing.assert_close(mean[name], (run.weights([4])[name] + run.weights([8])[name]) / 2)
    last = sightline.load(tmp_path / "checkpoints" / "step-0000008")
    assert float(last.calibration.gamma) == pytest.approx(shares[8])


def test_a_checkpoint_from_before_harm_was_measured_is_read(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, every=1, keep=1)
    checkpoints.path(3).mkdir(parents=True)
    old = {
        name: value for name, value in dataclasses.asdict(Position(step=3)).items() if name not in ("harm", "formed")
    }
    (checkpoints.path(3) / "position.json").write_text(json.dumps(old))
    assert checkpoints.position(3) == Position(step=3)


@pytest.mark.parametrize(
    ("training", "calibration"),
    [
        ({"schedule": "cosine"}, None),
        ({}, {"fusion": "anneal", "alpha_warmup": 0.0}),
        ({}, {"fusion": "gate", "alpha_warmup": 1.0}),
    ],
)
def test_steps_that_were_planned_otherwise_are_refused(
    tmp_path: Path, training: dict, calibration: dict | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "FORMED", -1.0)
    sections = {} if calibration is None else {"calibration": calibration}
    train(recipe(training=training | {"steps": 8}) | sections, output=tmp_path, quiet=True)
    with pytest.raises(sightline.InputError, match=r"8 steps of a run that was planned for 8"):
        train(recipe(training=training | {"steps": 12}) | sections, output=tmp_path, quiet=True)


def test_mask_and_model_are_clipped_apart(tmp_path: Path) -> None:
    """With a mask whose gradient is enormous, the model's gradient is what it is without a mask's."""
    norms = {}
    for alpha in (0.0, 1e6):
        settings = recipe(training={"clip": 0.5}) | {"calibration": calibration_of(alpha)}
        run = prepare_run(read_recipe(settings), tmp_path / str(alpha), quiet=True)
        run.set_progress(1, None)
        run.objective.train()
        torch.manual_seed(0)
        compute_gradients(run, np.arange(8))
        clip_gradients(run, 0.5)
        model, mask = run.parameters_clipped_together
        norms[alpha] = [float(torch.stack([p.grad.norm() for p in group]).norm()) for group in (model, mask)]
        assert {id(p) for p in model + mask} == {id(p) for p in run.trained_parameters}
    assert norms[1e6] == pytest.approx([norms[0.0][0], 0.5], rel=1e-3)


def watched(means: list[float], bound: float | None = 5.0, epoch: int = 20) -> list[tuple[int, str]]:
    """Return what is found, with its step, when these means are reported every ten steps."""
    watch = MaskWatch(CalibrationSettings(bound=bound), layers=2, epoch=epoch, steps=1000)
    reports = enumerate(({"mask_0": 0.5, "mask_1": mean} for mean in means), start=1)
    return [(10 * number, text) for number, figures in reports for text in watch.observe(10 * number, figures)]


def test_a_mask_that_is_dead_for_an_epoch_is_reported_once() -> None:
    assert watched([0.9995, 0.9], bound=None) == []
    ((step, text),) = watched([0.5, 0.9995, 0.9995, 0.9995], bound=None)
    assert step == 30
    assert "layer 1 is dead" in text
    assert "since step 10" in text
    assert "lower calibration.alpha" in text
    assert watched([0.9985] * 5, bound=None) == []
    assert len(watched([0.9929] * 5)) == 1  # a bound of 5 lets no mask above 0.9933
    assert "raise calibration.alpha." in watched([0.0005] * 5, bound=None)[0][1]
    assert [step for step, _ in watched([1.0, 1.0, 0.5, 1.0, 1.0], bound=None)] == [20, 50]  # it lived in between
    assert [step for step, _ in watched([1.0] * 50, bound=None, epoch=10**6)] == [100]  # a tenth of the run


def test_a_dead_mask_is_in_the_log_and_the_result(tmp_path: Path) -> None:
    """Without warm-up and bound, a dear mask dies; the run goes on after an interruption and reports it once."""
    calibration = {"alpha": 100.0, "alpha_warmup": 0.0, "bound": None}
    for steps in (48, 64):
        changed = recipe(training={"steps": steps, "checkpoint_every": 16, "learning_rate": 0.1})
        result = train(changed | {"calibration": calibration}, output=tmp_path, quiet=True)
    assert len(result.warnings) == 1
    assert "layer 0 is dead" in result.warnings[0]
    stored = json.loads((tmp_path / "result.json").read_text())
    assert stored["warnings"] == list(result.warnings)
    assert stored["masks"] == list(result.masks)
    assert result.masks[0] > 0.999
    assert [line["text"] for line in log_of(tmp_path) if line["kind"] == "warning"] == list(result.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_masks_of_a_real_run_stay_alive(tmp_path: Path, seed: int) -> None:
    """Every layer's mask is alive at the end, does harm, and more of it where it is cheaper."""
    ends = {}
    for alpha in (0.1, 1.0):
        changes = {"seed": seed, "calibration.alpha": alpha}
        result = train(TINY_RECIPE, output=tmp_path / str(alpha), set=changes, quiet=True)
        assert result.warnings == ()
        assert all(0.05 < mask < 0.98 for mask in result.masks)
        ends[alpha] = [line for line in log_of(tmp_path / str(alpha)) if line["kind"] == "train"][-1]
        assert ends[alpha]["perturbed_loss"] > ends[alpha]["loss"] + 0.5
    assert ends[0.1]["mask"] < ends[1.0]["mask"]


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        ({"fusions": "gate"}, r"calibration\.fusion"),
        ({"fusion": "mean"}, "gate"),
        ({"alpha": -1}, "alpha"),
        ({"alpha_warmup": 1.6}, "alpha_warmup is 1.6"),
        ({"bound": 0}, "bound is 0"),
    ],
)
def test_wrong_recipes_are_refused(calibration: dict, message: str) -> None:
    with pytest.raises(sightline.InputError, match=message):
        read_recipe(recipe() | {"calibration": calibration})
