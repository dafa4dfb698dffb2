"""The output that grows: whatever moment a run is killed at, it goes on to the same bytes."""

from __future__ import annotations

import errno
import gzip
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.corpus import output as output_module
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


def test_a_changed_record_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "out", until=5)
    record = tmp_path / "out.partial.json"
    record.write_text(record.read_text().replace('"layer": 1', '"layer": 2'))
    with pytest.raises(InputError, match=r"partial\.json is damaged: its checksum is another\. Remove"):
        write(tmp_path / "out")


def test_what_is_not_a_number_is_recorded(tmp_path: Path) -> None:
    with suppress(Killed), open_output(tmp_path / "out", JOB, resume=True) as output:
        output.begin({"score": float("nan")})
        output.add(RESULTS[0], "")
        raise Killed
    with open_output(tmp_path / "out", JOB, resume=True) as output:
        assert (output.rows, output.settled) == (2, {"score": None})


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
KEPT = r"No space left on device\..* What is done is kept: make room, and start the same command again"


@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("suffix", [".txt", ".gz"])
def test_a_disk_that_is_full_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, suffix: str
) -> None:
    """The disk takes some bytes of the write that fails, and none of the record's."""
    path = tmp_path / f"out{suffix}"
    calls = 0

    def fail_at_last(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > number:
            raise FULL

    plain_write, plain_json, plain_sync = output_module._write_some, output_module.write_json, os.fsync

    def write_some(file, data: bytes) -> int:
        try:
            fail_at_last()
        except OSError:
            plain_write(file, data[: len(data) // 2])
            raise
        return plain_write(file, data)

    def write_record(place: Path, plain: object) -> None:
        try:
            fail_at_last()
        except OSError:
            raise InputError(f"{place} cannot be written: No space left on device.") from None
        plain_json(place, plain)

    def sync(descriptor: int) -> None:
        fail_at_last()
        plain_sync(descriptor)

    monkeypatch.setattr(output_module, "_write_some", write_some)
    monkeypatch.setattr(output_module, "write_json", write_record)
    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(InputError, match=KEPT):
        write(path)
    assert not path.exists()
    monkeypatch.undo()
    write(path)
    assert path.read_bytes() == expected(path)
    assert not list(tmp_path.glob("*.partial*"))


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
