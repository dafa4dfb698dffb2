"""The one way to read lines, and the one way to write a file: whole or not at all.

Whatever is written goes to a temporary file next to its place, under a name of its own, is forced to the disk and then
takes the place of the old file in one step. A reader sees the old file or the new one; of two processes that write one
file, the later one wins. When writing fails, the old file stays as it was. Links are followed, and the old file's
permissions are kept. Devices, pipes and standard output cannot be replaced: they are written straight.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from sightline.errors import InputError
from sightline.limits import MOST_LINE_BYTES
from sightline.packing import Packing, damages, find_packing

FilePath = str | os.PathLike[str]

STANDARD_INPUT = STANDARD_OUTPUT = "-"
PACKED_LINES = 1024
WRITING = ".writing"
"""How the names of temporary files and folders end; what a crash leaves can be removed."""


class Position:
    """How far a file has been read, as a share of its bytes."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._size = 0

    def follow(self, file: IO[bytes]) -> None:
        """Measure this file from now on."""
        there = os.fstat(file.fileno())
        self._file, self._size = file, there.st_size if stat.S_ISREG(there.st_mode) else 0

    @property
    def share(self) -> float | None:
        """Return the share of the file that was read; None where a file has no size, such as a pipe."""
        if self._file is None or not self._size:
            return None
        return 1.0 if self._file.closed else min(1.0, self._file.tell() / self._size)


def read_lines(path: FilePath, position: Position | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ends; `-` is standard input, `.gz` and `.zst` are unpacked.

    Only a line feed ends a line: the rarer separators of Unicode would put two files out of step.
    """
    for line in try_lines(path, position):
        if isinstance(line, InputError):
            raise line
        yield line


def try_lines(path: FilePath, position: Position | None = None) -> Iterator[str | InputError]:
    """Yield the lines of a file as `read_lines` does, and for a line that is not UTF-8 the error that says so."""
    packing = find_packing(path)
    try:
        with _open_bytes(path, packing, position) as file:
            for number, line in enumerate(iter(partial(file.readline, MOST_LINE_BYTES + 1), b""), start=1):
                if len(line) > MOST_LINE_BYTES:
                    raise InputError(
                        f"{path}, line {number}: it has more than {MOST_LINE_BYTES:,} bytes; is this a file of lines?"
                    )
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError:
                    yield InputError(f"{path}, line {number}: this is not UTF-8; convert the file first.")
    except damages():
        assert packing is not None
        suffix = Path(path).suffix
        raise InputError(f"{path} is not a complete {packing.name} file, though its name ends in {suffix}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason_of(error)}.") from None


def check_readable(path: FilePath | None) -> None:
    """Raise an InputError if a file cannot be read, before the work that needs it; None and `-` always can."""
    if path is None or os.fspath(path) == STANDARD_INPUT:
        return
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason_of(error)}.") from None


@contextmanager
def _open_bytes(path: FilePath, packing: Packing | None, position: Position | None) -> Iterator[Any]:
    if os.fspath(path) == STANDARD_INPUT:
        yield sys.stdin.buffer  # not ours to close
        return
    with Path(path).open("rb") as file:
        if position is not None:
            position.follow(file)
        if packing is None:
            yield file
        else:
            with packing.open(file) as unpacked:
                yield unpacked


# Writing


def check_writable(path: FilePath) -> None:
    """Raise an InputError if a file cannot be written, before the work whose result it is to hold; change nothing."""
    place = _find_place(path)
    if place is None:
        return
    with explained_errors(path):
        _try_writing(place)


def check_folder_writable(folder: FilePath) -> None:
    """Raise an InputError if files cannot be written into a folder, which need not exist yet; change nothing."""
    place = Path(os.path.realpath(folder))
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise InputError(f"{folder} cannot be written: {place} is not a folder.")
    with explained_errors(folder):
        _try_writing(place / "file")


def _try_writing(place: Path) -> None:
    descriptor, probe = _create(place)
    try:
        os.write(descriptor, b"\n")  # a full disk still makes empty files
    finally:
        os.close(descriptor)
        _remove(probe)


def write_text(path: FilePath, text: str) -> None:
    """Write a text; `-` is standard output."""
    with writing(path) as file:
        file.write(text)


def write_lines(lines: Iterable[str], path: FilePath = STANDARD_OUTPUT) -> None:
    """Write lines, their ends included, as they come; `-` is standard output, `.gz` and `.zst` are packed."""
    packing = find_packing(path)
    if packing is None:
        with writing(path) as file:
            file.writelines(lines)
        return
    with writing(path, "wb") as file:
        remaining = iter(lines)
        while some := "".join(islice(remaining, PACKED_LINES)):
            file.write(packing.pack(some.encode()))
        file.write(packing.pack(b""))  # no lines are a packed file, too


@contextmanager
def writing(path: FilePath, mode: str = "w") -> Iterator[IO[Any]]:
    """Yield a file (`w`: UTF-8 text, `wb`: bytes) that takes the place of `path` when the context ends well.

    After an exception the old file is as it was. A disk that is full or may not be written is an InputError; what
    goes wrong on standard output (`-`) is left to the program that owns it.
    """
    assert mode in ("w", "wb")
    place = _find_place(path)
    try:
        if os.fspath(path) == STANDARD_OUTPUT:
            yield sys.stdout if mode == "w" else sys.stdout.buffer
            sys.stdout.flush()
        elif place is None:
            with explained_errors(path):
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)  # a log that the shell opened with >> is kept
            with _opened(descriptor, path, mode) as file:
                yield file
        else:
            with _replacing(place, path, mode) as file:
                yield file
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        raise InputError(f"{path} cannot be written: {letter!r} is half of a letter, which UTF-8 lacks.") from error


@contextmanager
def _replacing(place: Path, path: FilePath, mode: str) -> Iterator[IO[Any]]:
    with explained_errors(path):
        descriptor, unfinished = _create(place)
    try:
        with _opened(descriptor, path, mode) as file:
            yield file
            file.flush()
            with explained_errors(path):
                os.fsync(descriptor)
        with explained_errors(path):
            unfinished.replace(place)
    except BaseException:
        _remove(unfinished)
        raise
    sync_folder(place.parent)


@contextmanager
def _opened(descriptor: int, path: FilePath, mode: str) -> Iterator[IO[Any]]:
    raw = _Output(descriptor, path)
    file: IO[Any] = io.BufferedWriter(raw, 1 << 16)
    if mode == "w":
        file = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
    try:
        yield file
        file.flush()
    except BaseException:
        with suppress(OSError):
            raw.close()  # not `file`, which would write its rest, and perhaps fail again
        raise
    with explained_errors(path):
        raw.close()


def append_line(path: FilePath, line: str) -> None:
    """Append a line to a file; when that fails, the file keeps the lines that it had."""
    data = f"{line}\n".encode()
    with explained_errors(path), open(path, "ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with suppress(OSError):
                file.truncate(before)
            raise


@contextmanager
def writing_folder(path: FilePath) -> Iterator[Path]:
    """Yield an empty folder that becomes `path`, in place of what was there, when the context ends well."""
    place = Path(os.path.realpath(path))
    with _staged(place) as staged:
        yield staged
        _force_all_to_disk(staged)
        _exchange(staged, place)
        sync_folder(place.parent)


@contextmanager
def writing_into(folder: Path, last: str) -> Iterator[Path]:
    """Yield an empty folder; when the context ends well, its files move into a folder in use, `last` at the end."""
    with _staged(folder / "staged") as staged:
        yield staged
        _force_all_to_disk(staged)
        for file in sorted(staged.iterdir(), key=lambda file: file.name == last):
            file.replace(folder / file.name)
        sync_folder(folder)


@contextmanager
def _staged(place: Path) -> Iterator[Path]:
    unfinished = _unused_name(place)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
    finally:
        _remove_folder(unfinished)


def _find_place(path: FilePath) -> Path | None:
    """Return where a file is to be put, links followed; None if it is written straight. Refuse what cannot be."""
    if os.fspath(path) == STANDARD_OUTPUT:
        return None
    try:
        there = os.stat(path)
    except FileNotFoundError:
        place = Path(os.path.realpath(path))
        if not place.parent.is_dir():
            raise InputError(f"{path} cannot be written: there is no folder {place.parent}.") from None
        return place
    except OSError as error:  # links in a circle, a name that is too long, a folder that may not be entered
        raise _cannot_write(path, error) from None
    if stat.S_ISDIR(there.st_mode):
        raise InputError(f"{path} cannot be written: it is a folder; name a file.")
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written: it is write-protected.")
    if not stat.S_ISREG(there.st_mode) or _is_descriptor(path):
        return None
    return Path(os.path.realpath(path))


def _is_descriptor(path: FilePath) -> bool:
    """Return whether a path names a file that this process has open, such as /dev/stdout."""
    return os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/"))


def _create(place: Path) -> tuple[int, Path]:
    """Create a file next to another, with its permissions if it exists."""
    unfinished = _unused_name(place)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    try:
        old = place.stat()
    except FileNotFoundError:
        return os.open(unfinished, flags, 0o666), unfinished  # what of it the process's mask leaves
    descriptor = os.open(unfinished, flags, stat.S_IMODE(old.st_mode) & 0o700)
    try:
        with suppress(PermissionError):  # only some may give files away; it must come before the mode, which it clears
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    except BaseException:
        os.close(descriptor)
        _remove(unfinished)
        raise
    return descriptor, unfinished


def _unused_name(place: Path) -> Path:
    """Return a name next to a file or folder that nobody else uses, and not too long for a name."""
    beginning = os.fsencode(place.name)[:200].decode(errors="ignore")
    return place.with_name(f".{beginning}.{secrets.token_hex(6)}{WRITING}")


class _Output(io.FileIO):
    """A file whose failures to write are InputErrors: others that happen meanwhile are not taken for them."""

    def __init__(self, descriptor: int, path: FilePath) -> None:
        super().__init__(descriptor, "w")
        self.path = path

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _cannot_write(self.path, error) from None


@contextmanager
def explained_errors(path: FilePath) -> Iterator[None]:
    """Let an error of the system in writing a file be an InputError."""
    try:
        yield
    except OSError as error:
        raise _cannot_write(path, error) from None


def _exchange(unfinished: Path, place: Path) -> None:
    """Put a folder in its place; an old one there is moved away first and then removed."""
    for _ in range(10):
        old = _unused_name(place)
        with suppress(FileNotFoundError):
            place.rename(old)
        try:
            unfinished.rename(place)
            return
        except OSError as error:  # another process was quicker
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        finally:
            _remove_folder(old)
    raise OSError(errno.EEXIST, "another process keeps writing there")


def _force_all_to_disk(folder: Path) -> None:
    for inner, _, names in os.walk(folder):
        for name in (*names, "."):
            _force_to_disk(Path(inner, name))


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Force to the disk which files a folder has."""
    with suppress(OSError):  # the file is in its place; some file systems cannot do this
        _force_to_disk(folder)


def _remove(path: Path) -> None:
    with suppress(OSError):  # whatever happened first is what the user should hear
        path.unlink()


def _remove_folder(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)


def _cannot_write(path: FilePath, error: OSError) -> InputError:
    kept = " What it held is as it was." if os.path.isfile(path) else ""
    return InputError(f"{path} cannot be written: {reason_of(error)}.{kept}")


def reason_of(error: OSError) -> str:
    """Return what the system says went wrong."""
    return error.strerror or str(error)
