"""Jobs over corpora: the same bytes however they are run, killed and resumed; what fails is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import zoo
from deadly import DEADLY, DeadlyJob

import sightline
from sightline.alignment.formats import read_alignments
from sightline.alignment.saved import save_aligner
from sightline.corpus import running
from sightline.corpus.jobs import AlignJob, ExplainJob, Job, ModelName, TagsJob, TranslateJob
from sightline.corpus.progress import Progress
from sightline.corpus.running import Running, run_job
from sightline.corpus.shards import try_columns
from sightline.errors import InputError
from sightline.files import Position, read_lines

Rows = list[tuple[str, str]]
TOO_LONG = ("word " * 2000, "palabra")


def run(job: Job, rows, path: Path, **how) -> list[str]:
    run_job(job, rows, path, Running(**how))
    return list(read_lines(path))


def test_a_corpus_is_aligned_as_a_list_is(job: AlignJob, rows: Rows, tmp_path: Path) -> None:
    lines = run(job, rows, tmp_path / "out")
    expected = sightline.align(job.model.name, *map(list, zip(*rows, strict=True)), **job.align)
    assert [set(one.links) for one in read_alignments(tmp_path / "out")] == [set(one.links) for one in expected]
    assert len(lines) == len(rows)


def test_resumed_anywhere_the_bytes_are_the_same(job: AlignJob, rows: Rows, tmp_path: Path) -> None:
    whole = tmp_path / "whole.gz"
    run(job, rows, whole)
    for limit in (0, 9, 24):

        def until(limit: int = limit):
            yield from rows[:limit]
            raise KeyboardInterrupt

        out = tmp_path / f"out{limit}.gz"
        with pytest.raises(KeyboardInterrupt):
            run_job(job, until(), out, Running(resume=True, workers=1))
        run(job, rows, out, resume=True)
        assert out.read_bytes() == whole.read_bytes()


def test_workers_give_the_same_bytes(job: AlignJob, rows: Rows, tmp_path: Path) -> None:
    rows = [*rows, TOO_LONG, *rows]
    run(job, rows, tmp_path / "alone", on_error="skip")
    run(job, rows, tmp_path / "many", on_error="skip", workers=2)
    for name in ("{}", "{}.errors"):
        assert (tmp_path / name.format("many")).read_bytes() == (tmp_path / name.format("alone")).read_bytes()
    assert (tmp_path / "many.errors").read_text().startswith(f"{len(rows) // 2 + 1}\tThe source 32 is too long")
    with pytest.raises(InputError, match="source 32 is too long"):
        run(job, rows, tmp_path / "stopped", workers=2)
    assert not (tmp_path / "stopped").exists()


def test_a_statistical_aligner_belongs_to_the_job(job: AlignJob, rows: Rows, tmp_path: Path) -> None:
    named = replace(job, align={**job.align, "with_aligner": "diagonal"})
    trained = named.with_aligner_trained_on(rows, Progress(""), skip=False)
    again, other = (named.with_aligner_trained_on(some, Progress(""), skip=False) for some in (rows, rows[1:]))
    assert trained.describe() == again.describe()
    assert trained.describe() != other.describe()
    save_aligner(trained.align["with_aligner"], tmp_path / "aligner.npz")
    read = replace(job, align={**job.align, "with_aligner": tmp_path / "aligner.npz"})
    read = read.with_aligner_trained_on([], Progress(""), skip=False)
    assert read.describe() == trained.describe()
    for workers in (1, 2):
        run_job(trained, rows, tmp_path / f"{workers}", Running(workers=workers))
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    with pytest.raises(InputError, match="not UTF-8"):
        named.with_aligner_trained_on([*rows, InputError("not UTF-8")], Progress(""), skip=False)


def test_a_row_that_kills_its_worker_is_skipped(tmp_path: Path) -> None:
    lines = run(DeadlyJob(), [("a",), DEADLY, ("b",)], tmp_path / "out", workers=2, on_error="skip")
    assert lines == ["A", "", "B"]
    assert (tmp_path / "out.errors").read_text().startswith("2\tLine 2: the process that worked on it died 2 times")


def test_another_model_other_settings_and_other_input_are_refused(
    job: AlignJob, rows: Rows, tmp_path: Path, folder: str
) -> None:
    def stopped():
        yield from rows[:9]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, stopped(), tmp_path / "out", Running(resume=True, workers=1))
    other = zoo.fresh("marian")
    with zoo.torch.no_grad():
        next(other.module.parameters()).add_(1.0)
    other.save(tmp_path / "model")
    jobs = {
        "another model and another weights": AlignJob(
            model=ModelName(str(tmp_path / "model")), align=job.align, confidences=True
        ),
        "another align": AlignJob(model=job.model, align=job.align | {"layer": 0}, confidences=True),
        "another confidences": AlignJob(model=job.model, align=job.align),
    }
    for message, changed in jobs.items():
        with pytest.raises(InputError, match=message):
            run(changed, rows, tmp_path / "out", resume=True)
    for changed_rows in (rows[1:], rows[:3]):
        with pytest.raises(InputError, match="first 8 lines of the input are not those"):
            run(job, changed_rows, tmp_path / "out", resume=True)
    assert len(run(job, rows, tmp_path / "out", resume=True)) == len(rows)


def test_the_choice_is_made_once(folder: str, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that goes on reads the model as it began to, though it is chosen otherwise by then."""
    monkeypatch.setattr("sightline.corpus.jobs.SHARD_ROWS", 25)
    choices = []
    job = AlignJob(model=ModelName(folder), on_choice=choices.append, align={"choose_again": True})
    whole = run(job, rows, tmp_path / "whole")

    def stopped():
        yield from rows[:25]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, stopped(), tmp_path / "out", Running(resume=True, workers=1))
    monkeypatch.setattr("sightline.verbs.aligning.ModelAligner.choose", None)
    assert run(job, rows, tmp_path / "out", resume=True) == whole
    assert len(choices) == 2  # one for each beginning


def test_a_bad_row_at_the_beginning_does_not_spoil_the_choice(folder: str, rows: Rows, tmp_path: Path) -> None:
    job = AlignJob(model=ModelName(folder), align={"choose_again": True})
    lines = run(job, [TOO_LONG, *rows], tmp_path / "out", on_error="skip")
    assert [number for number, line in enumerate(lines) if not line] == [0, len(rows)]


def test_sentences_keep_their_numbers(job: AlignJob, rows: Rows, tmp_path: Path) -> None:
    naacl = AlignJob(model=job.model, align=job.align, format="naacl")
    lines = run(naacl, [*rows[:5], TOO_LONG, *rows[5:9]], tmp_path / "out", on_error="skip")
    numbers = {int(line.split()[0]) for line in lines}
    assert numbers == set(range(1, 11)) - {6}


def test_translate_tags_and_explain(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.corpus.jobs.SHARD_ROWS", 2)
    model, search = ModelName(folder), {"num_beams": 1, "max_new_tokens": 8}
    sources = [(text,) for text in zoo.SOURCES]
    plain = run(TranslateJob(model=model, generation=search), sources, tmp_path / "out")
    assert plain == [one.text for one in sightline.translate(folder, zoo.SOURCES, **search)]
    align = {"method": "attention", "layer": 0, "reading": "input"}
    links = run(
        TranslateJob(model=model, align=align, generation=search, with_links=True, as_json=True),
        sources,
        tmp_path / "out",
        workers=2,
    )
    translated = sightline.translate(folder, zoo.SOURCES, align=align, **search)
    for line, one in zip(links, translated, strict=True):
        plain_one = json.loads(line)
        assert plain_one["translation"] == one.text
        assert {(i, j) for i, j, _ in plain_one["links"]} == set(one.alignment.links)
    marked = [f"<b>{text}</b>" for text in zoo.SOURCES]
    both = list(zip(marked, zoo.TARGETS, strict=True))
    assert run(TagsJob(model=model, align=align), both, tmp_path / "out") == sightline.transfer_markup(
        folder, marked, zoo.TARGETS, **align
    )
    alone = [(text,) for text in marked]
    assert run(TagsJob(model=model, align=align, generation=search), alone, tmp_path / "out") == (
        sightline.translate_markup(folder, marked, align=align, **search)
    )
    monkeypatch.setattr("sightline.corpus.jobs.SHARD_ROWS", 1024)  # one batch, as below
    explained = run(ExplainJob(model=model, method="norms", settings={"layer": 1}), both, tmp_path / "out")
    why = sightline.explain(folder, marked, zoo.TARGETS, method="norms", layer=1)
    assert explained == [json.dumps(one.words().without_special().to_dict(), ensure_ascii=False) for one in why]


MISTAKES = {
    "no --on-error 'ignore'": {"on_error": "ignore"},
    "engine 'spark'": {"engine": "spark"},
    "0 workers cannot work": {"workers": 0},
    "are of a cluster": {"gpus": 1.0},
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes(job: AlignJob, rows: Rows, tmp_path: Path, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(job, rows, tmp_path / "out", **MISTAKES[message])


def test_workers_pay_only_for_a_large_corpus_and_a_model_that_fits(
    job: AlignJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = job.open()
    monkeypatch.setattr(running, "_cores", lambda: 6)
    assert running._useful_workers(work) == 6
    size = sum(one.numel() * one.element_size() for one in work.models[0].module.parameters())
    monkeypatch.setattr(os, "sysconf", lambda name: 4 * size if name == "SC_PHYS_PAGES" else 1)
    assert running._useful_workers(work) == 2


def test_columns_of_files(tmp_path: Path) -> None:
    for name, data in {"a": b"one\ntw\xff\nthree\n", "b": b"1\n2\n3\n", "c": b"1\n"}.items():
        (tmp_path / name).write_bytes(data)
    position = Position()
    first, second, third = try_columns(tmp_path / "a", None, tmp_path / "b", position=position)
    assert (first, third) == (("one", "1"), ("three", "3"))
    assert "line 2: this is not UTF-8" in str(second)
    assert position.share == 1.0
    with pytest.raises(InputError, match=r"c ends after line 1, but .*b goes on"):
        list(try_columns(tmp_path / "b", tmp_path / "c"))


def test_progress_knows_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.corpus.progress.SECONDS_OF_SILENCE", 0.0)
    with Progress("Aligning", shown=True) as shown:
        deadline = time.time() + 20
        while shown._bar is None and time.time() < deadline:
            time.sleep(0.01)
        shown.advance(100, 0.25)
        assert shown._bar is not None
        assert (shown._bar.tasks[0].completed, shown._bar.tasks[0].total) == (100, 400)
    with Progress("Aligning") as hidden:  # no terminal
        time.sleep(0.05)
        assert hidden._bar is None


# The command, killed in earnest

COPIES = 300  # enough shards that some are left, however late a signal comes on a busy machine


@pytest.fixture
def command(folder: str, rows: Rows, tmp_path: Path) -> list[str]:
    many = rows * COPIES
    (tmp_path / "text.en").write_text("".join(f"{source}\n" for source, _ in many))
    (tmp_path / "text.es").write_text("".join(f"{target}\n" for _, target in many))
    files = [str(tmp_path / name) for name in ("text.en", "text.es")]
    method = ["--method", "norms", "-s", "layer=1", "-s", "reading=input"]
    return [sys.executable, "-m", "sightline.cli", "align", "-m", folder, *method, "--confidences", *files]


def rows_done(record: Path) -> int:
    try:
        return json.loads(record.read_text())["rows"]
    except (FileNotFoundError, ValueError):
        return 0


def test_killed_and_resumed(command: list[str], rows: Rows, tmp_path: Path) -> None:
    whole, out, record = tmp_path / "whole", tmp_path / "out", tmp_path / "out.partial.json"
    subprocess.run([*command, "--workers", "2", "-o", str(whole)], check=True, stderr=subprocess.PIPE)
    done = 0
    for number, workers in ((signal.SIGKILL, "1"), (signal.SIGTERM, "2")):
        process = subprocess.Popen([*command, "--workers", workers, "--resume", "-o", str(out)], stderr=subprocess.PIPE)
        deadline = time.time() + 120
        while rows_done(record) <= done and process.poll() is None and time.time() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate()
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), err
        assert b"Traceback" not in err
        done = rows_done(record)
        assert 0 < done < COPIES * len(rows)
    finished = subprocess.run([*command, "--resume", "-o", str(out)], check=True, stderr=subprocess.PIPE)
    assert finished.stderr == b""
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "text.en", "text.es", "whole"]
