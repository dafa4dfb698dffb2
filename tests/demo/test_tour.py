"""The demo: everything is shown, in the terminal and in the report, with the model in the box and without it."""

from __future__ import annotations

import io
from html import unescape
from pathlib import Path

import box
import pytest
from rich.console import Console

import sightline
from sightline.alignment.error_rate import score_alignments
from sightline.cli import main
from sightline.data.gold import read_gold
from sightline.demo import tour
from sightline.demo.comparison import compare_methods
from sightline.demo.material import MARKED_UP, Material, material_in_the_box, read_sentences
from sightline.demo.tour import Extent, demonstrate
from sightline.errors import InputError

TINY = Extent(sentences=2, gold_pairs=2, smoothgrad=1, seconds=0.5)


@pytest.fixture
def in_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    box.fill(tmp_path / "box")
    monkeypatch.setenv("SIGHTLINE_BOX", str(tmp_path / "box"))
    monkeypatch.setattr(tour, "QUICK", TINY)
    monkeypatch.setattr(tour, "SEARCH", {"num_beams": 1, "min_new_tokens": 2, "max_new_tokens": 6})
    return tmp_path


def shown(**options: object) -> tuple[Path, str]:
    text = io.StringIO()
    report = demonstrate(**options, quick=True, console=Console(file=text, width=120))
    return report, text.getvalue()


def test_the_model_in_the_box_is_shown(in_box: Path) -> None:
    report, text = shown(output=in_box / "out")
    page = unescape(report.read_text(encoding="utf-8"))
    first, second, third, *_ = read_sentences()
    sentences = (first.text, first.shows, second.text, second.shows)
    for part in (*sentences, MARKED_UP, "SmoothGrad", "everyday, 2 pairs", "encyclopaedic, 2 pairs"):
        assert part in text
        assert part in page
    assert third.text not in text
    assert text.index("Where the model looked") < text.index(second.text)  # a picture first
    assert text.index("% of the largest score") < text.index("Translations, and which word came from which")
    assert page.index('<figure class="sightline"') < page.index("<table>")
    assert page.count('<figure class="sightline"') == 2
    assert f"<h2><bdi>{first.shows}</bdi></h2>" in page
    assert "everyday sentences:2|sure:" in page  # the signature of the error rates
    assert not (in_box / "out" / "model").exists()


def test_without_it_a_small_model_is_trained(in_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_BOX", str(in_box / "empty"))
    report, text = shown(output=in_box / "out")
    assert text.startswith("This installation lacks the model in the box, so that a small one is trained")
    assert "made-up, 2 pairs" in text
    model = sightline.load(report.parent / "model")
    assert sightline.translate(model, "la dini", max_new_tokens=5).text is not None


def test_the_generated_language_can_be_asked_for(in_box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []

    def train(seconds: float, say: object) -> Material:
        trained.append(seconds)
        return material_in_the_box()

    monkeypatch.setattr(tour, "train_on_made_up_language", train)
    report, text = shown(output=in_box / "out", generated=True)
    assert trained == [TINY.seconds]
    assert "lacks" not in text
    assert (report.parent / "model" / "config.json").is_file()


def test_error_rates_are_those_of_align_and_score(in_box: Path) -> None:
    material = material_in_the_box()
    everyday = [pair for pair in read_gold() if pair.register == "everyday"][:3]
    gold = tour._shortened(material, Extent(gold_pairs=3)).gold
    attention = next(compare_methods(material.model, gold, smoothgrad=1))
    sources, targets = ([*gold[0].sources, *gold[1].sources], [*gold[0].targets, *gold[1].targets])
    found = sightline.align(sightline.load("en-es"), sources, targets, method="attention")
    expected = score_alignments(found[:3], [pair.alignment for pair in everyday]).aer
    assert attention.error_rates["everyday"] == expected


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(tour, "demonstrate", lambda output, **options: calls.append((output, options)))
    for arguments in ([], ["--quick", "--generated", "-o", "here"]):
        with pytest.raises(SystemExit):
            main(["demo", *arguments])
    assert calls == [
        (Path("sightline-demo"), {"quick": False, "generated": False}),
        (Path("here"), {"quick": True, "generated": True}),
    ]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is not a folder"):
        demonstrate(tmp_path / "file" / "out")
