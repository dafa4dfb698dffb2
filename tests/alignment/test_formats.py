"""Alignment files: what is written is read again, and what contradicts the user's word is refused."""

import io
import itertools
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.alignment.formats import (
    FORMATS,
    read_alignments,
    read_lengths,
    render_alignments,
    write_alignments,
)
from sightline.alignment.links import Alignment
from sightline.errors import InputError

LINK = st.tuples(st.integers(0, 6), st.integers(0, 8))
ROUND = st.integers(0, 100).map(lambda percent: percent / 100)
ALIGNMENTS = st.lists(
    st.builds(Alignment, st.dictionaries(LINK, ROUND, max_size=8), st.sets(LINK, max_size=3)), min_size=1, max_size=6
)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "words"])
@pytest.mark.parametrize("base", [None, 0, 1])
@pytest.mark.parametrize("target_first", [False, True])
@given(alignments=ALIGNMENTS)
@settings(max_examples=20)
def test_reading_what_was_written(tmp_path_factory, format, base, target_first, alignments):
    path = tmp_path_factory.getbasetemp() / "alignments"
    write_alignments(alignments, path, format, base, target_first, confidences=True)
    lengths = [(7, 9)] * len(alignments)
    assert list(read_alignments(path, format, base, target_first, lengths)) == alignments


@pytest.mark.parametrize(
    ("format", "confidences", "text"),
    [
        ("pharaoh", False, "0-1 2p0\n\n"),
        ("pharaoh", True, "0-1:0.5 2p0\n\n"),
        ("naacl", False, "1 1 2 S\n1 3 1 P\n"),
        ("naacl", True, "1 1 2 S 0.5\n1 3 1 P 1\n"),
        (
            "jsonl",
            False,
            '{"links": [[0, 1]], "possible": [[2, 0]], "source_length": 3, "target_length": 2}\n{"links": []}\n',
        ),
    ],
)
def test_what_is_written(format, confidences, text):
    alignments = [Alignment({(0, 1): 0.5}, [(2, 0)], 3, 2), Alignment()]
    assert "".join(render_alignments(alignments, format, confidences=confidences)) == text


def test_naacl_fills_gaps_and_reads_optional_fields(tmp_path):
    path = write(tmp_path / "a.naacl", "0002 1 2\n2 3 1 P\n\n2 2 2 S 0.5\n4 1 1 0.25\n")
    expected = [Alignment(), Alignment({(0, 1): 1.0, (1, 1): 0.5}, [(2, 0)]), Alignment(), Alignment({(0, 0): 0.25})]
    assert list(read_alignments(path, "naacl")) == expected
    assert len(list(read_alignments(path, "naacl", lengths=[(3, 3)] * 6))) == 6


def test_gold_with_sure_and_possible_links(tmp_path):
    (gold,) = read_alignments(write(tmp_path / "gold", "1-1 2p3\n"), base=1)
    assert gold.links == {(0, 0)}
    assert gold.possible == {(0, 0), (1, 2)}


def test_reading_is_lazy_and_takes_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0-0\n1-1\nnonsense\n")))
    assert list(itertools.islice(read_alignments("-"), 2)) == [Alignment([(0, 0)]), Alignment([(1, 1)])]


def test_writing_to_standard_output(capsys):
    write_alignments([Alignment([(0, 0), (1, 2)])])
    assert capsys.readouterr().out == "0-0 1-2\n"


def test_a_file_appears_only_when_complete(tmp_path):
    def alignments():
        yield Alignment([(0, 0)])
        raise InputError("broken off")

    with pytest.raises(InputError, match="broken off"):
        write_alignments(alignments(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="cannot be written"):
        write_alignments([], tmp_path / "missing" / "out")


@pytest.mark.parametrize(
    ("lines", "base", "complaint"),
    [
        (
            ["1-1", "3-2"],
            0,
            r"sentence 2: the link 3-2 lies outside .* 3 and 2 words, counted from 0. It looks 1-based",
        ),
        (["1-1", "3-2 0-1"], 1, r"sentence 2: the link 0-1 has word 0, .* looks 0-based"),
        (["0-0", "1-2"], 0, r"sentence 2: the link 1-2 .* other order of source and target"),
        (["0-0", "7-7"], 0, r"sentence 2: .*do not belong together"),
        (["0-0"], 0, "ends after 1 sentences, but the texts go on"),
        (["0-0"] * 3, 0, "goes on after 2 sentences"),
    ],
)
def test_links_that_do_not_fit_the_texts(tmp_path, lines, base, complaint):
    path = write(tmp_path / "a.pharaoh", "\n".join(lines) + "\n")
    source, target = write(tmp_path / "source", "a b c\n" * 2), write(tmp_path / "target", "x y\n" * 2)
    with pytest.raises(InputError, match=complaint):
        list(read_alignments(path, base=base, lengths=read_lengths(source, target)))


def test_a_file_that_never_touches_word_0_looks_1_based(tmp_path):
    path = write(tmp_path / "gold", "1-1 2-2\n" * 10)
    with pytest.raises(InputError, match=r"sentences 1 to 10: .* looks 1-based"):
        list(read_alignments(path))
    assert len(list(read_alignments(path, base=1))) == 10
    assert len(list(read_alignments(path, lengths=[(3, 3)] * 10))) == 10, "the texts show that it is right"
    assert len(list(read_alignments(write(path, "1-1 2-2\n" * 9)))) == 9, "too few to tell"
    assert len(list(read_alignments(write(path, "1-1 2-2\n" * 20 + "3-0\n")))) == 21


@pytest.mark.parametrize(
    ("format", "text", "complaint"),
    [
        ("pharaoh", "0-0\n0=1\n", "line 2: '0=1' is not a link"),
        ("pharaoh", "0-0:high\n", "line 1: 'high' is not a confidence"),
        ("pharaoh", "0-0:nan\n", "line 1: the confidence nan"),
        ("pharaoh", "-1-0\n", "'-1-0' is not a link"),
        ("pharaoh", f"0-0 1-{'9' * 5000}\n", "line 1: a link has the word 9999.*10,000 words at most"),
        ("pharaoh", "0-20000\n", "line 1: a link has the word 20000, and sentences have 10,000 words at most"),
        ("pharaoh", "٣-٣\n", "is not a link"),
        ("naacl", "2000000000 1 1\n", "line 1: sentence 2000000000 follows on sentence 1, and at most 10,000"),
        ("naacl", f"{'9' * 5000} 1 1\n", "line 1: sentence 999.* may have no links"),
        ("naacl", f"1 {'9' * 5000} 1\n", "line 1: a link has the word 999"),
        ("jsonl", "[" * 100_000 + "\n", "line 1: this is not an alignment"),
        ("jsonl", '{"links": [[0, 1]], "source_length": "x"}\n', "line 1: this is not an alignment"),
        ("jsonl", '{"links": [[true, 1]]}\n', "line 1: this is not an alignment"),
        ("jsonl", '{"links": [[0, 1e999]]}\n', "line 1: this is not an alignment"),
        ("jsonl", '{"links": null}\n', "line 1: this is not an alignment"),
        ("naacl", "1 1\n", "line 1: this is not a link"),
        ("naacl", "2 1 1\n1 1 1\n", "line 2: sentence 1 comes too late"),
        ("naacl", "1 1 1 X\n", "'X' is not a confidence"),
        ("jsonl", '{"links": [[0]]}\n', "line 1: this is not an alignment"),
        ("jsonl", '{"links": [[0, 1.5]]}\n', "line 1: this is not an alignment"),
        ("jsonl", '{"links": [[0, -1]]}\n', "line 1: this is not an alignment"),
        ("jsonl", "[]\n", "line 1: this is not an alignment"),
        ("talp", "", "no alignment format 'talp'"),
    ],
)
def test_malformed_files(tmp_path, format, text, complaint):
    with pytest.raises(InputError, match=complaint):
        list(read_alignments(write(tmp_path / "file", text), format))


def test_counting_from_elsewhere(tmp_path):
    with pytest.raises(InputError, match="from 0 or from 1, not from 2"):
        list(read_alignments(tmp_path / "file", base=2))
