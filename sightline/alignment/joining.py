"""Joining the scores of two directions, before links are read off them.

A word pair that both directions find likely is likely, even where neither has it as its best. Rules of symmetrisation,
which see links alone, cannot know that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from sightline.attribution import Attribution


def join_scores(forward: Sequence[Attribution], backward: Sequence[Attribution]) -> tuple[Attribution, Attribution]:
    """Return the scores of all readings together, for each direction, word by word: the geometric mean of their shares.

    Rows of `forward` are target words, rows of `backward` source words; there may be several of each. With one of each,
    j_ts = sqrt(f_ts b_st), where f and b are clamped at zero and rows sum to 1, special positions included.
    """
    ahead, back = ([_shares_of_words(reading) for reading in readings] for readings in (forward, backward))
    joint = geometric_mean([_by_word(words) for words in ahead] + [_by_word(words).T for words in back])
    return _with_scores(ahead[0], joint), _with_scores(back[0], joint.T)


def geometric_mean(shares: Sequence[Float64[np.ndarray, "*axes"]]) -> Float64[np.ndarray, "*axes"]:
    """Average the logarithms of shares; one of 0 makes it 0."""
    return np.prod(shares, axis=0) ** (1 / len(shares))


def _shares_of_words(attribution: Attribution) -> Attribution:
    """Merge pieces to words, and divide by all that a target word's row has."""
    scores = attribution.without_prefix()
    rows = scores.take(np.flatnonzero(~scores.target.special), range(len(scores.source)))
    return rows.words().normalized("clamp").without_special()


def _by_word(words: Attribution) -> Float64[np.ndarray, "target_word source_word"]:
    """Put scores at the numbers of their words; a word that the tokenizer dropped has none."""
    full = np.zeros((len(words.target.words), len(words.source.words)))
    full[_places(words)] = words.scores
    return full


def _with_scores(words: Attribution, joint: Float64[np.ndarray, "target_word source_word"]) -> Attribution:
    return replace(words, scores=joint[_places(words)].astype(np.float32))


def _places(words: Attribution) -> tuple[np.ndarray, ...]:
    """Index a matrix of all words by the words that are there; none is special any more."""
    rows, columns = (np.array(side.word_ids, dtype=int) for side in (words.target, words.source))
    return np.ix_(rows, columns)
