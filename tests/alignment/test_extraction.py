"""Extraction: each way on matrices small enough to check by eye, and what it does where scores tell nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sightline.alignment.extraction import EXTRACTIONS, extract_alignment
from sightline.attribution import Attribution, Tokens
from sightline.errors import InputError

# "un+der" is split in two; both sides end in a special position.
SOURCE = Tokens(("a", "un", "der", "c", "</s>"), (0, 1, 1, 2, None), ("a", "under", "c"))
TARGET = Tokens(("x", "y1", "y2", "</s>"), (0, 1, 1, None), ("x", "y"))


def attribution(rows, source=SOURCE, target=TARGET, **named):
    return Attribution(np.array(rows, dtype=np.float32), source, target, **named)


SCORES = attribution(
    [
        [0.30, 0.05, 0.05, 0.10, 0.50],
        [0.30, 0.10, 0.35, 0.20, 0.05],
        [0.10, 0.05, 0.20, 0.55, 0.10],
        [0.00, 0.00, 0.00, 0.00, 1.00],
    ]
)


@pytest.mark.parametrize(
    ("extraction", "links"),
    [
        # words: x = .30 .10 .10 (.50), y = .20 .35 .375 (.075)
        ("argmax", {(2, 1): 0.375}),
        ("argmax-words", {(0, 0): 0.6, (2, 1): 0.375 / 0.925}),
        ("pieces", {(0, 0): 0.6, (1, 1): 0.35 / 0.95, (2, 1): 0.55 / 0.9}),
        ("mutual", {(0, 0): (0.6 * 0.3 / 0.5) ** 0.5, (2, 1): (0.375 / 0.925 * 0.375 / 0.475) ** 0.5}),
        (
            "mutual-pieces",
            {
                (0, 0): (0.6 * 0.3 / 0.7) ** 0.5,  # a is as fond of y1: the first counts
                (1, 1): (0.35 / 0.95 * 0.35 / 0.6) ** 0.5,
                (2, 1): (0.55 / 0.9 * 0.55 / 0.85) ** 0.5,
            },
        ),
    ],
)
def test_by_eye(extraction, links):
    found = extract_alignment(SCORES, extraction)
    assert found.links == set(links)
    assert {link: found.confidences[link] for link in links} == pytest.approx(links, abs=1e-6)
    assert (found.source_length, found.target_length) == (3, 2)


def test_a_share_above_the_threshold():
    found = extract_alignment(SCORES, "threshold", threshold=0.3)
    shares = {(0, 0): 0.6, (1, 1): 0.35 / 0.925, (2, 1): 0.375 / 0.925}
    assert dict(found.confidences) == pytest.approx(shares, abs=1e-6)
    assert extract_alignment(SCORES, "threshold").links > found.links


def test_softmax_in_both_directions():
    similarities = np.array(
        [[9.0, 1.0, 2.0, 0.0, 20.0], [0.0, 7.0, 6.0, 6.5, 20.0], [1.0, 2.0, 1.0, 8.0, 20.0], [30.0] * 5]
    )
    inner = similarities[:3, :4]
    by_row = np.exp(inner) / np.exp(inner).sum(1, keepdims=True)
    by_column = np.exp(inner) / np.exp(inner).sum(0, keepdims=True)
    words = [(SOURCE.word_ids[i], TARGET.word_ids[j]) for j, i in np.argwhere((by_row > 0.1) & (by_column > 0.1))]
    found = extract_alignment(attribution(similarities), "softmax", threshold=0.1)
    assert found.links == set(words) == {(0, 0), (1, 1), (2, 1)}
    cells_of_links = [(0, 0)], [(1, 1), (1, 2)], [(1, 3), (2, 3)]
    best = [max(np.sqrt(by_row[cell] * by_column[cell]) for cell in cells) for cells in cells_of_links]
    assert list(found.confidences.values()) == pytest.approx(best, abs=1e-6)
    assert extract_alignment(attribution(similarities), "softmax").links >= found.links
    higher = extract_alignment(attribution(similarities + 800), "softmax", threshold=0.1)  # exp(800) is no number
    assert dict(higher.confidences) == pytest.approx(dict(found.confidences), abs=1e-6)


@pytest.mark.parametrize("extraction", EXTRACTIONS)
@pytest.mark.parametrize("value", [0.0, 0.25])
def test_rows_that_tell_nothing_give_no_link(extraction, value):
    assert len(extract_alignment(attribution(np.full((4, 5), value)), extraction)) == 0
    one_tells = np.full((4, 5), value)
    one_tells[0, 0] = 1.0
    assert {target for _, target in extract_alignment(attribution(one_tells), extraction)} <= {0}


@pytest.mark.parametrize("extraction", EXTRACTIONS)
def test_rounding_tells_nothing(extraction):
    scores = np.full((4, 5), 0.2, dtype=np.float32)
    scores[:, 1] = np.nextafter(scores[:, 1], np.float32(1))
    assert len(extract_alignment(attribution(scores), extraction)) == 0


@pytest.mark.parametrize("extraction", EXTRACTIONS)
def test_a_row_that_only_a_special_position_breaks_tells_nothing(extraction):
    scores = np.full((4, 5), 0.25)
    scores[:, 4] = 0.1
    assert len(extract_alignment(attribution(scores), extraction)) == 0


@pytest.mark.parametrize("extraction", EXTRACTIONS)
def test_a_single_word_needs_no_rival(extraction):
    one = Tokens(("a",), (0,), ("a",))
    assert list(extract_alignment(attribution([[0.5]], one, one), extraction)) == [(0, 0)]


@pytest.mark.parametrize("extraction", [name for name in EXTRACTIONS if name != "softmax"])
def test_negative_scores_are_no_evidence(extraction):
    assert len(extract_alignment(attribution(-np.arange(20.0).reshape(4, 5)), extraction)) == 0


@pytest.mark.parametrize("extraction", EXTRACTIONS)
def test_nothing_to_align(extraction):
    nothing = Tokens((), (), ())
    assert len(extract_alignment(attribution(np.zeros((4, 0)), source=nothing), extraction)) == 0
    assert len(extract_alignment(attribution(np.zeros((0, 5)), target=nothing), extraction)) == 0
    only_special = Tokens(("</s>",), (None,), ())
    assert len(extract_alignment(attribution(np.ones((4, 1)), source=only_special), extraction)) == 0


@pytest.mark.parametrize("extraction", EXTRACTIONS)
@settings(max_examples=40)
@given(scores=arrays(np.float32, (4, 5), elements=st.floats(-100, 100, width=32)))
def test_links_are_of_real_words_with_confidences(extraction, scores):
    found = extract_alignment(attribution(scores), extraction)
    assert all(source < 3 and target < 2 for source, target in found)
    assert all(0 <= confidence <= 1 for confidence in found.confidences.values())


@settings(max_examples=40)
@given(scores=arrays(np.float32, (4, 5), elements=st.floats(0, 100, width=32)))
def test_ways_that_contain_each_other(scores):
    def found(extraction):
        return extract_alignment(attribution(scores), extraction).links

    assert found("argmax") <= found("argmax-words")
    assert found("mutual") <= found("argmax-words")
    assert found("mutual-pieces") <= found("pieces")


def test_the_prefix_is_left_out():
    prefix = Tokens(("p",), (0,), ("p",))
    with_prefix = attribution(np.hstack([SCORES.scores, np.full((4, 1), 9.0)]), prefix=prefix)
    assert extract_alignment(with_prefix, "argmax") == extract_alignment(SCORES, "argmax")


def test_mistakes():
    with pytest.raises(InputError, match="choose or average layer and head first"):
        extract_alignment(attribution(np.zeros((2, 3, 4, 5)), axes=("layer", "head")))
    with pytest.raises(InputError, match="no extraction 'argmin'"):
        extract_alignment(SCORES, "argmin")
    with pytest.raises(InputError, match="'argmax' has no threshold; those that have: threshold, softmax"):
        extract_alignment(SCORES, "argmax", threshold=0.5)
    broken = SCORES.scores.copy()
    broken[0, 0] = np.nan
    with pytest.raises(InputError, match="scores of norms are not all finite"):
        extract_alignment(attribution(broken, method="norms"))
