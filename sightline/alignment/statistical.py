"""Statistical word aligners: trained once on parallel text, saved, and used on any sentences.

- `ibm1`, `diagonal`: see `position_model`;
- `hmm`: see `hmm` and `agreement`.

A model aligns each target word to one source word or to none; `TwoWayAligner` holds a model for each direction and
symmetrises. The confidence of a link is its joined posterior, the geometric mean of those of the two directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from sightline.alignment.agreement import IBM1_ROUNDS, train_hmm
from sightline.alignment.agreement import ROUNDS as HMM_ROUNDS
from sightline.alignment.bitext import Bitext, LeftOut, Words
from sightline.alignment.columns import Alignments, each_alignment
from sightline.alignment.lexicon import number_words
from sightline.alignment.links import Alignment
from sightline.alignment.one_way import (
    CELLS_AT_ONCE,
    PAIRS_AT_ONCE,
    Posteriors,
    StatisticalAligner,
    chunks,
    join_posteriors,
    link_best,
    rate_links,
)
from sightline.alignment.position_model import ROUNDS, ignore_pass, train_diagonal, train_ibm1
from sightline.alignment.symmetrization import DEFAULT_RULE, join_columns
from sightline.errors import unknown_name


@dataclass(frozen=True, eq=False)
class TwoWayAligner:
    """A model for each direction: `forward` explains target words by source words, `backward` the reverse."""

    forward: StatisticalAligner
    backward: StatisticalAligner

    def align(self, pairs: Iterable[tuple[Words, Words]], rule: str = DEFAULT_RULE) -> Iterator[Alignment]:
        """Align pairs in both directions and symmetrise them; any number of pairs, in order, as they come."""
        return each_alignment(self.align_in_columns(pairs, rule))

    def align_in_columns(self, pairs: Iterable[tuple[Words, Words]], rule: str = DEFAULT_RULE) -> Iterator[Alignments]:
        """Align pairs as `align` does; many of them at a time make up a set of columns."""
        for chunk in chunks(pairs):
            yield self._align(self.forward.number(chunk), rule)

    def align_bitext(self, bitext: Bitext, rule: str = DEFAULT_RULE) -> Iterator[Alignments]:
        """Align all pairs of a corpus, without looking up its words again; those left out of it have no links."""
        source, target = (
            side
            if side.vocabulary is vocabulary
            else side.renumbered(vocabulary, number_words(side.vocabulary, numbers))
            for side, vocabulary, numbers in (
                (bitext.source, self.forward.lexicon.source_vocabulary, self.forward.lexicon.source_numbers),
                (bitext.target, self.forward.lexicon.target_vocabulary, self.forward.lexicon.target_numbers),
            )
        )
        cells = np.cumsum(source.lengths * target.lengths)
        begin = 0
        while begin < len(bitext):
            done = cells[begin - 1] if begin else 0
            end = min(begin + PAIRS_AT_ONCE, int(np.searchsorted(cells, done + CELLS_AT_ONCE)) + 1, len(bitext))
            aligned = self._align(Bitext(source.part(begin, end), target.part(begin, end)), rule)
            yield _put_back(aligned, begin, bitext.left_out, last=end == len(bitext))
            begin = end

    def posteriors(self, pairs: Iterable[tuple[Words, Words]]) -> Iterator[Float64[np.ndarray, "target source"]]:
        """Yield, for each pair, the joined posteriors: sqrt(p(target word j from i) p(source word i from j)).

        Those of one direction are `forward.posteriors(pairs)` and, of pairs (target, source), `backward.posteriors`.
        """
        for chunk in chunks(pairs):
            text = self.forward.number(chunk)
            joined, starts = join_posteriors(text, *self._posteriors(text))
            for (begin, end), (source, target) in zip(pairwise(starts), chunk, strict=True):
                yield joined[begin:end].reshape(len(target), len(source) + 1)[:, :-1]

    def _posteriors(self, text: Bitext) -> tuple[Posteriors, Posteriors]:
        """Return the posteriors of both directions of a text whose words are numbered as in the lexicons."""
        return self.forward.find_posteriors(text), self.backward.find_posteriors(text.flipped())

    def _align(self, text: Bitext, rule: str) -> Alignments:
        """Align a text whose words are numbered as in the lexicons."""
        forward, backward = self._posteriors(text)
        if self.forward.joined_null is None:
            links = link_best(text, forward), link_best(text.flipped(), backward)
            joined = join_posteriors(text, forward, backward)
        else:
            joined = join_posteriors(text, forward, backward, self.forward.joined_null)
            links = link_best(text, joined), link_best(text.flipped(), backward)
        return rate_links(join_columns(*links, rule), joined)


def train_aligner(
    bitext: Bitext,
    model: str = "diagonal",
    iterations: int | None = None,
    on_pass: Callable[[int], None] = ignore_pass,
) -> TwoWayAligner:
    """Train a model in both directions; unless `iterations` says otherwise, for as many rounds as suit it.

    `on_pass` is told now and then how many pairs were gone through: each as often as `count_passes` says in the end.

    >>> from sightline.alignment.bitext import build_bitext
    >>> pairs = [(["the", "house"], ["la", "maison"]), (["the", "door"], ["la", "porte"])]
    >>> list(train_aligner(build_bitext(pairs), "ibm1").align([(["house"], ["maison"])], "intersection"))
    [Alignment(0-0:0.87)]
    """
    if model not in ALIGNERS:
        raise unknown_name("statistical aligner", model, ALIGNERS)
    return ALIGNERS[model](bitext, _rounds(model, iterations), on_pass)


def count_passes(model: str, iterations: int | None = None) -> int:
    """Return how often training goes through a text, both directions counted."""
    return 2 * (_rounds(model, iterations) + (IBM1_ROUNDS if model == "hmm" else 0))


def _rounds(model: str, iterations: int | None) -> int:
    if iterations is not None:
        return iterations
    return HMM_ROUNDS if model == "hmm" else ROUNDS


def _train_ibm1(bitext: Bitext, iterations: int, on_pass: Callable[[int], None]) -> TwoWayAligner:
    return TwoWayAligner(*(train_ibm1(side, iterations, on_pass) for side in (bitext, bitext.flipped())))


def _train_diagonal(bitext: Bitext, iterations: int, on_pass: Callable[[int], None]) -> TwoWayAligner:
    return TwoWayAligner(*(train_diagonal(side, iterations, on_pass) for side in (bitext, bitext.flipped())))


def _train_hmm(bitext: Bitext, iterations: int, on_pass: Callable[[int], None]) -> TwoWayAligner:
    return TwoWayAligner(*train_hmm(bitext, iterations, on_pass=on_pass))


ALIGNERS: dict[str, Callable[[Bitext, int, Callable[[int], None]], TwoWayAligner]] = {
    "ibm1": _train_ibm1,
    "diagonal": _train_diagonal,
    "hmm": _train_hmm,
}


def _put_back(alignments: Alignments, begin: int, left_out: Sequence[LeftOut], last: bool) -> Alignments:
    """Insert pairs that were left out of a corpus among alignments of its pairs from `begin` on, without links."""
    end = begin + len(alignments) + last
    # Of the pairs before the k-th that was left out, k were left out too.
    places = np.array([pair.number - k for k, pair in enumerate(left_out)], np.int64)
    some = slice(*np.searchsorted(places, [begin, end]))
    at = places[some] - begin
    return replace(
        alignments,
        starts=np.insert(alignments.starts, at, alignments.starts[at]),
        source_lengths=np.insert(alignments.source_lengths, at, [pair.source_length for pair in left_out[some]]),
        target_lengths=np.insert(alignments.target_lengths, at, [pair.target_length for pair in left_out[some]]),
    )
