"""The frame of studies: steps are kept, settings are never mixed, claims get their verdicts."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import InputError
from sightline.studies import find_study
from sightline.studies.running import run_study
from sightline.studies.study import Claim, Finding, Step, Study, Table, Work


@dataclass(frozen=True)
class Settings:
    size: int = 3
    seeds: tuple[int, ...] = (1, 2)


@dataclass
class Toy:
    """A study that counts what it computes and can be told to stop."""

    stop_at: str | None = None
    computed: list[str] = dataclasses.field(default_factory=list)

    def study(self, **changes: Any) -> Study:
        return Study(
            name="toy",
            title="Do toys <count>?",
            paper="Nobody 2021",
            presets={"quick": Settings(), "standard": Settings(size=4)},
            steps=self.steps,
            claims=(
                Claim("sum", "The sum is 3.", "3 (table 1)", lambda r: Finding(r["second"] == 3, f"{r['second']}")),
                Claim("big", "The sum is big.", "big", lambda r: Finding(r["second"] > 10, f"{r['second']}")),
                Claim("rest", "The rest is measured.", "yes", lambda r: r["absent"] and Finding(True, "yes")),
            ),
            tables=(Table("Numbers", "table 1", {"a": {"x": (0.5, 0.25)}}, lambda r: {"a": {"x": r["first"][0]}}),),
            plots=lambda r: [
                {
                    "kind": "lines",
                    "title": "Sums & parts",
                    "x": {"label": "step"},
                    "y": {"label": "sum"},
                    "series": [
                        {"name": "ours", "x": [1, 2, 3], "y": [1.0, None, 2.5], "low": [0, 1, 2], "high": [2, 2, 3]}
                    ],
                }
            ],
            deviations=("It is only a toy.",),
            **changes,
        )

    def steps(self, settings: Settings, data: Path | None) -> list[Step]:
        def first(work: Work) -> list[int]:
            return [
                work.keep(f"part {seed}", lambda seed=seed: self._compute(f"part {seed}", seed))
                for seed in settings.seeds
            ]

        def second(work: Work) -> int:
            return self._compute("second", sum(work.results["first"]))

        return [Step("first", first), Step("second", second), Step("absent", lambda work: None)]

    def _compute(self, name: str, value: int) -> int:
        if name == self.stop_at:
            raise KeyboardInterrupt
        self.computed.append(name)
        return value


def test_writes_a_report(tmp_path: Path) -> None:
    result = run_study(Toy().study(), "quick", output=tmp_path / "out", quiet=True)
    document = json.loads((tmp_path / "out" / "study.json").read_text())
    assert document == result.document
    assert [(claim["id"], claim["verdict"]) for claim in result.claims] == [
        ("sum", "holds"),
        ("big", "does not hold"),
        ("rest", "not measured"),
    ]
    assert set(result.claims[0]) == {"id", "text", "verdict", "ours", "paper"}
    assert document["settings"] == {"size": 3, "seeds": [1, 2]}
    assert document["versions"]["torch"]
    markdown = (tmp_path / "out" / "study.md").read_text()
    assert "| sum: The sum is 3. | holds | 3 | 3 (table 1) |" in markdown
    assert "| a | 1 [0.50 ± 0.25] |" in markdown
    page = (tmp_path / "out" / "study.html").read_text()
    assert "Do toys &lt;count&gt;?" in page
    assert "<svg" in page
    assert "Sums &amp; parts" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_a_folder_of_corpora_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="SIGHTLINE_DATA names the folder"):
        run_study(Toy().study(), "quick", output=tmp_path / "out", quiet=True)
    with pytest.raises(InputError, match="--data names the folder"):
        run_study(Toy().study(), "quick", data=tmp_path / "nowhere", output=tmp_path / "out", quiet=True)


def test_only_what_reads_the_corpora_is_on_real_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGHTLINE_DATA", raising=False)
    generated = Toy().study(on_real_data=lambda settings, data: data is not None and settings.size > 3)
    for name, study, preset, data, expected in (
        ("without", Toy().study(), "quick", None, False),
        ("with", Toy().study(), "quick", tmp_path, True),
        ("generated", generated, "quick", tmp_path, False),
        ("standard", generated, "standard", tmp_path, True),
    ):
        result = run_study(study, preset, data=data, output=tmp_path / name, quiet=True)
        assert result.document["real data"] is expected


@pytest.mark.parametrize("name", ["calibration", "saliency"])
def test_a_generated_language_is_no_real_data(name: str, tmp_path: Path) -> None:
    study = find_study(name)
    assert not study.on_real_data(study.presets["quick"], tmp_path)
    assert study.on_real_data(study.presets["standard"], None)


def test_a_stopped_study_goes_on(tmp_path: Path) -> None:
    toy = Toy(stop_at="part 2")
    with pytest.raises(KeyboardInterrupt):
        run_study(toy.study(), "quick", output=tmp_path, quiet=True)
    assert toy.computed == ["part 1"]
    toy.stop_at = None
    part = tmp_path / "steps" / "first" / "part-1.json"
    part.write_text(json.dumps(json.loads(part.read_text()) | {"seconds": 1000.0}))
    result = run_study(toy.study(), "quick", output=tmp_path, quiet=True)
    assert toy.computed == ["part 1", "part 2", "second"]
    assert 1000 <= result.document["seconds"]["first"] < 1100  # what was done before the stop counts
    run_study(toy.study(), "quick", output=tmp_path, quiet=True)
    assert toy.computed == ["part 1", "part 2", "second"]


def test_steps_shared_out_among_processes_make_one_study(tmp_path: Path) -> None:
    toy = Toy()
    first = run_study(toy.study(), "quick", output=tmp_path, only="first", quiet=True)
    assert (first.missing, first.claims) == (["second", "absent"], [])
    assert not (tmp_path / "study.json").exists()
    run_study(toy.study(), "quick", output=tmp_path, only="absent", quiet=True)
    last = run_study(toy.study(), "quick", output=tmp_path, only="sec", quiet=True)
    assert toy.computed == ["part 1", "part 2", "second"]
    assert (tmp_path / "study.json").exists()
    whole = run_study(Toy().study(), "quick", output=tmp_path / "whole", quiet=True)
    assert last.claims == whole.claims


def test_a_step_without_the_one_it_needs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="The step 'first' has to be run first"):
        run_study(Toy().study(), "quick", output=tmp_path, only="second", quiet=True)


def test_other_settings_do_not_mix(tmp_path: Path) -> None:
    run_study(Toy().study(), "quick", output=tmp_path, quiet=True)
    with pytest.raises(InputError, match=r"size = 3 \(now 4\)"):
        run_study(Toy().study(), "standard", output=tmp_path, quiet=True)


def _change(**fields: Any) -> Any:
    return lambda data: json.dumps(json.loads(data) | fields).encode()


DAMAGE = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "not UTF-8": lambda data: b"\xff" + data,
    "null": lambda data: b"null",
    "a list": lambda data: b"[" + data + b"]",
    "a number": lambda data: b"7",
    "no fields": lambda data: b"{}",
    "wrong types": _change(data=[1], seconds="a minute", study=1, settings=None),
    "huge numbers": lambda data: b'{"data": 1' + b"0" * 400 + b', "seconds": 1e999}',
    "depth": lambda data: b'{"data": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "half a letter": _change(data="\ud800", study="\ud800"),
    "other data": _change(data={"x": 1}, settings={"x": 1}),
}


@pytest.mark.parametrize("name", ["settings.json", "steps/first.json", "steps/first/part-1.json", "steps/second.json"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_one_sentence(tmp_path: Path, name: str, damage: str) -> None:
    if "part" in name:
        with pytest.raises(KeyboardInterrupt):
            run_study(Toy(stop_at="part 2").study(), "quick", output=tmp_path, quiet=True)
    else:
        run_study(Toy().study(), "quick", output=tmp_path, quiet=True)
    path = tmp_path / name
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(InputError, match=r"^[^\n]{1,500}\.$") as caught:
        run_study(Toy().study(), "quick", output=tmp_path, quiet=True)
    assert str(path) in str(caught.value) or name == "settings.json"
    path.unlink()
    if name != "settings.json":
        assert run_study(Toy().study(), "quick", output=tmp_path, quiet=True).claims[0]["verdict"] == "holds"


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir")
    with pytest.raises(InputError, match="holds no study"):
        run_study(Toy().study(), "quick", output=tmp_path, quiet=True)


def test_wrong_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no preset 'fast'"):
        run_study(Toy().study(), "fast", output=tmp_path, quiet=True)
    with pytest.raises(InputError, match=r"no study 'sparcity'.*'sparsity'"):
        run_study("sparcity", output=tmp_path, quiet=True)
    with pytest.raises(InputError, match="No step begins with 'third': the steps are first, second, absent"):
        run_study(Toy().study(), "quick", output=tmp_path / "out", only="third", quiet=True)
    assert not (tmp_path / "out").exists()  # a wrong name leaves nothing behind
    with pytest.raises(InputError, match="There is no folder"):
        run_study(Toy().study(), "quick", data=tmp_path / "none", output=tmp_path / "out", quiet=True)


def test_undefined_figures_are_empty_cells(tmp_path: Path) -> None:
    def steps(settings: Settings, data: Path | None) -> list[Step]:
        return [Step("first", lambda work: [math.nan]), Step("second", lambda work: 3), Step("absent", lambda w: None)]

    study = dataclasses.replace(Toy().study(), steps=steps)
    result = run_study(study, "quick", output=tmp_path, quiet=True)
    assert result.document["tables"][0]["ours"] == {"a": {"x": None}}
    json.loads((tmp_path / "study.json").read_text(), parse_constant=pytest.fail)
