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
from sightline.attend.alignment import AdapterShape, AlignmentAdapter
from sightline.errors import InputError
from sightline.models.packed import PACKED
from sightline.scores import Score
from sightline.text.languages import FILE_NAME as GUESS_FILE
from sightline.text.languages import LanguageGuess
from sightline.training import train
from sightline.verbs.saved_choice import FILE_NAME

TOOL = Path(__file__).parents[2] / "tools" / "pack_box_model.py"


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("pack_box_model", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    module.CHOICE_PAIRS = 3
    quality = sys.modules["box_quality"]
    quality.SEARCH.update(num_beams=1, max_new_tokens=5)
    all_gold = quality.read_gold
    quality.read_gold = lambda *registers: all_gold(*registers)[:2]
    return module


@pytest.fixture(scope="module")
def quality(tool: Any) -> Any:
    return sys.modules["box_quality"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = recipe()["data"] | {"test": {"held_out": 4}, "languages": ["en", "es"], "bidirectional": True}
    folder = tmp_path_factory.mktemp("run") / "trained"
    sizes = {"max_positions": 512}  # the pieces of this vocabulary are short, and gold sentences long
    train(recipe(data=data, model=sizes, training={"steps": 4}), output=folder, quiet=True)
    return folder


def test_a_run_is_packed(tool: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tool.pack(run, tmp_path, test_pairs=4)
    names = {file.name for file in folder.iterdir()}
    needed = {"config.json", PACKED, "tokenizer.json", "README.md", GUESS_FILE}
    assert needed <= names
    assert names <= needed | {"generation_config.json", "tokenizer_config.json", FILE_NAME}

    monkeypatch.setenv("SIGHTLINE_BOX", str(tmp_path))
    packed, trained = sightline.load(), sightline.load(run)
    assert packed.other_way is not None
    text = "The cat sleeps"
    assert packed.encode(text, None).ids == trained.encode(text, None).ids
    for one, other in zip(packed.module.parameters(), trained.module.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=other.abs().max().item() / 200, rtol=1e-3)
    assert packed.guess == trained.guess
    assert packed.guess is not None

    card = (folder / "README.md").read_text(encoding="utf-8")
    for part in (
        "| en-es | generated | en-es | BLEU |",
        "| en-es | generated | es-en | chrF2 |",
        "On held-out pairs, 4 of generated, with",
        "8 bits a weight",
        "| auto |",
        "| en-es | parliamentary | ",
        "| en-es | all | ",
        "| length | sentences | recognised |",
        "a generated language, made by Sightline",
        "seed 1",
        "4 steps",
    ):
        assert part in card
    assert "adapter |" not in card
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
    for part in ("| en-es-calibrated | generated | en-es | BLEU |", "## The calibrated twin", "Fusion gate"):
        assert part in card

    other = _calibrate(run, str(run), tmp_path / "other")
    with pytest.raises(InputError, match="was trained for other weights: pack the model, then"):
        tool.pack(run, tmp_path / "box", other, test_pairs=4)
    with pytest.raises(InputError, match="holds a model without calibration"):
        tool.pack(run, tmp_path / "box", run, test_pairs=4)


def test_an_adapter_goes_along_with_the_weights_that_it_was_trained_for(
    tool: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sightline.load(run)
    torch.manual_seed(0)
    for direction in ("en-es", "es-en"):
        model.adapters[direction] = AlignmentAdapter(AdapterShape((16, 16), (16, 16), 4))
    model.save(tmp_path / "adapted")
    folder = tool.pack(run, tmp_path / "box", adapted=tmp_path / "adapted", test_pairs=4)
    monkeypatch.setenv("SIGHTLINE_BOX", str(tmp_path / "box"))
    packed = sightline.load()
    assert packed.adapters.keys() == model.adapters.keys()
    for direction, adapter in packed.adapters.items():
        for name, tensor in adapter.state_dict().items():
            torch.testing.assert_close(tensor, model.adapters[direction].state_dict()[name].half().float())
    card = (folder / "README.md").read_text(encoding="utf-8")
    rows = [line for line in card.splitlines() if line.startswith("| en-es | everyday |")]
    assert [row.split(" | ")[4] for row in rows] == ["adapter", "auto"]

    with torch.no_grad():
        model.module.model.shared.weight.mul_(2)
    model.save(tmp_path / "other")
    with pytest.raises(InputError, match="was trained for other weights: train it for those of"):
        tool.pack(run, tmp_path / "box", adapted=tmp_path / "other", test_pairs=4)


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
    with pytest.raises(InputError, match="holds out 4 pairs of generated for test, and 2000 are needed"):
        tool.pack(run, tmp_path)
    with pytest.raises(InputError, match="holds no alignment adapter"):
        tool.pack(run, tmp_path, adapted=tmp_path, test_pairs=4)
    with pytest.raises(InputError, match="give the folder of a finished training run"):
        tool.pack(tmp_path / "nowhere", tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool, "CREDITS", {})
        with pytest.raises(InputError, match="cannot credit generated: write whom to thank"):
            tool.pack(run, tmp_path, test_pairs=4)


def test_half_precision(tool: Any, run: Path, tmp_path: Path) -> None:
    folder = tool.pack(run, tmp_path, test_pairs=4, bits=16)
    assert {tensor.dtype for tensor in load_file(folder / "model.safetensors").values()} == {torch.float16}
    assert not (folder / PACKED).exists()
    assert "as packed (half precision)" in (folder / "README.md").read_text(encoding="utf-8")


def test_names_and_numbers_count_if_they_are_whole(quality: Any) -> None:
    named = [
        (["Tom", "42"], "Tom tiene 42 años."),
        (["Madrid"], "Madridejos es un pueblo."),
        (["1987"], "en 1978"),
        (["18:25"], "a las 18:25, sale"),
    ]
    assert quality.carried_over(named) == Score(
        "names carried over", 50.0, settings={"sentences": 4, "names": 5}, decimals=1
    )


def test_languages_are_counted_by_length(quality: Any) -> None:
    guess = LanguageGuess(("en", "es"), {"the": -4.0, "el": 4.0}, {})
    tests = {"one": [("the", "el"), ("x", "the y")], "other": [("the a b c", "el a b c d")]}
    assert quality.measure_guess(guess, tests) == {
        "1 word": (3, 2, 0),
        "2 or 3 words": (1, 0, 1),
        "4 words or more": (2, 2, 0),
    }
