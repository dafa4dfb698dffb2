"""A calibrated model before and after calibration, and its mask, in one picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.cli import main
from sightline.models.loaded import LoadedModel


def twin() -> LoadedModel:
    found = sightline.calibrate(zoo.model("marian"), fusion="fixed", ratio=0.5)
    with torch.no_grad():
        for parameter in found.calibration.parameters():
            parameter.normal_(0, 0.5, generator=torch.Generator().manual_seed(parameter.numel()))
    return found


def test_the_three_belong_together() -> None:
    model = twin()
    options = {"method": "attention", "head": "all"}
    heads = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], **options, original=True)
    removed = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="perturbation_mask")
    compared = sightline.compare_calibration(model, zoo.SOURCES[0], zoo.TARGETS[0])
    assert compared.before.axes == compared.after.axes == compared.mask.axes == ("layer",)
    np.testing.assert_allclose(compared.before.scores, heads.scores.mean(1), rtol=1e-5)
    np.testing.assert_allclose(compared.mask.scores, removed.scores.mean(1), rtol=1e-5)
    after = heads.scores + 0.5 * heads.scores * np.exp(removed.scores)
    np.testing.assert_allclose(compared.after.scores, after.mean(1), rtol=1e-4)


def test_words_sum_weights_and_average_masks() -> None:
    compared = sightline.compare_calibration(twin(), zoo.SOURCES[0], zoo.TARGETS[0])
    by_word = compared.words()
    np.testing.assert_allclose(by_word.before.scores.sum(-1), 1, rtol=1e-5)
    assert by_word.mask.scores.max() <= 1
    assert len(by_word.mask.source) == len(by_word.before.source) < len(compared.mask.source)


def test_a_page_has_three_pictures_for_every_layer() -> None:
    compared = sightline.compare_calibration(twin(), zoo.SOURCES[0])  # of its own output
    frames = compared.frames()["frames"]
    assert len(frames) == len(compared.before.scores)
    for frame in frames:
        assert [table["title"][:6] for table in frame["tables"]] == ["before", "after ", "1 - m,"]
    page = compared.to_html()
    assert page.count("<svg") == len(frames)
    assert page.count("before calibration") == len(frames)


def code_of(command: list[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        main(command)
    return ended.value.code or 0


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twin().save(tmp_path / "model")
    command = ["explain", "--model", str(tmp_path / "model"), "--calibration", zoo.SOURCES[0], zoo.TARGETS[0]]
    files = ["--html", str(tmp_path / "page.html"), "--json", str(tmp_path / "data.json")]
    assert code_of([*command, *files]) == 0
    assert "before calibration" in (tmp_path / "page.html").read_text()
    assert json.loads((tmp_path / "data.json").read_text()).keys() == {"before", "after", "mask"}
    assert capsys.readouterr().out.count("perturbation_mask") == 1
    assert code_of([*command, "-s", "layer=0"]) != 0
    assert "leave --method and --set out" in capsys.readouterr().err


def test_models_without_calibration_are_refused() -> None:
    with pytest.raises(sightline.InputError, match="is not calibrated"):
        sightline.compare_calibration(zoo.model("marian"), zoo.SOURCES[0], zoo.TARGETS[0])
