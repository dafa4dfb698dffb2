"""Columns hold what the alignments do, and are written as the alignments are."""

from hypothesis import given
from hypothesis import strategies as st

from sightline.alignment.columns import Alignments
from sightline.alignment.formats import FORMATS, render_alignments
from sightline.alignment.links import Alignment

words = st.integers(0, 12) | st.sampled_from([9, 10, 99, 100, 1_000_000])
links = st.dictionaries(st.tuples(words, words), st.floats(0, 1), max_size=8)
lengths = st.none() | st.integers(1_000_001, 2_000_000)
many = st.lists(st.builds(Alignment, links, st.just(()), lengths, lengths), max_size=6)


def lengths_of(alignments):
    return [(one.source_length, one.target_length) for one in alignments]


@given(many)
def test_there_and_back(alignments):
    columns = Alignments.of(alignments)
    assert list(columns) == alignments
    assert lengths_of(columns) == lengths_of(alignments)
    assert columns[1:] == alignments[1:]
    assert len(columns) == len(alignments)


@given(many)
def test_flipped(alignments):
    flipped = [one.flipped() for one in alignments]
    columns = Alignments.of(alignments).flipped()
    assert [list(one.confidences.items()) for one in columns] == [list(one.confidences.items()) for one in flipped]
    assert lengths_of(columns) == lengths_of(flipped)
    in_order = Alignments.of(flipped)
    assert columns.source.tolist() == in_order.source.tolist()
    assert columns.target.tolist() == in_order.target.tolist()


@given(many, st.sampled_from(sorted(FORMATS)), st.sampled_from([None, 0, 1]), st.booleans(), st.booleans())
def test_written_as_the_alignments_are(alignments, format, base, target_first, confidences):
    options = (format, base, target_first, confidences)
    columns = [Alignments.of(alignments[:2]), *alignments[2:3], Alignments.of(alignments[3:])]
    assert "".join(render_alignments(columns, *options)) == "".join(render_alignments(alignments, *options))
