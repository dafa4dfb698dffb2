"""Packing a trained run into the box: small, measured, with its card, and loaded by its name."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from training.tiny import recipe

import sightline
from sightline.errors import InputError
from sightline.training import train
from sightline.verbs.remembering import FILE_NAME

TOOL = Path(__file__).parents[2] / "tools" / "pack_box_model.py"


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("pack_box_model", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    module.SEARCH = {"num_beams": 1, "length_penalty": 1.0, "max_new_tokens": 5}
    module.CHOICE_PAIRS = 3
    all_gold = module.read_gold
    module.read_gold = lambda *registers: all_gold(*registers)[:2]
    return module


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = recipe()["data"] | {"test": {"held_out": 4}, "languages": ["en", "es"], "bidirectional": True}
    folder = tmp_path_factory.mktemp("run") / "trained"
    train(recipe(data=data, training={"steps": 4}), output=folder, quiet=True)
    return folder


def test_a_run_is_packed(tool: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tool.pack(run, tmp_path, test_pairs=4)
    names = {file.name for file in folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= names
    assert names <= {"generation_config.json", "tokenizer_config.json", FILE_NAME} | {
        "config.json", "model.safetensors", "tokenizer.json", "README.md",
    }  # fmt: skip
    assert {tensor.dtype for tensor in load_file(folder / "model.safetensors").values()} == {torch.float16}

    monkeypatch.setenv("SIGHTLINE_BOX", str(tmp_path))
    packed, trained = sightline.load(), sightline.load(run)
    assert packed.other_way is not None
    text = "The cat sleeps"
    assert packed.encode(text, None).ids == trained.encode(text, None).ids
    for one, other in zip(packed.module.parameters(), trained.module.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)

    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in (
        "| en-es | en-es | BLEU |",
        "| en-es | es-en | chrF2 |",
        "On 4 held-out pairs",
        "CC BY 2.0 FR",
        "seed 1",
        "4 steps",
    ):
        assert part in card
    assert r"nrefs:1\|case:mixed" in card
    assert "| en-es | everyday and encyclopaedic |" in card
    with pytest.raises(InputError, match="lacks its own model en-es-calibrated"):
        sightline.load("en-es-calibrated")


def test_a_calibration_is_packed_with_the_model_that_it_was_trained_for(
    tool: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGHTLINE_BOX", str(tmp_path / "box"))
    tool.pack(run, tmp_path / "box", test_pairs=4)
    calibrated = _calibrate(run, "en-es", tmp_path / "calibrated")
    folder = tool.pack(run, tmp_path / "box", calibrated, test_pairs=4)
    plain, twin, trained = sightline.load("en-es"), sightline.load("en-es-calibrated"), sightline.load(calibrated)
    assert plain.calibration is None
    assert twin.calibration is not None
    for name, tensor in twin.calibration.state_dict().items():
        torch.testing.assert_close(tensor, trained.calibration.state_dict()[name], atol=1e-3, rtol=1e-3)
    assert {tensor.dtype for tensor in twin.module.state_dict().values() if tensor.is_floating_point()} == {
        torch.float32
    }
    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in ("| en-es-calibrated | en-es | BLEU |", "## The calibrated twin", "Fusion gate"):
        assert part in card

    other = _calibrate(run, str(run), tmp_path / "other")
    with pytest.raises(InputError, match="was trained for other weights: pack the model, then"):
        tool.pack(run, tmp_path / "box", other, test_pairs=4)
    with pytest.raises(InputError, match="holds a model without calibration"):
        tool.pack(run, tmp_path / "box", run, test_pairs=4)


def _calibrate(run: Path, base: str, folder: Path) -> Path:
    """Train a calibration for a moment, for the model of a run as it is, or as it is packed."""
    written = json.loads((run / "recipe.json").read_text(encoding="utf-8"))
    changes = {"calibration.fusion": "gate", "calibration.base": base, "training.steps": 2}
    train(written, set=changes, output=folder, quiet=True)
    return folder


def test_what_does_not_fit_leaves_the_box_as_it_was(
    tool: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "MAX_BYTES", 1000)
    with pytest.raises(InputError, match="the box has room for 1,000"):
        tool.pack(run, tmp_path, test_pairs=4)
    assert list(tmp_path.iterdir()) == []


def test_mistakes(tool: Any, run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds out 4 pairs for test, and 2000 are needed"):
        tool.pack(run, tmp_path)
    with pytest.raises(InputError, match="give the folder of a finished training run"):
        tool.pack(tmp_path / "nowhere", tmp_path)
