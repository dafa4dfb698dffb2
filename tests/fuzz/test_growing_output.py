"""What a killed run left, on 300 damaged cases: the run goes on to the same bytes, or is refused in one sentence."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fuzz.damage import damaged_folders, limited_memory, outcomes

from sightline.corpus import jobs
from sightline.corpus.jobs import Job
from sightline.corpus.running import Running, run_job
from sightline.corpus.shards import Row
from sightline.errors import InputError

CASES = 300
RESUMED = Running(resume=True, on_error="skip", workers=1)
ROWS: list[tuple[str, ...]] = [(f"word {number}" if number % 5 else "bad",) for number in range(40)]


@dataclass(frozen=True, kw_only=True)
class CountingJob(Job):
    """Work without a model: it writes how often a letter that was settled on occurs in each row."""

    def open(self) -> CountingWork:
        return CountingWork()


class CountingWork:
    models = ()
    blank = "\n"

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        return {"letters": ["o", "r"], "weight": 2}

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        if ("bad",) in rows:
            raise InputError("this row is bad")
        count = settled["weight"] * sum(row[0].count(letter) for row in rows for letter in settled["letters"])
        return [f"{number} {row[0]} {count}\n" for number, row in zip(numbers, rows, strict=True)]


def until_killed() -> Iterator[tuple[str, ...]]:
    yield from ROWS[:27]
    raise KeyboardInterrupt


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_unfinished_outputs(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SHARD_ROWS", 1)  # each row has its own count
    job, pristine, work = CountingJob(), tmp_path / "pristine", tmp_path / "work"
    pristine.mkdir()
    with pytest.raises(KeyboardInterrupt):
        run_job(job, until_killed(), pristine / f"out{suffix}", RESUMED)
    names = sorted(path.name for path in pristine.iterdir())
    assert names == [f"out{suffix}{end}" for end in (".errors.partial", ".partial", ".partial.json")]
    run_job(job, ROWS, tmp_path / f"whole{suffix}", Running(on_error="skip", workers=1))
    whole, reasons = (tmp_path / f"whole{suffix}{end}" for end in ("", ".errors"))

    def read(_: str) -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(pristine, work)
        run_job(job, ROWS, work / f"out{suffix}", RESUMED)
        assert (work / f"out{suffix}").read_bytes() == whole.read_bytes()
        assert (work / f"out{suffix}.errors").read_bytes() == reasons.read_bytes()
        assert len(list(work.iterdir())) == 2

    with limited_memory():
        well, refused = outcomes(damaged_folders(pristine, names, CASES), read)
    assert min(well, refused) > CASES // 100, "cases of both kinds"
