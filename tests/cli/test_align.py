"""The commands align and translate: what they read and write, how they refuse."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import zoo

import sightline
from sightline.alignment.formats import read_alignments
from sightline.cli import main
from sightline.corpus import jobs

SET = ["--method", "norms", "-s", "layer=1", "-s", "reading=input", "--extraction", "argmax"]
NORMS = {"method": "norms", "layer": 1, "reading": "input", "extraction": "argmax"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model")
    model = zoo.fresh("marian")
    model.module.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return str(path)


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "text.en", tmp_path / "text.es"
    for path, sentences in zip(paths, (zoo.SOURCES, zoo.TARGETS), strict=True):
        path.write_text("".join(sentence + "\n" for sentence in [*sentences, ""]), encoding="utf-8")
    return paths


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run a command as from a shell; give its exit code, output and error output."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: object, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return int(stopped.value.code or 0), out, err

    return run


def pharaoh(alignments: list[sightline.Alignment]) -> list[str]:
    return [" ".join(f"{i}-{j}" for i, j in alignment) for alignment in alignments]


def test_two_files_one_file_and_standard_input(run, folder: str, texts: tuple[Path, Path], tmp_path: Path) -> None:
    expected = pharaoh(sightline.align(folder, [*zoo.SOURCES, ""], [*zoo.TARGETS, ""], **NORMS))
    code, out, err = run("align", "-m", folder, *SET, *texts)
    assert (code, err) == (0, "")
    assert out.splitlines() == expected
    for separator in ("\t", " ||| "):
        lines = "".join(f"{s}{separator}{t}\n" for s, t in zip(zoo.SOURCES, zoo.TARGETS, strict=True))
        assert run("align", "-m", folder, *SET, "-", stdin=lines)[1].splitlines() == expected[:-1]
    target = texts[1].read_text(encoding="utf-8")
    assert run("align", "-m", folder, *SET, texts[0], "-", stdin=target)[1].splitlines() == expected
    out_file = tmp_path / "links"
    assert run("align", "-m", folder, *SET, *texts, "-o", out_file) == (0, "", "")
    assert out_file.read_text().splitlines() == expected


def test_json_confidences_and_both_directions(run, folder: str, texts: tuple[Path, Path], tmp_path: Path) -> None:
    both = sightline.align(folder, zoo.SOURCES, zoo.TARGETS, reverse=folder, symmetrize="union", **NORMS)
    _, out, _ = run("align", "-m", folder, "-r", folder, "--symmetrize", "union", *SET, *texts, "--json")
    first = json.loads(out.splitlines()[0])
    assert {(i, j) for i, j, _ in first["links"]} == both[0].links
    (tmp_path / "links").write_text(run("align", "-m", folder, *SET, *texts, "--confidences")[1])
    for alignment in read_alignments(tmp_path / "links"):
        assert all(0 < confidence < 1 for confidence in alignment.confidences.values())


def test_the_choice_is_explained_on_standard_error(run, folder: str, texts: tuple[Path, Path], tmp_path: Path) -> None:
    code, _, err = run("align", "-m", folder, *texts, "--explain-choice")
    assert code == 0
    assert err == (
        "Read by norms layer=-1 reading=output: the default, since choosing takes at least 20 pairs, not 5.\n"
    )
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{word} a cat\t{word} un gato\n" for word in map(str, range(30))), encoding="utf-8")
    code, out, err = run("align", "-m", folder, pairs, "--explain-choice")
    assert code == 0
    assert len(out.splitlines()) == 30
    said, table = err[: err.index("direction")], err[err.index("direction") :]
    assert "chosen by agreement with a statistical aligner, on 30 pairs, the first of them '0 a cat'" in said
    assert f"is kept in {Path(folder) / 'sightline-align.json'}." in said
    assert table.count("norms layer=") == table.count("attention layer=0 reading=") * 3 == 6
    assert "remembered: chosen" in run("align", "-m", folder, pairs)[2]
    assert "remembered" not in run("align", "-m", folder, pairs, "--choose-again")[2]
    err = run("align", "-m", folder, *SET, *texts, "--explain-choice")[2]
    assert "Read by norms layer=1 reading=input: there is nothing to choose" in err


def test_pictures_are_drawn_as_the_output_was_read(run, folder: str, tmp_path: Path) -> None:
    pairs, page = tmp_path / "pairs.tsv", tmp_path / "page.html"
    pairs.write_text("".join(f"{word} a cat\t{word} un gato\n" for word in map(str, range(120))), encoding="utf-8")
    _, _, err = run("align", "-m", folder, pairs, "--choose-again", "--html", page)
    assert err.count("Read by") == 1
    assert "119 un gato" not in page.read_text(encoding="utf-8")
    assert "on 120 pairs" in run("align", "-m", folder, pairs)[2]


def test_an_aligner_that_is_joined_is_trained_on_all_pairs(
    run, folder: str, texts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "SHARD_ROWS", 2)
    saved = tmp_path / "aligner.npz"
    run("align", "--aligner", "diagonal", "--save", saved, *texts)
    options = "-m", folder, *SET, "--confidences", "--with-aligner"
    expected = run("align", *options, saved, *texts)
    assert run("align", *options, "diagonal", *texts) == expected
    code, _, err = run("align", *options, "diagonal", "-", stdin="a\tb\n")
    assert (code, "give files instead of standard input" in err) == (2, True)


def test_one_direction_and_what_it_does_not_go_with(run, folder: str, texts: tuple[Path, Path]) -> None:
    assert run("align", "-m", folder, "--one-way", *SET, *texts)[1] == run("align", "-m", folder, *SET, *texts)[1]
    code, _, err = run("align", "-m", folder, "--one-way", "-r", folder, *texts)
    assert (code, "either --reverse or --one-way" in err) == (2, True)


def test_statistical_aligners(run, tmp_path: Path, texts: tuple[Path, Path]) -> None:
    saved = tmp_path / "aligner.npz"
    code, out, err = run("align", "--aligner", "ibm1", "--save", saved, *texts)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 6
    assert run("align", "--load", saved, *texts)[1] == out
    lines = "".join(f"{s} ||| {t}\n" for s, t in zip(zoo.SOURCES, zoo.TARGETS, strict=True))
    assert run("align", "--aligner", "ibm1", "-", stdin=lines)[1].splitlines() == out.splitlines()[:-1]
    assert run("align", "--aligner", "diagonal", *texts, "--symmetrize", "union")[0] == 0
    code, out, _ = run("align", "--aligner", "hmm", "--save", saved, *texts, "--json")
    assert code == 0
    assert run("align", "--load", saved, *texts, "--json")[1] == out


def test_translate(run, folder: str, texts: tuple[Path, Path], tmp_path: Path) -> None:
    found = sightline.translate(folder, [*zoo.SOURCES, ""], align={"method": "attention"}, num_beams=1)
    plain = run("translate", "-m", folder, texts[0], "--beam", 1)
    assert plain == (0, "".join(translation.text + "\n" for translation in found), "")
    aligned = run("translate", "-m", folder, texts[0], "--beam", 1, "--align", "--method", "attention")[1].splitlines()
    for line, translation in zip(aligned, found, strict=True):
        assert line.startswith(translation.text + " ||| ")
    out_file = tmp_path / "out"
    options = ["--beam", 1, "--align", "--method", "attention", "--json", "-o", out_file]
    assert run("translate", "-m", folder, texts[0], *options) == (0, "", "")
    rows = [json.loads(line) for line in out_file.read_text(encoding="utf-8").splitlines()]
    assert [row["source"] for row in rows] == [*zoo.SOURCES, ""]
    for row, translation in zip(rows, found, strict=True):
        assert row["translation"] == translation.text
        assert translation.alignment is not None
        assert {(i, j) for i, j, _ in row["links"]} == translation.alignment.links


def test_other_precisions(run, folder: str, texts: tuple[Path, Path]) -> None:
    """The same numbers as in Python, and others than in float32."""
    in_bfloat16 = sightline.load(folder, dtype="bfloat16")
    found = [alignment.confidences for alignment in sightline.align(in_bfloat16, zoo.SOURCES, zoo.TARGETS, **NORMS)]
    links = {}
    for dtype in ("float32", "bfloat16"):
        out = run("align", "-m", folder, *SET, *texts, "--json", "--dtype", dtype)[1]
        links[dtype] = [json.loads(line)["links"] for line in out.splitlines()]
    assert links["float32"] != links["bfloat16"]
    assert [[(i, j) for i, j, _ in row] for row in links["bfloat16"][:-1]] == [sorted(one) for one in found]
    assert run("translate", "-m", folder, texts[0], "--beam", 1, "--dtype", "bfloat16")[1].splitlines() == [
        one.text for one in sightline.translate(in_bfloat16, [*zoo.SOURCES, ""], num_beams=1)
    ]


MISTAKES = {
    "Align either with --model or with a statistical aligner": ["align", "-m", "MODEL", "--aligner", "ibm1", "TEXT"],
    "needs no reverse model, way, method": ["align", "--aligner", "ibm1", "--method", "norms", "TEXT", "TEXT"],
    "way, method, effort": ["align", "--aligner", "ibm1", "--one-way", "TEXT", "TEXT"],
    "effort, choice": ["align", "--aligner", "ibm1", "--choose-again", "TEXT", "TEXT"],
    "choice, setting": ["align", "--aligner", "ibm1", "--effort", "best", "TEXT", "TEXT"],
    "--save keeps a statistical aligner": ["align", "-m", "MODEL", "--save", "x", "TEXT", "TEXT"],
    "no aligner 'imb1'. Did you mean 'ibm1'": ["align", "--aligner", "imb1", "TEXT", "TEXT"],
    "Name either an aligner to train on this text, or a saved one": [
        "align", "--aligner", "ibm1", "--load", "x", "TEXT", "TEXT",
    ],
    "There is no file nowhere": ["align", "--load", "nowhere", "TEXT", "TEXT"],
    "nothing.en cannot be read": ["align", "-m", "MODEL", "nothing.en", "TEXT"],
    "there must be a tab between source and target": ["align", "-m", "MODEL", "TEXT"],
    "There is no folder './nowhere'": ["translate", "-m", "./nowhere", "TEXT"],
    "no data type 'float3': use": ["align", "-m", "MODEL", "--dtype", "float3", "TEXT", "TEXT"],
    "no method 'magic'": ["align", "-m", "MODEL", "--method", "magic", "TEXT", "TEXT"],
}  # fmt: skip


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_told_in_one_sentence(message: str, run, folder: str, texts: tuple[Path, Path]) -> None:
    places = {"MODEL": folder, "TEXT": texts[0]}
    code, out, err = run(*(places.get(argument, argument) for argument in MISTAKES[message]))
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("sightline: ")
    assert len(err.strip().splitlines()) == 1


def test_a_failed_run_leaves_no_file(run, folder: str, texts: tuple[Path, Path], tmp_path: Path) -> None:
    texts[1].write_text("El gato\n")
    code, _, err = run("align", "-m", folder, *SET, *texts, "-o", tmp_path / "links")
    assert code == 2
    assert "ends after line 1" in err
    assert list(tmp_path.glob("links*")) == []


def test_tags(run, folder: str, tmp_path: Path) -> None:
    text = "The <b>cat</b> sleeps {0}.\n\n<p></p>\n"
    expected = sightline.translate_markup(folder, text.splitlines(), align={"method": "attention"}, num_beams=1)
    code, out, err = run("tags", "-m", folder, "-", "--beam", 1, "--method", "attention", stdin=text)
    assert (code, err) == (0, "")
    assert out.splitlines() == expected
    (tmp_path / "in.txt").write_text(text)
    options = ["--beam", 1, "--method", "attention", "-r", folder, "-o", tmp_path / "out.txt"]
    assert run("tags", "-m", folder, tmp_path / "in.txt", *options) == (0, "", "")
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 3
    (tmp_path / "there.txt").write_text("El gato {0}.\n\nUn perro\n")
    marked = sightline.transfer_markup(folder, text.splitlines(), ["El gato {0}.", "", "Un perro"], method="attention")
    assert marked[2] == "<p></p> Un perro"
    inputs = tmp_path / "in.txt", tmp_path / "there.txt"
    code, out, _ = run("tags", "-m", folder, *inputs, "--method", "attention")
    assert (code, out.splitlines()) == (0, marked)


def test_words_and_pictures(run, folder: str, texts: tuple[Path, Path], tmp_path: Path) -> None:
    expected = sightline.align(folder, [*zoo.SOURCES, ""], [*zoo.TARGETS, ""], **NORMS)
    code, out, _ = run("align", "-m", folder, *SET, *texts, "--format", "words", "--html", tmp_path / "page.html")
    assert code == 0
    words = [(source.split(), target.split()) for source, target in zip(zoo.SOURCES, zoo.TARGETS, strict=True)]
    for line, alignment, (source, target) in zip(out.splitlines(), expected, words, strict=False):
        assert line.split() == [f"{source[i]}–{target[j]}" for i, j in sorted(alignment.links)]
        assert alignment.source_words == tuple(source)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "alfombra." in page
    _, out, _ = run(
        "align", "--aligner", "ibm1", *texts, "--format", "words", "--confidences", "--html", tmp_path / "b"
    )
    assert out.splitlines()[2].startswith("Yes.–Sí.:0.99")
    assert "alfombra." in (tmp_path / "b").read_text(encoding="utf-8")
    code, _, err = run("align", "-m", folder, "-", texts[1], "--html", tmp_path / "page.html")
    assert code == 2
    assert "give files instead of standard input" in err
    texts[0].write_bytes(b"\xff\n" + texts[0].read_bytes().partition(b"\n")[2])
    options = "--on-error", "skip", "--html", tmp_path / "page.html"
    code, _, err = run("align", "-m", folder, *SET, *texts, *options)
    assert (code, err.startswith("1\t")) == (0, True)
    assert "alfombra." not in (tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "words").write_text(out)
    with pytest.raises(sightline.InputError, match="cannot be read as words"):
        list(read_alignments(tmp_path / "words", "words"))
