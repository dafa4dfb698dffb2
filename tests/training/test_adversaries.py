"""Adversarial attention: the divergences are those of the measures, and both kinds of adversary do what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from training.classifying import RECIPE

import sightline
from sightline import measures
from sightline.data.labelled import read_labelled
from sightline.errors import InputError
from sightline.training import train
from sightline.training.adversaries import AdversarialObjective, js_divergence, kl_divergence
from sightline.training.recipe import AdversarySettings

TEXTS = [example.text for example in read_labelled("generated", "test", Path())[:40]]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "run"
    train(RECIPE, output=folder, quiet=True)
    return folder


def _adversary(base: Path, output: Path, **settings: object) -> Path:
    changes = {f"adversary.{name}": value for name, value in settings.items()} | {"training.steps": 60}
    train(RECIPE, output=output, set={"adversary.of": str(base)} | changes, quiet=True)
    return output


def _divergence(base: Path, adversary: Path) -> float:
    pairs = [sightline.explain(sightline.load(folder), TEXTS, method="attention") for folder in (base, adversary)]
    values = [measures.js_divergence(p, q).mean() for p, q in zip(*pairs, strict=True)]
    return float(np.mean(values))


@pytest.mark.parametrize(("ours", "oracle"), [(js_divergence, "js_divergence"), (kl_divergence, "kl_divergence")])
def test_divergences_are_those_of_the_measures(ours: object, oracle: str) -> None:
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(6), (2, 20))
    p[:5, :3], q[5:9, 2:] = 0, 0
    p, q = p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)
    found = ours(torch.tensor(p), torch.tensor(q)).numpy()  # type: ignore[operator]
    expected = getattr(measures, oracle)(p, q)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(found[finite], expected[finite], atol=1e-9)
    assert np.isfinite(found).all()


def test_gradients_are_finite_at_zeros() -> None:
    p = torch.tensor([[0.0, 0.0, 1.0]], requires_grad=True)
    js_divergence(p, torch.tensor([[1.0, 0.0, 0.0]])).sum().backward()
    assert p.grad is not None
    assert p.grad.isfinite().all()


def test_a_frozen_adversary_keeps_the_encoder(base: Path, tmp_path: Path) -> None:
    frozen = _adversary(base, tmp_path / "frozen", frozen=True)
    before, after = (sightline.load(folder).module.state_dict() for folder in (base, frozen))
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {name for name in before if not name.startswith("attention.")}
    assert _divergence(base, frozen) > 0.1


def test_an_unfrozen_adversary_predicts_alike_and_attends_elsewhere(base: Path, tmp_path: Path) -> None:
    adversary = _adversary(base, tmp_path / "unfrozen")
    agree = [
        sightline.explain(sightline.load(base), text).target
        == sightline.explain(sightline.load(adversary), text).target
        for text in TEXTS[:10]
    ]
    assert np.mean(agree) >= 0.8
    assert _divergence(base, adversary) > 0.2


def test_the_divergence_grows_with_the_strength(base: Path, tmp_path: Path) -> None:
    weak, strong = (_adversary(base, tmp_path / str(s), frozen=True, strength=s) for s in (0.01, 2.0))
    assert _divergence(base, weak) < _divergence(base, strong)


def test_without_strength_a_copy_loses_nothing(base: Path) -> None:
    model, copy = (sightline.load(base).module.eval() for _ in range(2))
    ids = torch.tensor([[5, 6, 7, 1]])
    objective = AdversarialObjective(copy, model, AdversarySettings(str(base), strength=0.0))
    loss, _ = objective(ids, torch.ones_like(ids), torch.tensor([0]))
    assert loss.item() == pytest.approx(0, abs=1e-6)


def test_mistakes(base: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must have the architecture of its base model"):
        train(
            RECIPE,
            output=tmp_path / "other",
            set={"adversary.of": str(base), "adversary.frozen": True, "model.width": 8},
            quiet=True,
        )
