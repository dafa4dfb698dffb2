"""Lines that put other programs out of step: output and input stay side by side, and what cannot be read is named."""

from __future__ import annotations

import gzip
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import zoo

import sightline
from sightline.alignment.parallel import try_pairs
from sightline.corpus.jobs import AlignJob, ModelName, TagsJob, TranslateJob
from sightline.corpus.running import Running, run_job
from sightline.corpus.shards import try_columns
from sightline.errors import InputError
from sightline.files import read_lines
from sightline.verbs import translating

SEPARATORS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"
READABLE = {
    **{f"U+{ord(one):04X} inside": f"the{one}cat sleeps" for one in SEPARATORS},
    "NUL": "the \x00 cat",
    "BOM inside": "the \ufeffcat",
    "CRLF": "the cat\r",
    "CR inside": "the\rcat",
    "nothing": "",
    "blanks": " \t\u00a0\u3000 ",
    "controls": "\x1b[31mcat\x07",
    "beyond the first plane": "😀 𝔸 cat",
    "right to left": "\u202ecat\u202c",
}
UNREADABLE = {
    "invalid bytes": b"the c\xff\xfet",
    "half of a letter": "the \ud800 cat".encode("utf-8", "surrogatepass"),
    "UTF-16": "the cat".encode("utf-16"),
    "cut off within a letter": "the gat\u00f3".encode()[:-1],
}
TOO_LONG = {"5,000 words": b"word " * 5000, "a megabyte": b"word " * 200_000, "a word of a megabyte": b"w" * 1_000_000}
LINES = {name: text.encode() for name, text in READABLE.items()} | UNREADABLE | TOO_LONG | {"the last": b"the end"}
SKIPPED = [number for number, name in enumerate(LINES, start=1) if name in UNREADABLE or name in TOO_LONG]


@pytest.fixture(params=["", ".gz"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    source, target = (tmp_path / f"text{side}{request.param}" for side in (".en", ".es"))
    pack = gzip.compress if request.param else bytes
    source.write_bytes(pack(b"\xef\xbb\xbf" + b"\n".join(LINES.values()) + b"\n"))
    target.write_bytes(pack(b"el gato duerme\n" * len(LINES)))
    return source, target


def test_lines_stay_side_by_side(job: AlignJob, files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_job(job, try_pairs(*files), out, Running(on_error="skip", workers=1))
    lines = list(read_lines(out))
    assert len(lines) == len(LINES)
    assert lines[-1]
    reasons = [line.split("\t") for line in read_lines(tmp_path / "out.errors")]
    assert [int(number) for number, _ in reasons] == SKIPPED
    for number, reason in reasons:
        assert ("not UTF-8" in reason) == (list(LINES)[int(number) - 1] in UNREADABLE), reason
        assert reason.isprintable()
        assert len(reason) <= 300


def test_without_skipping_the_first_is_named(job: AlignJob, files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"line {SKIPPED[0]}: this is not UTF-8"):
        run_job(job, try_pairs(*files), tmp_path / "out", Running(workers=1))
    assert not (tmp_path / "out").exists()


def test_translations_stay_side_by_side(folder: str, files: tuple[Path, Path], tmp_path: Path) -> None:
    job = TranslateJob(model=ModelName(folder), generation={"num_beams": 1, "max_new_tokens": 4})
    run_job(job, try_columns(files[0]), tmp_path / "out", Running(on_error="skip", workers=1))
    assert (tmp_path / "out").read_bytes().count(b"\n") == len(LINES)


@pytest.mark.parametrize("job", [TranslateJob, TagsJob])
def test_a_model_that_writes_line_ends(
    job: type[TranslateJob | TagsJob], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sightline.translate(folder, zoo.SOURCES[:2], num_beams=1, max_new_tokens=4)
    broken = [replace(one, text="un\ngato\r\nduerme") for one in found]
    monkeypatch.setattr(translating, "translate_pairs", lambda *_: iter(broken))
    monkeypatch.setattr(translating, "translate_marked_pairs", lambda *_: (one.text for one in broken))
    options = {"method": "attention", "layer": 0, "reading": "input"}
    work = job(model=ModelName(folder), align=options).open()
    settled = work.settle([(zoo.SOURCES[0],)]) if job is TagsJob else {}
    lines = work.run(settled, [1, 2], [(text,) for text in zoo.SOURCES[:2]])
    assert lines == ["un gato  duerme\n"] * 2


@pytest.mark.parametrize("kind", ["cut off", "a bomb"])
def test_packed_files_that_are_no_text(job: AlignJob, tmp_path: Path, kind: str) -> None:
    packed = gzip.compress(b"the cat\n" * 5000)[:-20] if kind == "cut off" else gzip.compress(bytes(100_000_000))
    (tmp_path / "text.gz").write_bytes(packed)
    expected = "is not a complete gzip file" if kind == "cut off" else "has more than 10,000,000 bytes"
    with pytest.raises(InputError, match=expected):
        run_job(job, try_pairs(tmp_path / "text.gz", tmp_path / "text.gz"), tmp_path / "out", Running(workers=1))
    assert not (tmp_path / "out").exists()


def test_standard_input_and_output(folder: str, files: tuple[Path, Path]) -> None:
    """Reasons go to standard error where the output has no name."""
    command = [sys.executable, "-m", "sightline.cli", "align", "-m", folder, "--on-error", "skip", "--workers", "1"]
    command += ["--method", "norms", "-s", "layer=1", "-s", "reading=input", "-", str(files[1])]
    source = b"\n".join(LINES.values()) + b"\n"
    ended = subprocess.run(command, input=source, capture_output=True, check=True)
    assert ended.stdout.count(b"\n") == len(LINES)
    reasons = [line for line in ended.stderr.decode().split("\n") if "\t" in line]
    assert [int(line.split("\t")[0]) for line in reasons] == SKIPPED
