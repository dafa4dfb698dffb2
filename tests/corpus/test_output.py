"""The output that grows: whatever moment a run is killed at, it goes on to the same bytes."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.corpus.output import open_output
from sightline.corpus.shards import Result, Skipped
from sightline.errors import InputError
from sightline.files import read_lines

JOB = {"job": "Shout", "version": "1"}
RESULTS = [
    Result(1, 2, "one\ntwo\n"),
    Result(3, 2, "\nfour\n", (Skipped(3, "too long"),)),
    Result(5, 1, "fünf\n"),
    Result(6, 1, "\n", (Skipped(6, "no good"),)),
]


class Killed(BaseException):
    """What no code of ours catches."""


def write(path: Path, until: int | None = None, job=JOB) -> int:
    """Write the results that are missing, up to some; return how many rows were there."""
    try:
        with open_output(path, job, resume=True) as output:
            there = output.rows
            if output.settled is None:
                output.begin({"layer": 1})
            assert output.settled == {"layer": 1}
            for result in RESULTS:
                if result.first <= output.rows:
                    continue
                if result.first == until:
                    raise Killed
                output.add(result, f"checksum {result.first}")
    except Killed:
        pass
    return there


def expected(path: Path) -> bytes:
    with open_output(path.with_name("whole" + path.suffix), JOB, resume=False) as output:
        output.begin({})
        for result in RESULTS:
            output.add(result, "")
    return path.with_name("whole" + path.suffix).read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(kills=st.lists(st.sampled_from([1, 3, 5, 6]), max_size=4), garbage=st.binary(max_size=20), data=st.data())
@pytest.mark.parametrize("suffix", [".txt", ".gz", ".zst"])
def test_killed_at_any_moment(tmp_path: Path, suffix: str, kills: list[int], garbage: bytes, data) -> None:
    path = tmp_path / f"out{suffix}"
    path.unlink(missing_ok=True)
    for until in kills:
        write(path, until)
        for name in ("out{}.partial", "out{}.errors.partial"):  # a shard that was half written
            partial = tmp_path / name.format(suffix)
            if partial.exists():
                partial.write_bytes(partial.read_bytes() + garbage)
    write(path)
    assert path.read_bytes() == expected(path)
    assert (tmp_path / f"out{suffix}.errors").read_text() == "3\ttoo long\n6\tno good\n"
    assert list(read_lines(path)) == ["one", "two", "", "four", "fünf", ""]
    assert not list(tmp_path.glob("*.partial*"))


def test_a_run_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert write(path, until=5) == 0
    assert not path.exists()
    record = json.loads((tmp_path / "out.partial.json").read_text())
    assert (record["rows"], record["input"], record["settled"]) == (4, "checksum 3", {"layer": 1})
    assert write(path, until=6) == 4
    assert write(path) == 5


def test_the_old_output_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old\n")
    (tmp_path / "out.errors").write_text("old\n")
    write(path, until=6)
    assert path.read_text() == "old\n"
    assert (tmp_path / "out.errors").read_text() == "old\n"


@pytest.mark.parametrize("resume", [False, True])
def test_reasons_of_an_earlier_run_go_away(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "out.errors").write_text("old\n")
    with open_output(tmp_path / "out", JOB, resume=resume) as output:
        output.begin({})
        output.add(RESULTS[0], "")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out"]


def test_other_settings_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "out", until=5)
    with pytest.raises(InputError, match="was begun with another version: run the command that began it"):
        write(tmp_path / "out", job=JOB | {"version": "2"})
    assert write(tmp_path / "out") == 4


DAMAGES = {
    "is not as it was left": ("out.partial", b"two\ntwo\n\nfour\n"),
    "out.partial is not as it was left": ("out.partial", b"one\n"),
    "out.errors.partial is not as it was left": ("out.errors.partial", b""),
    "is damaged": ("out.partial.json", b"{"),
    "it lacks": ("out.partial.json", b"{}"),
}


@pytest.mark.parametrize("message", DAMAGES)
def test_what_was_changed_is_refused(tmp_path: Path, message: str) -> None:
    write(tmp_path / "out", until=5)
    name, data = DAMAGES[message]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message if message != "it lacks" else "damaged") as refused:
        write(tmp_path / "out")
    assert "Remove" in str(refused.value)
    (tmp_path / "out.partial.json").unlink()
    assert write(tmp_path / "out") == 0
    assert (tmp_path / "out").read_bytes() == expected(tmp_path / "out")


def test_two_processes_never_write_one_output(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with open_output(path, JOB, resume=True) as output:
        output.begin({})
        with pytest.raises(InputError, match="is being written by another process"):
            write(path)


def test_only_files_can_grow(tmp_path: Path) -> None:
    for path in (Path("-"), Path("/dev/null")):
        with (
            pytest.raises(InputError, match="--resume needs an output that can grow"),
            open_output(path, JOB, resume=True),
        ):
            pass


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.symlink(tmp_path / "folder" / "real", tmp_path / "out")
    write(tmp_path / "out", until=5)
    assert write(tmp_path / "out") == 4
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "folder" / "real").read_bytes() == expected(tmp_path / "out")


@pytest.mark.parametrize("resume", [False, True])
def test_an_empty_output_is_packed_too(tmp_path: Path, resume: bool) -> None:
    with open_output(tmp_path / "out.gz", JOB, resume=resume) as output:
        output.begin({})
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == b""
