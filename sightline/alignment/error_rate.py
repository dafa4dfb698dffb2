"""Scoring word alignments against a gold standard with sure and possible links (Och and Ney 2003).

With A the links of the hypothesis, S the sure and P the possible links of the gold standard (P includes S), counted
over the whole corpus:

    precision = |A and P| / |A|      recall = |A and S| / |S|      F1 = 2 precision recall / (precision + recall)
    AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)

All in percent, as papers print them.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import tee, zip_longest
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from sightline.alignment.formats import Lengths, read_alignments, read_lengths
from sightline.alignment.links import Alignment
from sightline.alignment.steps import Steps, Unseen, count_lines
from sightline.errors import InputError
from sightline.files import STANDARD_INPUT, FilePath, Position
from sightline.scores import Score

RESAMPLES = 1000
COVERAGE = 95  # percent of the resampled values that lie in an interval


@dataclass(frozen=True)
class AlignmentScores:
    """The scores of one hypothesis against one gold standard."""

    aer: Score
    precision: Score
    recall: Score
    f1: Score

    def __iter__(self) -> Iterator[Score]:
        return iter((self.aer, self.precision, self.recall, self.f1))

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python data, ready for JSON."""
        return {score.name: score.to_dict() for score in self}


def score_alignments(
    hypotheses: Iterable[Alignment], gold: Iterable[Alignment], seed: int = 1, **settings: object
) -> AlignmentScores:
    """Score alignments against gold alignments, one for each sentence pair.

    The intervals are percentiles over RESAMPLES corpora drawn from the sentences with replacement, by `seed`.
    `settings` is whatever else the result depends on: it is shown in the signature.

    >>> gold = [Alignment([(0, 0)], possible=[(1, 1)])]
    >>> print(score_alignments([Alignment([(0, 0), (1, 1), (2, 2)])], gold).aer)
    AER|sentences:1|sure:1|possible:2|bootstrap:1000|seed:1|sightline:... = 25.00 [25.00, 25.00]
    """
    return _score(_count(_in_step(hypotheses, gold)), seed, settings, Unseen())


def _score(
    counts: Int64[np.ndarray, "sentence 5"], seed: int, settings: Mapping[str, object], steps: Steps
) -> AlignmentScores:
    _, sure, possible, _, _ = counts.sum(axis=0).tolist()
    if sure == 0:
        raise InputError("The gold standard has no sure link, so there is nothing to score against.")
    about = {
        "sentences": len(counts),
        "sure": sure,
        "possible": possible,
        **settings,
        "bootstrap": RESAMPLES,
        "seed": seed,
    }
    values = _measure(counts.sum(axis=0, keepdims=True))
    resampled = _measure(_resample(counts, seed, steps))
    tail = (100 - COVERAGE) / 2
    return AlignmentScores(
        *(
            Score(name, float(values[name][0]), _interval(resampled[name], tail), about)
            for name in ("AER", "precision", "recall", "F1")
        )
    )


def silver_reference(forward: Alignment, reverse: Alignment) -> Alignment:
    """Return a reference for scoring where there is no gold: an aligner's two directions, as (source, target) links.

    Links of both directions are sure, links of either possible (Ding et al. 2019, section 5.1).

    >>> silver_reference(Alignment([(0, 0), (1, 1)]), Alignment([(0, 0), (1, 2)]))
    Alignment(0-0 1p1 1p2)
    """
    return Alignment(
        forward.links & reverse.links,
        forward.links | reverse.links,
        forward.source_length,
        forward.target_length,
    )


def score_files(
    hypothesis: FilePath,
    gold: FilePath,
    *,
    format: str = "pharaoh",
    gold_format: str = "pharaoh",
    base: int | None = None,
    gold_base: int | None = None,
    target_first: bool = False,
    gold_target_first: bool = False,
    texts: tuple[FilePath, FilePath | None] | None = None,
    seed: int = 1,
    steps: Steps | None = None,
) -> AlignmentScores:
    """Score an alignment file against a gold file; see `read_alignments` for what the settings mean.

    With the `texts` (source and target, or one file with both) every link is checked to lie inside its sentence.
    `steps` is told how far reading and resampling are.
    """
    steps = steps or Unseen()
    position = Position()
    if os.fspath(hypothesis) == os.fspath(gold) == STANDARD_INPUT:
        raise InputError("Hypothesis and gold cannot both be read from standard input: give one of them as a file.")
    lengths: tuple[Iterator[Lengths] | None, ...] = (None, None) if texts is None else tee(read_lengths(*texts))
    found = read_alignments(hypothesis, format, base, target_first, lengths[0], position)
    expected = read_alignments(gold, gold_format, gold_base, gold_target_first, lengths[1])

    def pairs() -> Iterator[tuple[Alignment, Alignment]]:
        sides = (hypothesis, found, format), (gold, expected, gold_format)
        for number, pair in enumerate(zip_longest(found, expected)):
            for (path, _, written_in), (longer, rest, _), side in zip(sides, sides[::-1], pair, strict=True):
                if side is None and written_in != "naacl":
                    count = number + 1 + sum(1 for _ in rest)
                    raise InputError(f"{path} has {number} sentences, {longer} has {count}: lines must correspond.")
            # A naacl file does not show that its last sentences have no links.
            one, other = (Alignment() if side is None else side for side in pair)
            yield one, other

    counts = _count(count_lines(pairs(), position, steps))
    steps.begin("Resampling", RESAMPLES * len(counts))
    return _score(counts, seed, {}, steps)


def _in_step(hypotheses: Iterable[Alignment], gold: Iterable[Alignment]) -> Iterator[tuple[Alignment, Alignment]]:
    for number, (found, expected) in enumerate(zip_longest(hypotheses, gold)):
        if found is None or expected is None:
            shorter = "hypothesis ends" if found is None else "gold standard ends"
            raise InputError(f"The {shorter} after {number} sentences, the other side goes on.")
        yield found, expected


def _count(pairs: Iterable[tuple[Alignment, Alignment]]) -> Int64[np.ndarray, "sentence 5"]:
    """Count |A|, |S|, |P|, |A and S| and |A and P| of each sentence; nothing else of it is kept."""
    rows = array("q")
    for found, expected in pairs:
        links, sure, possible = found.links, expected.links, expected.possible
        rows.extend((len(links), len(sure), len(possible), len(links & sure), len(links & possible)))
    return np.array(rows, dtype=np.int64).reshape(-1, 5)


def _resample(counts: Int64[np.ndarray, "sentence 5"], seed: int, steps: Steps) -> Int64[np.ndarray, "resample 5"]:
    """Sum the counts of corpora drawn with replacement."""
    generator = np.random.default_rng(seed)
    totals = np.empty((RESAMPLES, counts.shape[1]), dtype=np.int64)
    for resample in range(RESAMPLES):
        drawn = generator.integers(len(counts), size=len(counts))
        totals[resample] = np.bincount(drawn, minlength=len(counts)) @ counts
        steps.advance(len(counts))
    return totals


def _measure(totals: Int64[np.ndarray, "corpus 5"]) -> dict[str, Float64[np.ndarray, " corpus"]]:
    """Compute the four scores; a share of nothing is 0."""
    links, sure, _, links_sure, links_possible = totals.T
    precision = _percent(links_possible, links)
    recall = _percent(links_sure, sure)
    return {
        "AER": 100.0 - _percent(links_sure + links_possible, links + sure),
        "precision": precision,
        "recall": recall,
        "F1": _percent(2 * precision * recall / 100, precision + recall),
    }


def _percent(part: np.ndarray, whole: np.ndarray) -> Float64[np.ndarray, " corpus"]:
    return 100.0 * np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


def _interval(values: Float64[np.ndarray, " resample"], tail: float) -> tuple[float, float]:
    low, high = np.percentile(values, [tail, 100 - tail])
    return float(low), float(high)
