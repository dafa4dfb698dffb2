"""doctor: complete, honest about what is missing, and the same as data and as text."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import box
import pytest

from sightline import diagnosis
from sightline.cli import main
from sightline.diagnosis import diagnose


def test_versions_are_those_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SIGHTLINE_BOX", str(tmp_path))
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path))
    found = diagnose()
    assert found["versions"]["torch"] == version("torch")
    assert found["folder of corpora"] == str(tmp_path)
    assert found["environment"]["SIGHTLINE_BOX"] == str(tmp_path)
    assert found["model in the box"] is None
    box.fill(tmp_path)
    assert str(diagnose()["model in the box"]).startswith("en-es, 0.")


def test_missing_extras_and_corpora_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        diagnosis,
        "requires",
        lambda _: [
            "numpy>=2",
            'nowhere-found>=1; extra == "plot"',
            'numpy>=1; extra == "plot"',
            'ruff; extra == "test"',
        ],
    )
    monkeypatch.setenv("SIGHTLINE_DATA", "/nowhere")
    found = diagnose()
    assert found["extras"] == {"plot": {"nowhere-found": None, "numpy": version("numpy")}}
    assert found["folder of corpora"] is None


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SIGHTLINE_BOX", str(tmp_path))
    for options in (["--json"], []):
        with pytest.raises(SystemExit):
            main(["doctor", *options])
    as_json, *lines = capsys.readouterr().out.splitlines()
    found = json.loads(as_json)
    assert [line.partition(":")[0] for line in lines] == list(found)
    assert "model in the box: missing" in lines
    assert lines[0].startswith(f"versions: python {found['versions']['python']}; ")
