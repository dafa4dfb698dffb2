"""Readers of parallel text."""

import gzip
import io
import itertools
import sys
import time

import pytest

from sightline.alignment.parallel import read_pairs
from sightline.errors import InputError
from sightline.files import read_lines


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text", ["a b ||| x\n|||\nc ||| y z\n", "a b\tx\n\t\nc\ty z\n", "a b  |||\tx\n |||\nc ||| y z"]
)
def test_one_file(tmp_path, text):
    assert list(read_pairs(write(tmp_path / "pairs", text))) == [("a b", "x"), ("", ""), ("c", "y z")]


def test_two_files_one_of_them_packed(tmp_path):
    source = write(tmp_path / "source", "a b\r\n\nc\n")
    target = write(tmp_path / "target.gz", gzip.compress("x\n\ny\u2028z\n".encode()))
    assert list(read_pairs(source, target)) == [("a b", "x"), ("", ""), ("c", "y\u2028z")]


def test_standard_input(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é ||| x\n".encode())))
    assert list(read_pairs("-")) == [("é", "x")]
    assert not sys.stdin.closed
    with pytest.raises(InputError, match="both"):
        list(read_pairs("-", "-"))


def test_reading_is_lazy(tmp_path):
    path = write(tmp_path / "pairs", "a ||| x\n" * 5 + "no separator\n")
    assert list(itertools.islice(read_pairs(path), 5)) == [("a", "x")] * 5


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a ||| x\na x\n", r"line 2: there must be ' \|\|\| '.*found 0"),
        ("a ||| x ||| y\n", "line 1: .*found 2"),
        ("a\tx\na\tx\ty\n", "line 2: there must be a tab.*found 2"),
        ("a x\n", "line 1"),
        (b"a ||| x\n\xff ||| y\n", "line 2: this is not UTF-8"),
    ],
)
def test_malformed_lines_are_named(tmp_path, text, complaint):
    with pytest.raises(InputError, match=complaint):
        list(read_pairs(write(tmp_path / "pairs", text)))


def test_a_line_of_spaces_is_looked_through_once(tmp_path):
    before = time.process_time()
    with pytest.raises(InputError, match="line 1: there must be a tab"):
        list(read_pairs(write(tmp_path / "pairs", " " * 100_000 + "|\n")))
    assert time.process_time() - before < 2


def test_a_line_may_not_be_endless(tmp_path):
    path = write(tmp_path / "pairs.gz", gzip.compress(b"a\tx\n" + b"a" * 11_000_000))
    lines = read_lines(path)
    assert next(lines) == "a\tx"
    with pytest.raises(InputError, match="line 2: it has more than 10,000,000 bytes"):
        next(lines)


def test_files_of_different_length(tmp_path):
    source, target = write(tmp_path / "source", "a\nb\n"), write(tmp_path / "target", "x\n")
    with pytest.raises(InputError, match=r"target ends after line 1, but .*source goes on"):
        list(read_pairs(source, target))
    with pytest.raises(InputError, match=r"target ends after line 1"):
        list(read_pairs(target, source))
    with pytest.raises(InputError, match="missing"):
        list(read_pairs(source, tmp_path / "missing"))
