"""From scores to links: the ways to read a word alignment off an attribution.

| name            | links of                                                                                      |
|-----------------|-----------------------------------------------------------------------------------------------|
| `argmax`        | each target word, its best source word; none where a special position wins (Kobayashi 2020)   |
| `argmax-words`  | each target word, its best source word; special positions do not compete                      |
| `pieces`        | each target piece, its best source piece, as links of their words (Ding et al. 2019)          |
| `threshold`     | each target word, every source word that has a share of its row of at least the threshold     |
| `mutual`        | pairs of words that are each other's best                                                     |
| `mutual-pieces` | pairs of pieces that are each other's best, as links of their words (SimAlign's Argmax)       |
| `softmax`       | pairs of pieces whose softmax over the source and over the target both exceed the threshold,  |
|                 | as links of their words (awesome-align)                                                       |

Pieces are merged as `Attribution.words` does: the sum over source pieces, the mean over target pieces. A score that is
not positive is no evidence, except under `softmax`, which reads similarities of either sign. A row (or, where both
directions count, a column) that is all alike tells nothing and gives no link, never a link to word 0, nor to the word
of most pieces.

The confidence of a link is the share of the source word in the positive scores of the target word's row; for a rule
that looks both ways, the geometric mean of the shares in row and column; where several pieces give one link, the
highest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Float64

from sightline.alignment.links import Alignment, Link
from sightline.attribution import Attribution
from sightline.errors import InputError, unknown_name
from sightline.values import check_share

Matrix = Float64[np.ndarray, "target source"]
AnyMatrix = Float[np.ndarray, "target source"]

DEFAULT_EXTRACTION = "argmax-words"
SHARE_THRESHOLD = 0.2
SOFTMAX_THRESHOLD = 0.001  # that of awesome-align
ALIKE = 1e-6  # scores that differ by less than this part of the highest differ by rounding only


def extract_alignment(
    attribution: Attribution, extraction: str = DEFAULT_EXTRACTION, threshold: float | None = None
) -> Alignment:
    """Read the word alignment off an attribution of one matrix, by one of EXTRACTIONS.

    `threshold` belongs to `threshold` and `softmax` alone. Scores of a target prefix are left out.
    """
    if extraction not in EXTRACTIONS:
        raise unknown_name("extraction", extraction, EXTRACTIONS)
    if attribution.axes:
        axes = " and ".join(attribution.axes)
        raise InputError(f"An alignment is read off one matrix: choose or average {axes} first.")
    if not np.isfinite(attribution.scores).all():
        raise InputError(f"The scores of {attribution.method or 'this attribution'} are not all finite numbers.")
    scores = attribution.without_prefix()
    if threshold is None:
        links = EXTRACTIONS[extraction](scores)
    elif extraction in THRESHOLDED:
        check_share("threshold", threshold)
        links = THRESHOLDED[extraction](scores, threshold)
    else:
        raise InputError(f"The extraction {extraction!r} has no threshold; those that have: {', '.join(THRESHOLDED)}.")
    return Alignment(links, (), len(scores.source.words), len(scores.target.words))


def argmax(scores: Attribution) -> dict[Link, float]:
    """Link each target word to the source word of its highest score; to none where a special position has it."""
    return _best_of_rows(_merge(scores.take(np.flatnonzero(~scores.target.special), range(len(scores.source)))))


def argmax_words(scores: Attribution) -> dict[Link, float]:
    """Link each target word to the source word of its highest score."""
    return _best_of_rows(_merge(scores.without_special()))


def argmax_pieces(scores: Attribution) -> dict[Link, float]:
    """Link the word of each target piece to the word of its best source piece."""
    return _best_of_rows(scores.without_special())


def above_threshold(scores: Attribution, threshold: float = SHARE_THRESHOLD) -> dict[Link, float]:
    """Link each target word to every source word that has enough of its row."""
    words = _merge(scores.without_special())
    shares = _shares(_evidence(words))
    return _collect(words, (shares >= threshold) & (shares > 0), shares)


def mutual(scores: Attribution) -> dict[Link, float]:
    """Link words that are each other's best."""
    return _mutual_best(_merge(scores.without_special()))


def mutual_pieces(scores: Attribution) -> dict[Link, float]:
    """Link the words of pieces that are each other's best."""
    return _mutual_best(scores.without_special())


def softmax_both_ways(scores: Attribution, threshold: float = SOFTMAX_THRESHOLD) -> dict[Link, float]:
    """Link the words of pieces that choose each other with a probability above the threshold."""
    pieces = scores.without_special()
    similarities = pieces.scores.astype(np.float64)
    by_row, by_column = _softmax(similarities), _softmax(similarities.T).T
    chosen = (by_row > threshold) & (by_column > threshold)
    chosen &= _telling(similarities) & _telling(similarities.T).T
    return _collect(pieces, chosen, np.sqrt(by_row * by_column))


EXTRACTIONS: Mapping[str, Callable[[Attribution], dict[Link, float]]] = {
    "argmax": argmax,
    "argmax-words": argmax_words,
    "pieces": argmax_pieces,
    "threshold": above_threshold,
    "mutual": mutual,
    "mutual-pieces": mutual_pieces,
    "softmax": softmax_both_ways,
}
THRESHOLDED: Mapping[str, Callable[[Attribution, float], dict[Link, float]]] = {
    "threshold": above_threshold,
    "softmax": softmax_both_ways,
}


def _merge(scores: Attribution) -> Attribution:
    """Merge pieces to words, after silencing rows that are all alike: their sums would favour words of many pieces."""
    return replace(scores, scores=_silence(scores, scores.scores)).words()


def _best_of_rows(scores: Attribution) -> dict[Link, float]:
    evidence = _evidence(scores)
    return _collect(scores, _best(evidence), _shares(evidence))


def _mutual_best(scores: Attribution) -> dict[Link, float]:
    evidence = _evidence(scores)
    by_column = np.where(_telling(evidence.T), evidence.T, 0)
    return _collect(scores, _best(evidence) & _best(by_column).T, np.sqrt(_shares(evidence) * _shares(by_column).T))


def _evidence(scores: Attribution) -> Matrix:
    return _silence(scores, np.maximum(scores.scores, 0)).astype(np.float64)


def _silence(scores: Attribution, values: AnyMatrix) -> AnyMatrix:
    """Set rows to zero that are all alike over the real source positions."""
    return np.where(_telling(values[:, ~scores.source.special]), values, 0)


def _telling(values: AnyMatrix) -> Bool[np.ndarray, "target 1"]:
    """Return which rows prefer some column to another; a single column has no rival and always tells."""
    if values.shape[1] < 2:
        return np.ones((len(values), 1), dtype=bool)
    spread = values.max(axis=1, keepdims=True) - values.min(axis=1, keepdims=True)
    return spread > ALIKE * np.abs(values).max(axis=1, keepdims=True)


def _best(evidence: Matrix) -> Bool[np.ndarray, "target source"]:
    """Mark the highest entry of each row that has a positive one; of equal ones, the first."""
    marked = np.zeros(evidence.shape, dtype=bool)
    if evidence.size:
        marked[np.arange(len(evidence)), evidence.argmax(axis=1)] = True
    return marked & (evidence > 0)


def _shares(evidence: Matrix) -> Matrix:
    """Divide each row by its sum; a row of zeros stays."""
    totals = evidence.sum(axis=1, keepdims=True)
    return np.divide(evidence, totals, out=np.zeros_like(evidence), where=totals > 0)


def _softmax(scores: Matrix) -> Matrix:
    if not scores.size:
        return scores
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def _collect(scores: Attribution, chosen: Bool[np.ndarray, "target source"], confidence: Matrix) -> dict[Link, float]:
    """Turn chosen cells into links of words; a special position gives none."""
    links: dict[Link, float] = {}
    for row, column in np.argwhere(chosen).tolist():
        source, target = scores.source.word_ids[column], scores.target.word_ids[row]
        if source is not None and target is not None:
            link = (source, target)
            links[link] = max(links.get(link, 0.0), min(float(confidence[row, column]), 1.0))
    return links
