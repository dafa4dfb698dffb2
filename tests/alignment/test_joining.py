"""Scores of two directions, joined word by word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.alignment.extraction import extract_alignment
from sightline.alignment.joining import join_one_way, join_scores, word_shares
from sightline.attribution import Attribution, Tokens


def tokens(word_ids: list[int | None], words: int) -> Tokens:
    return Tokens(tuple(str(i) for i in range(len(word_ids))), tuple(word_ids), tuple(f"w{i}" for i in range(words)))


def attribution(scores: np.ndarray, source: Tokens, target: Tokens) -> Attribution:
    return Attribution(scores.astype(np.float32), source, target)


def literal(forward: Attribution, backward: Attribution) -> np.ndarray:
    """Join by the definition, one pair of words after the other."""

    def share(one: Attribution, target_word: int, source_word: int) -> float:
        rows = [i for i, word in enumerate(one.target.word_ids) if word == target_word]
        sums = np.mean([one.scores[i] for i in rows], axis=0)
        # The pieces of a source word are added up before what is negative is cut off.
        parts = {}
        for column, word in enumerate(one.source.word_ids):
            key = ("special", column) if word is None else word
            parts[key] = parts.get(key, 0.0) + float(sums[column])
        positive = {key: max(value, 0.0) for key, value in parts.items()}
        total = sum(positive.values())
        return positive[source_word] / total if total else 0.0

    shape = len(forward.target.words), len(forward.source.words)
    joint = np.zeros(shape)
    for target, source in np.ndindex(*shape):
        joint[target, source] = np.sqrt(share(forward, target, source) * share(backward, source, target))
    return joint


SOURCE, TARGET = tokens([0, 0, 1, None], 2), tokens([0, 1, 2, 2, None], 3)


def words_of(one: Attribution) -> np.ndarray:
    return one.words().without_special().scores


@given(st.integers(0, 10_000))
def test_equals_the_definition(seed):
    rng = np.random.default_rng(seed)
    forward = attribution(rng.normal(0.3, 1, (5, 4)), SOURCE, TARGET)
    backward = attribution(rng.normal(0.3, 1, (4, 5)), TARGET, SOURCE)
    ahead, back = join_scores([forward], [backward])
    expected = literal(forward, backward)
    assert words_of(ahead) == pytest.approx(expected, abs=1e-5)
    assert words_of(back) == pytest.approx(expected.T, abs=1e-5)
    assert back.target.words == ahead.source.words
    assert (ahead.scores[:, SOURCE.special] >= 0).all()  # 0 where there is no score to share out, and not NaN


@given(st.integers(0, 10_000))
def test_several_readings_and_an_aligner_are_multiplied(seed):
    rng = np.random.default_rng(seed)
    ahead = [attribution(rng.random((5, 4)), SOURCE, TARGET) for _ in range(2)]
    back = [attribution(rng.random((4, 5)), TARGET, SOURCE) for _ in range(2)]
    aligner = rng.random((3, 2))
    joint = np.ones((3, 2))
    for one, other in zip(ahead, back, strict=True):
        joint *= literal(one, other) ** 2
    joint **= 1 / 4
    one, other = join_scores(ahead, back, aligner)
    assert words_of(one) == pytest.approx(np.sqrt(joint * aligner), abs=1e-6)
    assert words_of(other) == pytest.approx(np.sqrt(joint * aligner).T, abs=1e-6)
    alone = join_one_way(ahead, aligner)
    shares = [word_shares(reading).of_words for reading in ahead]
    assert words_of(alone) == pytest.approx(np.sqrt(np.sqrt(shares[0] * shares[1]) * aligner), abs=1e-6)


def test_a_word_has_no_counterpart_as_far_as_both_directions_say_so():
    source, target = tokens([0, 1, None], 2), tokens([0, 1], 2)
    forward = attribution(np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]]), source, target)
    backward = attribution(np.array([[0.6, 0.4], [0.1, 0.9]]), target, tokens([0, 1], 2))
    ahead, _ = join_scores([forward], [backward])
    assert ahead.scores[:, 2] == pytest.approx([np.sqrt(0.5 * 0.4 * 0.9), np.sqrt(0.1 * 0.6 * 0.1)])
    aligner = np.array([[0.5, 0.25], [0.2, 0.75]])
    surer, _ = join_scores([forward], [backward], aligner)
    assert surer.scores[:, 2] == pytest.approx(np.sqrt(ahead.scores[:, 2] * [0.5 * 0.75, 0.8 * 0.25]))
    # Special positions compete under `argmax` alone, whether scores are joined or not.
    assert set(extract_alignment(ahead, "argmax")) == {(1, 1)}
    assert set(extract_alignment(ahead, "argmax-words")) == {(0, 0), (1, 1)}


def test_pieces_share_the_joint_score_of_their_word():
    source, target = tokens([0, 0, 1], 2), tokens([0, 0], 1)
    forward = attribution(np.array([[0.1, 0.3, 0.6], [0.2, 0.5, 0.3]]), source, target)
    backward = attribution(np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]), target, source)
    ahead, _ = join_scores([forward], [backward])
    # The word's shares are 0.55 and 0.45, whose roots the pieces divide among them as before.
    assert ahead.scores == pytest.approx(forward.scores * np.array([np.sqrt([1 / 0.55, 1 / 0.55, 1 / 0.45])]), abs=1e-6)
    assert set(extract_alignment(ahead, "pieces")) == {(1, 0), (0, 0)}
    assert set(extract_alignment(ahead, "argmax-words")) == {(0, 0)}


def test_heads_are_shared_out_one_by_one():
    rng = np.random.default_rng(0)
    ends = tokens([0, 0, 1, None, None], 2)
    scores = rng.random((2, 5, 5))
    together = word_shares(Attribution(scores, ends, TARGET, axes=("head",)))
    for head in range(2):
        alone = word_shares(attribution(scores[head], ends, TARGET))
        np.testing.assert_allclose(together.of_words[head], alone.of_words)
        np.testing.assert_allclose(together.of_none[head], alone.of_none)
    np.testing.assert_allclose(together.of_words.sum(-1) + together.of_none, 1)


def test_two_second_bests_that_agree_beat_two_bests_that_do_not():
    source, target = tokens([0, 1], 2), tokens([0, 1], 2)
    forward = attribution(np.array([[0.55, 0.45], [0.5, 0.5]]), source, target)
    backward = attribution(np.array([[0.1, 0.9], [0.9, 0.1]]), target, source)
    ahead, _ = join_scores([forward], [backward])
    assert set(extract_alignment(forward.words(), "argmax-words")) == {(0, 0)}
    assert set(extract_alignment(ahead, "argmax-words")) == {(1, 0), (0, 1)}


def test_a_word_without_pieces_has_no_links():
    source, target = tokens([0, 2], 3), tokens([0, 1], 2)
    forward = attribution(np.ones((2, 2)) + np.eye(2), source, target)
    backward = attribution(np.ones((2, 2)) + np.eye(2), target, source)
    ahead, back = join_scores([forward], [backward])
    assert ahead.scores.shape == (2, 2)
    assert set(extract_alignment(ahead, "argmax-words")) == {(0, 0), (2, 1)}
    assert set(extract_alignment(back, "argmax-words")) == {(0, 0), (1, 2)}
