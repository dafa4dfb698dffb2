"""Joining the scores of several readings of one pair, before links are read off them.

A word pair that both directions find likely is likely, even where neither has it as its best. Rules of symmetrisation,
which see links alone, cannot know that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from sightline.attribution import Attribution, Tokens

WordMatrix = Float64[np.ndarray, "target_word source_word"]


class WordShares(NamedTuple):
    """What part of a target word's row each source word has, and what part is left for special positions."""

    of_words: Float64[np.ndarray, "*axes target_word source_word"]
    of_none: Float64[np.ndarray, "*axes target_word"]


def word_shares(attribution: Attribution) -> WordShares:
    """Merge pieces to words, cut off what is negative, and divide by all that a target word's row has.

    Words keep their numbers; one that the tokenizer dropped has zeros. Leading axes stay.
    """
    merged = _merge_words(attribution)
    total = merged.of_words.sum(-1) + merged.of_none
    total = np.where(total > 0, total, 1)
    return WordShares(merged.of_words / total[..., None], merged.of_none / total)


def join_scores(
    forward: Sequence[Attribution], backward: Sequence[Attribution], aligner: WordMatrix | None = None
) -> tuple[Attribution, Attribution]:
    """Return the first reading of each direction with its scores replaced by what all readings say together.

    Rows of `forward` are target words, rows of `backward` source words; there may be several of each. The joint score
    of a word pair is the geometric mean of its shares in all readings: with one of each, j_ts = sqrt(f_ts b_st). With
    an `aligner`'s posteriors it is sqrt(j_ts a_ts). A target word has no counterpart as far as the forward readings
    give it to special positions, and no source word of the backward readings chooses it: prod_s (1 - b_st). The pieces
    of a word share its joint score as they shared its own.
    """
    ahead, back = ([word_shares(one) for one in readings] for readings in (forward, backward))
    joint = geometric_mean([one.of_words for one in ahead] + [one.of_words.T for one in back])
    if aligner is not None:
        joint = np.sqrt(joint * aligner)
    return (
        _rescaled(forward[0], joint, _nobody(ahead, back, aligner)),
        _rescaled(backward[0], joint.T, _nobody(back, ahead, None if aligner is None else aligner.T)),
    )


def join_one_way(readings: Sequence[Attribution], aligner: WordMatrix | None = None) -> Attribution:
    """Return the first of several readings of one direction, with scores that all of them give together."""
    if len(readings) == 1 and aligner is None:
        return readings[0]
    shares = [word_shares(one) for one in readings]
    joint = geometric_mean([one.of_words for one in shares])
    if aligner is not None:
        joint = np.sqrt(joint * aligner)
    return _rescaled(readings[0], joint, _nobody(shares, [], aligner))


def geometric_mean(shares: Sequence[Float64[np.ndarray, "*axes"]]) -> Float64[np.ndarray, "*axes"]:
    """Average the logarithms of shares; one of 0 makes it 0."""
    return np.prod(shares, axis=0) ** (1 / len(shares))


def _nobody(
    own: Sequence[WordShares], others: Sequence[WordShares], aligner: WordMatrix | None
) -> Float64[np.ndarray, " word"]:
    """Return how much each word of a row has no counterpart."""
    nobody = geometric_mean([one.of_none for one in own] + [np.prod(1 - one.of_words, axis=0) for one in others])
    return nobody if aligner is None else np.sqrt(nobody * np.prod(1 - np.minimum(aligner, 1), axis=1))


def _merge_words(attribution: Attribution) -> WordShares:
    """Average over the pieces of each target word, add up those of each source word, and cut off what is negative."""
    scores = attribution.scores[..., : len(attribution.source)].astype(np.float64)
    rows, columns = _membership(attribution.target), _membership(attribution.source)
    rows = rows / np.maximum(rows.sum(0), 1)
    averaged = rows.T @ scores
    return WordShares(
        np.maximum(averaged @ columns, 0),
        np.maximum(averaged[..., attribution.source.special], 0).sum(-1),
    )


def _membership(tokens: Tokens) -> Float64[np.ndarray, "piece word"]:
    """Mark which word each piece belongs to."""
    marked = np.zeros((len(tokens), len(tokens.words)))
    for piece, word in enumerate(tokens.word_ids):
        if word is not None:
            marked[piece, word] = 1
    return marked


def _rescaled(attribution: Attribution, joint: WordMatrix, nobody: Float64[np.ndarray, " word"]) -> Attribution:
    """Scale scores so that those of words, once merged, are the joint ones; special target positions go."""
    reading = attribution.without_prefix()
    reading = reading.take(np.flatnonzero(~reading.target.special), range(len(reading.source)))
    merged = _merge_words(reading)
    by_word = np.divide(joint, merged.of_words, out=np.zeros_like(joint), where=merged.of_words > 0)
    by_none = np.divide(nobody, merged.of_none, out=np.zeros_like(nobody), where=merged.of_none > 0)
    rows = np.array(reading.target.word_ids, dtype=int)
    special = reading.source.special
    columns = np.array([word or 0 for word in reading.source.word_ids], dtype=int)
    scale = np.where(special, by_none[rows, None], by_word[rows[:, None], columns])
    scores = np.where(special, np.maximum(reading.scores, 0), reading.scores)
    return replace(reading, scores=(scores * scale).astype(np.float32))
