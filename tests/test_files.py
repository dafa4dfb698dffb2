"""Files are read line by line, and written whole or not at all."""

import errno
import gzip
import os
import resource
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from sightline.errors import InputError
from sightline.files import (
    append_line,
    check_writable,
    read_lines,
    write_lines,
    write_text,
    writing,
    writing_folder,
    writing_into,
)


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def fail_after(act, *arguments):
    act(*arguments)
    raise ZeroDivisionError


# Lines


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        list(read_lines(tmp_path / "missing"))
    packed = gzip.compress(b"abc\n" * 1000)
    damaged = packed[:20] + bytes([packed[20] ^ 0xFF]) + packed[21:]
    for name, data in {"text.gz": b"plain", "cut.gz": packed[:-9], "damaged.gz": damaged}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match="gzip"):
            list(read_lines(tmp_path / name))
    (tmp_path / "latin").write_bytes(b"a\nb\n\xe9\n")
    with pytest.raises(InputError, match="line 3: this is not UTF-8"):
        list(read_lines(tmp_path / "latin"))


# Writing


def test_a_file_gets_its_name_when_it_is_complete(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with writing(path) as file:
        file.write("é\n")
        file.flush()
        assert path.read_text() == "old"
        assert len(listing(tmp_path)) == 2
    assert path.read_bytes() == "é\n".encode()
    with writing(path, "wb") as file:
        file.write(b"\xff")
    assert path.read_bytes() == b"\xff"
    assert listing(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "out"
    path.write_text("old")

    def lines():
        yield "new\n" * 100_000
        raise error("mine")

    with pytest.raises(error, match="mine"):
        write_lines(lines(), path)
    assert path.read_text() == "old"
    assert listing(tmp_path) == ["out"]


def test_permissions_are_kept(tmp_path):
    path = tmp_path / "out"
    write_text(path, "new")
    usual = tmp_path / "usual"
    usual.touch()
    assert path.stat().st_mode == usual.stat().st_mode
    path.chmod(0o640)
    write_text(path, "newer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    for name, target in {"link": "there/file", "chain": "link"}.items():
        (tmp_path / name).symlink_to(target)
    write_text(tmp_path / "chain", "one")  # a link to a file that does not exist yet
    write_text(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "chain").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "two"
    assert listing(tmp_path / "there") == ["file"]
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(InputError, match="circle cannot be written"):
        write_text(tmp_path / "circle", "x")


def test_devices_and_pipes_are_written_straight(tmp_path):
    write_text("/dev/null", "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    write_text(link, "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    check_writable(pipe)
    write_text(pipe, "through")
    reader.join(10)
    assert received == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_standard_output(capsys, tmp_path):
    write_lines(["é\n", "b\n"])
    check_writable("-")
    with writing("-", "wb") as file:
        file.write(b"bytes\n")
    assert "é\nb\n" in capsys.readouterr().out
    code = "import sys; from sightline.files import write_text; write_text(sys.argv[1], 'new\\n')"
    for number, mode in enumerate(("wb", "ab")):  # behind > and >>
        path = tmp_path / f"log{number}"
        path.write_text("old\n")
        with path.open(mode) as file:
            subprocess.run([sys.executable, "-c", code, "/dev/stdout"], stdout=file, check=True)
        assert path.read_text() == ("new\n", "old\nnew\n")[number]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_a_full_device_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"^/dev/full cannot be written: No space left on device\.$"):
        write_text("/dev/full", "x")


@pytest.fixture
def small_files(monkeypatch):
    """Let files grow to 1,000 bytes only: what is behind that fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_leaves_the_old_file(tmp_path, small_files):
    path = tmp_path / "out"
    for size in (1001, 1_000_000):  # what fails is the last flush, or a write
        path.write_text("old")
        with pytest.raises(InputError, match=r"out cannot be written: File too large\. What it held is as it was\.$"):
            write_text(path, "x" * size)
        assert path.read_text() == "old"
        assert listing(tmp_path) == ["out"]


def test_cleaning_up_does_not_hide_the_first_error(tmp_path, small_files):
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "out") as file:
        fail_after(file.write, "x" * 2000)  # still in memory, and too much for the disk
    assert listing(tmp_path) == []


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_late_failure_leaves_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "out"
    path.write_text("old")

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*{"fsync": (os, "fsync", fail), "replace": (Path, "replace", fail)}[failing])
    with pytest.raises(InputError, match=r"out cannot be written: No space left on device\. What it held is as it was"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert listing(tmp_path) == ["out"]


@pytest.fixture
def full_disk(tmp_path):
    """Mount a disk of 64 kB with a file, otherwise full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only some may mount a disk")
    try:
        (folder / "out").write_text("old")
        with suppress(OSError), (folder / "rest").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(full_disk):
    path = full_disk / "out"
    for act in (
        lambda: check_writable(path),
        lambda: write_text(path, "new" * 9999),
        lambda: append_line(path, "new" * 9999),
    ):
        with pytest.raises(InputError, match="out cannot be written: No space left on device"):
            act()
    assert path.read_text() == "old"
    assert listing(full_disk) == ["out", "rest"]


def test_a_disk_that_may_not_be_written(full_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(full_disk)], check=True)
    for name in ("out", "new"):
        with pytest.raises(
            InputError, match=f"{name} cannot be written: (it is write-protected|Read-only file system)"
        ):
            check_writable(full_disk / name)


def test_the_target_is_checked_before_the_work(tmp_path):
    path = tmp_path / "out"
    check_writable(path)
    assert listing(tmp_path) == []
    path.write_text("old")
    check_writable(path)
    assert path.read_text() == "old"
    assert listing(tmp_path) == ["out"]
    for bad, complaint in {
        tmp_path: "it is a folder",
        tmp_path / "no" / "such": "there is no folder",
        path / "below": "cannot be written: Not a directory",
        tmp_path / ("x" * 300): "cannot be written: File name too long",
    }.items():
        for act in (check_writable, lambda bad: write_text(bad, "x")):
            with pytest.raises(InputError, match=complaint):
                act(bad)
    write_text(tmp_path / ("é" * 127), "a long name")
    assert listing(tmp_path) == ["out", "é" * 127]


def test_half_a_letter_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="half of a letter"):
        write_text(tmp_path / "out", "\udcff")
    assert listing(tmp_path) == []


WRITER = """
import sys, time
from sightline.files import write_lines
name, path = sys.argv[1:]
def lines():
    for number in range(20_000):
        yield f"{name} {number}\\n"
        if number % 1000 == 0:
            time.sleep(0.01)  # so that both write at the same time
print("ready", flush=True)
sys.stdin.readline()
write_lines(lines(), path)
"""


def test_of_two_processes_the_later_one_wins_whole(tmp_path):
    path = tmp_path / "out"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, name, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("a", "b", "c")
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        assert process.wait(60) == 0
        process.stdin.close()
        process.stdout.close()
    lines = path.read_text().splitlines()
    assert lines == [f"{lines[0][0]} {number}" for number in range(20_000)]
    assert listing(tmp_path) == ["out"]


def test_lines_are_appended_whole_or_not_at_all(tmp_path, small_files):
    path = tmp_path / "log"
    append_line(path, "é")
    append_line(path, "b")
    with pytest.raises(InputError, match="log cannot be written"):
        append_line(path, "x" * 2000)
    assert path.read_text() == "é\nb\n"


# Folders


def test_a_folder_gets_its_name_when_it_is_complete(tmp_path):
    path = tmp_path / "deep" / "folder"
    for content in ("one", "two"):  # new, and in place of an old one
        with writing_folder(path) as folder:
            (folder / content).write_text(content)
            (folder / "below").mkdir()
            (folder / "below" / content).write_text(content)
        assert listing(path) == ["below", content]
    with pytest.raises(ZeroDivisionError), writing_folder(path) as folder:
        fail_after((folder / "three").write_text, "three")
    assert listing(path) == ["below", "two"]
    assert listing(tmp_path / "deep") == ["folder"]


def test_files_are_put_into_a_folder_in_use(tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "a").write_text("old")
    moved = []
    replace = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, target: (moved.append(self.name), replace(self, target)))
    with writing_into(tmp_path, last="a") as folder:
        for name in ("a", "b"):
            (folder / name).write_text("new")
        assert (tmp_path / "a").read_text() == "old"
    assert moved == ["b", "a"]
    assert listing(tmp_path) == ["a", "b", "kept"]
    with pytest.raises(ZeroDivisionError), writing_into(tmp_path, last="a") as folder:
        fail_after((folder / "c").write_text, "new")
    assert listing(tmp_path) == ["a", "b", "kept"]
