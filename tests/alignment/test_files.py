"""Files that are aligned, joined and scored: whoever follows is told how far it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.alignment import steps
from sightline.alignment.bitext import build_bitext
from sightline.alignment.error_rate import RESAMPLES, score_files
from sightline.alignment.files import align_files
from sightline.alignment.statistical import ALIGNERS, count_passes, train_aligner
from sightline.alignment.symmetrization import symmetrize_files


class Followed:
    """Steps that are noted: their labels, totals and counts, and the last share that was told."""

    def __init__(self) -> None:
        self.steps: list[list] = []
        self.share: float | None = None

    def begin(self, label: str, total: int | None = None) -> None:
        self.steps.append([label, total, 0])

    def advance(self, rows: int, share: float | None = None) -> None:
        self.steps[-1][2] += rows
        self.share = share or self.share


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(steps, "LINES_AT_ONCE", 2)
    (tmp_path / "text").write_text("the cat ||| el gato\n||| \nthe dog ||| el perro\na dog ||| un perro\n")
    return tmp_path / "text"


@pytest.mark.parametrize("name", ALIGNERS)
@pytest.mark.parametrize("iterations", [None, 2])
def test_every_pass_is_told(name: str, iterations: int | None) -> None:
    passed: list[int] = []
    bitext = build_bitext([(["the", "cat"], ["el", "gato"]), (["a"], ["un"]), (["the"], ["el"])])
    train_aligner(bitext, name, iterations, passed.append)
    assert sum(passed) == 3 * count_passes(name, iterations)
    assert len(passed) > 2


@pytest.mark.parametrize("name", ALIGNERS)
def test_steps_of_training_and_aligning(text: Path, tmp_path: Path, name: str) -> None:
    followed = Followed()
    aligned = sum(map(len, align_files(text, aligner=name, save=tmp_path / "saved", steps=followed)))
    passes = 3 * count_passes(name)
    # One pair of the four has no words, and is not trained on.
    assert followed.steps == [["Reading", None, 4], [f"Training {name}", passes, passes], ["Aligning", 3, 4]]
    assert aligned == 4
    assert followed.share == 1.0
    followed = Followed()
    assert sum(map(len, align_files(text, load=tmp_path / "saved", steps=followed))) == 4
    assert followed.steps == [["Aligning", None, 4]]


def test_eflomal_does_not_say_how_far_it_is(text: Path) -> None:
    pytest.importorskip("eflomal")
    followed = Followed()
    assert sum(map(len, align_files(text, aligner="eflomal", steps=followed))) == 4
    assert followed.steps == [["Reading", None, 4], ["Training eflomal", None, 0]]


def test_steps_of_joining_and_scoring(text: Path) -> None:
    text.write_text("0-0 1-1\n0-0\n\n0-1 1-0\n")
    followed = Followed()
    followed.begin("Joining")
    assert len(list(symmetrize_files(text, text, "union", steps=followed))) == 4
    assert (followed.steps, followed.share) == ([["Joining", None, 4]], 1.0)
    followed = Followed()
    followed.begin("Reading")
    assert score_files(text, text, steps=followed).aer.value == 0.0
    assert followed.steps == [["Reading", None, 4], ["Resampling", 4 * RESAMPLES, 4 * RESAMPLES]]
