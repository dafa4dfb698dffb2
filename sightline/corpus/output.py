"""The output of a corpus: whole in one step, or growing so that a killed run can go on.

A growing output is `OUT.partial`, with the reasons for skipped lines in `OUT.errors.partial` and a record of how far
both are complete in `OUT.partial.json`. After each shard the record is replaced in one step; what the files have beyond
it, a run was killed while writing or had no room for, and is cut off. The record has a checksum of its own. The
complete output takes its name in the end. Whoever writes holds a lock, so that two processes never write one output.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol, runtime_checkable

from sightline.corpus.shards import Result, Skipped
from sightline.errors import InputError
from sightline.files import STANDARD_OUTPUT, check_writable, explained_errors, sync_folder, writing
from sightline.json_files import parse_json, read_json, write_json
from sightline.packing import find_packing

RECORD_FORMAT = 1
FIELDS = {
    "format": int,
    "job": dict,
    "settled": dict,
    "rows": int,
    "input": str,
    "bytes": int,
    "output": str,
    "error_bytes": int,
    "errors": str,
    "record": str,
}


@runtime_checkable
class Output(Protocol):
    """Where results go, in order."""

    rows: int
    """How many rows were there already."""
    input: str
    """The checksum of these rows."""
    settled: dict[str, Any] | None
    """What was settled for them."""

    def begin(self, settled: dict[str, Any]) -> None:
        """Note what is settled, before the first result."""

    def add(self, result: Result, input: str) -> None:
        """Write a result; `input` is the checksum of all rows up to its last."""


@contextmanager
def open_output(path: Path, job: Mapping[str, Any], *, resume: bool) -> Iterator[Output]:
    """Yield where to write; the output is complete when the context ends well."""
    if not resume:
        with ExitStack() as stack:
            whole = _WholeOutput(path, stack)
            yield whole
            whole.finish()
        return
    if not _is_kept(path):
        raise InputError("--resume needs an output that can grow: name a file with --output.")
    check_writable(path)
    place = Path(os.path.realpath(path))
    with _locked(place.with_name(place.name + ".partial")) as file:
        errors = errors_path(place)
        with _open_to_grow(errors.with_name(errors.name + ".partial")) as errors_file:
            growing = _GrowingOutput(path, file, errors_file, job)
            yield growing
            growing.finish()


def errors_path(path: Path) -> Path:
    """Return where the reasons for skipped lines are written."""
    return path.with_name(path.name + ".errors")


def _render(skipped: Skipped) -> str:
    return f"{skipped.number}\t{skipped.reason}\n"


class _WholeOutput:
    """A file that appears when it is complete, or standard output; reasons go next to it, or to standard error."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path, self.stack = path, stack
        self.rows, self.input = 0, ""
        self.settled: dict[str, Any] | None = None
        self.packing = find_packing(path)
        self.file: IO[Any] = stack.enter_context(writing(path, "wb"))
        self.errors: IO[Any] | None = None

    def begin(self, settled: dict[str, Any]) -> None:
        self.settled = settled

    def add(self, result: Result, input: str) -> None:
        self._write(result.text)
        self.file.flush()  # whoever reads along sees each shard
        for one in result.skipped:
            self._errors().write(_render(one))

    def finish(self) -> None:
        if self.packing is not None:
            self._write("")  # no lines are a packed file, too
        if self.errors is None and _is_kept(self.path):
            errors_path(self.path).unlink(missing_ok=True)  # of an earlier run

    def _write(self, text: str) -> None:
        data = text.encode()
        self.file.write(data if self.packing is None else self.packing.pack(data))

    def _errors(self) -> Any:
        if self.errors is None:
            kept = _is_kept(self.path)
            self.errors = self.stack.enter_context(writing(errors_path(self.path))) if kept else sys.stderr
        return self.errors


class _GrowingOutput:
    """An output that grows in `OUT.partial` and takes its name when it is complete."""

    def __init__(self, path: Path, file: io.FileIO, errors_file: io.FileIO, job: Mapping[str, Any]) -> None:
        self.path, self.job = path, job
        self.place = Path(os.path.realpath(path))
        self.record_path = self.place.with_name(self.place.name + ".partial.json")
        self.packing = find_packing(path)
        self.text = _GrowingFile(path, file)
        self.errors = _GrowingFile(errors_path(path), errors_file)
        self.rows, self.input = 0, ""
        self.settled: dict[str, Any] | None = None
        if self.record_path.exists() and self.text.has_begun:
            self._go_on()
        else:
            self.text.cut(0, "")
            self.errors.cut(0, "")

    def _go_on(self) -> None:
        anew = f"Remove {self.record_path} to begin anew."
        record = read_json(self.record_path, FIELDS, anew)
        if record["format"] != RECORD_FORMAT:
            raise InputError(f"{self.record_path} was written by another version of Sightline. {anew}")
        if record.pop("record") != _checksum(record):
            raise InputError(f"{self.record_path} is damaged: its checksum is another. {anew}")
        changed = [name for name in {**self.job, **record["job"]} if self.job.get(name) != record["job"].get(name)]
        if changed:
            raise InputError(
                f"{self.text.name} was begun with another {' and another '.join(sorted(changed))}: run the command "
                f"that began it, or give another output. {anew}"
            )
        for file, size, checksum in (
            (self.text, record["bytes"], record["output"]),
            (self.errors, record["error_bytes"], record["errors"]),
        ):
            if not file.cut(size, checksum):
                raise InputError(f"{file.name} is not as it was left. {anew}")
        self.rows, self.input, self.settled = record["rows"], record["input"], record["settled"]

    def begin(self, settled: dict[str, Any]) -> None:
        self.settled = settled
        self._record()

    def add(self, result: Result, input: str) -> None:
        data = result.text.encode()
        self.text.write(data if self.packing is None else self.packing.pack(data))
        self.errors.write("".join(map(_render, result.skipped)).encode())
        self.rows += result.rows
        self.input = input
        self._record()

    def finish(self) -> None:
        if self.packing is not None:
            self.text.write(self.packing.pack(b""))
        with explained_errors(self.path):
            errors = Path(self.errors.name)
            if self.errors.size:
                errors.replace(errors_path(self.place))
            else:
                errors.unlink()
                errors_path(self.place).unlink(missing_ok=True)  # of an earlier run
            self.text.force()
            Path(self.text.name).replace(self.place)
            self.record_path.unlink()
        sync_folder(self.place.parent)

    def _record(self) -> None:
        self.text.force()
        self.errors.force()
        record = {
            "format": RECORD_FORMAT,
            "job": self.job,
            "settled": self.settled,
            "rows": self.rows,
            "input": self.input,
            "bytes": self.text.size,
            "output": self.text.checksum.hexdigest(),
            "error_bytes": self.errors.size,
            "errors": self.errors.checksum.hexdigest(),
        }
        with _nothing_lost():
            write_json(self.record_path, record | {"record": _checksum(record)})


class _GrowingFile:
    """A file that is appended to, with its size and checksum so far."""

    def __init__(self, path: Path, file: io.FileIO) -> None:
        self.path, self.file = path, file
        self.name = file.name
        self.size = 0
        self.checksum = hashlib.sha256()

    @property
    def has_begun(self) -> bool:
        return os.fstat(self.file.fileno()).st_size > 0

    def cut(self, size: int, checksum: str) -> bool:
        """Cut off what comes after the first bytes; return whether these are there and as they were."""
        self.file.seek(0)
        self.size, self.checksum = 0, hashlib.sha256()
        while self.size < size and (data := self.file.read(min(size - self.size, 1 << 20))):
            self.checksum.update(data)
            self.size += len(data)
        if self.size != size or (size and self.checksum.hexdigest() != checksum):
            return False
        with explained_errors(self.path):
            self.file.truncate(size)
            self.file.seek(size)
        return True

    def write(self, data: bytes) -> None:
        with _nothing_lost(), explained_errors(self.path):
            view = memoryview(data)
            while view:
                view = view[_write_some(self.file, view) :]
        self.size += len(data)
        self.checksum.update(data)

    def force(self) -> None:
        with _nothing_lost(), explained_errors(self.path):
            os.fsync(self.file.fileno())


def _write_some(file: io.FileIO, data: memoryview) -> int:
    """Write data, and return how many bytes of it the system took."""
    return file.write(data)


def _checksum(record: Mapping[str, Any]) -> str:
    """Return the checksum of a record as it is read back, in which NaN is None."""
    plain = parse_json(json.dumps(record))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


@contextmanager
def _nothing_lost() -> Iterator[None]:
    """Say in the error of a disk that takes no more that the work so far is not lost."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{error} What is done is kept: make room, and start the same command again.") from None


def _is_kept(path: Path) -> bool:
    """Return whether the output is a file, next to which another one can lie."""
    return str(path) != STANDARD_OUTPUT and (path.is_file() or not path.exists())


def _open_to_grow(path: Path) -> io.FileIO:
    with explained_errors(path):
        return open(path, "r+b", buffering=0, opener=lambda name, _: os.open(name, os.O_RDWR | os.O_CREAT, 0o666))


@contextmanager
def _locked(path: Path) -> Iterator[io.FileIO]:
    """Open a file to grow, for this process alone."""
    while True:
        file = _open_to_grow(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise InputError(f"{path} is being written by another process: wait for it, or stop it.") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                break
        file.close()  # another process has just completed it: there is nothing yet again
    with file:
        yield file
