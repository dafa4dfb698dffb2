"""All studies with an index, and reports drawn again from kept results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sightline.cli import main
from sightline.errors import InputError
from sightline.json_files import write_json
from sightline.studies import STUDIES, index
from sightline.studies.running import StudyResult
from sightline.view.report import render_report_page

KEPT = Path(__file__).parents[2] / "docs" / "studies" / "results"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return int(stopped.value.code or 0)


def test_kept_results_are_drawn_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("study", "all", "--from", KEPT, "-o", tmp_path / "drawn") == 0
    names = [path.stem for path in sorted(KEPT.glob("*.json"))]
    assert names
    page = (tmp_path / "drawn" / "index.html").read_text(encoding="utf-8")
    listed = (tmp_path / "drawn" / "index.md").read_text(encoding="utf-8")
    for name in names:
        document = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
        folder = tmp_path / "drawn" / name
        assert (folder / "study.html").read_text(encoding="utf-8") == render_report_page(document)
        assert json.loads((folder / "study.json").read_text(encoding="utf-8")) == document
        assert f"href='{name}/study.html'" in page
        verdicts = [claim["verdict"] for claim in document["claims"]]
        measured = len(verdicts) - verdicts.count("not measured")
        assert f"| {verdicts.count('holds')} of {measured} | {verdicts.count('not measured')} |" in listed
    assert "The index is in" in capsys.readouterr().out


def test_a_single_study_is_drawn_out_of_those_that_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads((KEPT / "norms.json").read_text(encoding="utf-8"))
    (tmp_path / "kept").mkdir()
    for name in ("norms", "sparsity"):
        write_json(tmp_path / "kept" / f"{name}.json", document | {"study": name})
    assert run("study", "sparsity", "--from", tmp_path / "kept", "-o", tmp_path / "drawn", "--json") == 0
    assert json.loads(capsys.readouterr().out)["study"] == "sparsity"
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == ["index.html", "index.md", "sparsity"]
    assert run("study", "learning", "--from", tmp_path / "kept", "-o", tmp_path / "none", "--json") == 2
    assert "holds no results of the study learning, but of: norms, sparsity." in capsys.readouterr().err
    assert run("study", "sparcity", "--from", tmp_path / "kept", "-o", tmp_path / "none") == 2
    assert "There is no study 'sparcity'. Did you mean 'sparsity'?" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_all_studies_are_run_each_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads((KEPT / "norms.json").read_text(encoding="utf-8"))
    asked = []

    def pretend(name: str, preset: str, *, output: Path, **_: object) -> StudyResult:
        asked.append((name, preset, output))
        return StudyResult(output, {"missing": ["a step"]} if name == "saliency" else document | {"study": name})

    monkeypatch.setattr(index, "run_study", pretend)
    results = index.run_all_studies("standard", output=tmp_path)
    assert asked == [(name, "standard", tmp_path / name) for name in STUDIES]
    assert len(results) == len(STUDIES)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(f"href='{name}/study.html'" in page for name in STUDIES if name != "saliency")
    assert "saliency/study.html" not in page, "it is not finished"


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="holds no results"):
        index.draw_studies(tmp_path, tmp_path / "out")
    (tmp_path / "damaged.json").write_text('{"study": 3}', encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        index.draw_studies(tmp_path, tmp_path / "out")
    assert run("study", "all", "--only", "toy") == 2
    assert "belong to a single study" in capsys.readouterr().err
