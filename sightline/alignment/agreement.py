"""Training hidden Markov models of both directions to agree (Liang, Taskar and Klein 2006, "Alignment by agreement").

Each round computes, for every pair of sentences, the posteriors of both directions, and counts a link with the product
of the two: a rare word that one direction links to everything it cannot explain does not get those
counts, since the other direction has better explanations. What a word's own fertility would say is said by the words
of the other side. NULL and the jumps are counted by each direction for itself.

The translation probabilities start from a few rounds of IBM Model 1 (from the diagonal model, alignments were no
better), and have a sparse Dirichlet prior, as those of the diagonal model. The text is gone through in slabs, so that
only the posteriors of one slab are held. Source words are divided among the threads, and so are sentences, whose jumps
are counted by blocks of sentences that do not depend on the number of threads: results are the same to the last bit on
any number of cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import no_type_check

import numpy as np
from jaxtyping import Float32, Float64, Int64
from numba import prange

from sightline.alignment.bitext import Bitext
from sightline.alignment.expectation import estimate
from sightline.alignment.forward_backward import JUMPS, REACH, forward_backward
from sightline.alignment.hmm import HmmAligner
from sightline.alignment.one_way import UNSEEN
from sightline.alignment.position_model import DIAGONAL_ALPHA, Table, build_table, fit_table, ignore_pass
from sightline.compilation import njit

NULL_PRIOR = 0.1
IBM1_ROUNDS, ROUNDS = 4, 3
CELLS_IN_SLAB = 8_000_000
BLOCKS = 64


@dataclass(frozen=True)
class HmmSettings:
    """How hidden Markov models are trained."""

    alpha: float = DIAGONAL_ALPHA  # of the prior on translation probabilities; 0: maximum likelihood
    jump_alpha: float = 0.5  # added to the count of each jump
    agree: bool = True  # or each direction for itself


class _Direction:
    """A model in training, and what it counts in a round."""

    def __init__(self, bitext: Bitext, settings: HmmSettings, on_pass: Callable[[int], None]) -> None:
        self.bitext, self.settings = bitext, settings
        self.table: Table = build_table(bitext)
        fit_table(bitext, self.table, IBM1_ROUNDS, 0.0, None, 0.0, on_pass)
        distance = np.arange(-REACH, REACH + 1)
        self.jumps = _normalized(np.append(np.exp(-np.abs(distance - 1) / 2), 0.0) + 1e-4)
        self.counts = np.zeros(len(self.table.targets), np.float32)
        self.log_likelihoods: list[float] = []
        self.begin()

    def begin(self) -> None:
        """Count from zero."""
        self.counts[:] = 0.0
        self.null_counts = np.zeros(len(self.table.null))
        self.jump_counts = np.zeros(JUMPS)
        self.log_likelihood = 0.0

    def fill(self, slab: _Slab, cells: Float32[np.ndarray, " cell"]) -> Float64[np.ndarray, " token"]:
        """Fill in t(y_j | x_i) of the pairs of a slab; return t(y_j | NULL)."""
        tokens, cell_of_pair = slab.tokens(self.bitext)
        ids = self.bitext.target.ids
        occurrences, shares, starts, targets, probabilities, null = self.table
        where = (ids, occurrences, shares, starts, targets, tokens.start, tokens.stop, cell_of_pair)
        _fill_emissions(*where, probabilities, len(null), np.float32(UNSEEN), cells)
        return np.maximum(null[ids[tokens]], UNSEEN)

    def count(self, slab: _Slab, cells: Float32[np.ndarray, " cell"], null: Float64[np.ndarray, " token"]) -> None:
        """Count links and NULL with the posteriors of a slab."""
        tokens, cell_of_pair = slab.tokens(self.bitext)
        ids = self.bitext.target.ids
        occurrences, shares, starts, targets, _, of_null = self.table
        where = (ids, occurrences, shares, starts, targets, tokens.start, tokens.stop, cell_of_pair)
        _gather_counts(*where, len(of_null), cells, self.counts)
        self.null_counts += np.bincount(ids[tokens], null, len(of_null))

    def finish(self) -> None:
        """Estimate the parameters anew."""
        self.log_likelihoods.append(self.log_likelihood / len(self.bitext.target.ids))
        alpha, table = self.settings.alpha, self.table
        _estimate_rows(table.shares, table.starts, self.counts, alpha, table.probabilities)
        estimate(self.null_counts, alpha, table.null)
        self.jumps = _normalized(self.jump_counts + self.settings.jump_alpha)

    def build(self) -> HmmAligner:
        """Return what was learned."""
        null, likelihoods = self.table.null.astype(np.float32), tuple(self.log_likelihoods)
        return HmmAligner(self.table.lexicon(self.bitext), null, likelihoods, self.jumps, NULL_PRIOR)


@dataclass(frozen=True)
class _Slab:
    """Some pairs that follow each other, and where the cells of each begin, counted from the slab's first."""

    begin: int
    end: int
    cell_starts: Int64[np.ndarray, " pair_1"]

    def tokens(self, bitext: Bitext) -> tuple[slice, Int64[np.ndarray, " token"]]:
        """Return the target words of the slab, and at the first word of each pair, where its cells begin."""
        starts = bitext.target.starts[self.begin : self.end + 1]
        cell_of_pair = np.zeros(starts[-1] - starts[0], np.int64)
        cell_of_pair[starts[:-1] - starts[0]] = self.cell_starts[:-1]
        return slice(int(starts[0]), int(starts[-1])), cell_of_pair


def train_hmm(
    bitext: Bitext,
    iterations: int = ROUNDS,
    settings: HmmSettings | None = None,
    on_pass: Callable[[int], None] = ignore_pass,
) -> tuple[HmmAligner, HmmAligner]:
    """Train a model for each direction; `on_pass` is told how many pairs were gone through, in either direction.

    Memory: that of two diagonal models, 8 bytes more for each pair of words that ever met, and 64 MB.
    """
    settings = settings or HmmSettings()
    forward, backward = (_Direction(side, settings, on_pass) for side in (bitext, bitext.flipped()))
    slabs = list(_cut(bitext))
    largest = max(slab.cell_starts[-1] for slab in slabs)
    ahead, back = np.empty(largest, np.float32), np.empty(largest, np.float32)
    for _ in range(iterations):
        forward.begin()
        backward.begin()
        for slab in slabs:
            _count_slab(slab, forward, backward, ahead, back)
            on_pass(2 * (slab.end - slab.begin))
        forward.finish()
        backward.finish()
    return forward.build(), backward.build()


def _count_slab(
    slab: _Slab,
    forward: _Direction,
    backward: _Direction,
    ahead: Float32[np.ndarray, " cell"],
    back: Float32[np.ndarray, " cell"],
) -> None:
    null_ahead, null_back = forward.fill(slab, ahead), backward.fill(slab, back)
    source, target = (side.part(slab.begin, slab.end).starts for side in (forward.bitext.source, forward.bitext.target))
    jump_counts, log_likelihoods = np.zeros((2, BLOCKS, JUMPS)), np.zeros((2, BLOCKS))
    _pass_both_ways(
        (source, target, slab.cell_starts),
        (ahead, null_ahead, forward.jumps),
        (back, null_back, backward.jumps),
        NULL_PRIOR,
        forward.settings.agree,
        jump_counts,
        log_likelihoods,
    )
    directions = (forward, ahead, null_ahead), (backward, back, null_back)
    for number, (direction, cells, null) in enumerate(directions):
        direction.count(slab, cells, null)
        direction.jump_counts += jump_counts[number].sum(axis=0)
        direction.log_likelihood += float(log_likelihoods[number].sum())


def _cut(bitext: Bitext) -> Iterator[_Slab]:
    """Cut a corpus into slabs."""
    cells = np.concatenate([[0], np.cumsum(bitext.source.lengths * bitext.target.lengths)])
    edges = np.searchsorted(cells, np.arange(0, cells[-1], CELLS_IN_SLAB))
    for begin, end in pairwise(np.unique(np.append(edges, len(bitext))).tolist()):
        yield _Slab(begin, end, cells[begin : end + 1] - cells[begin])


def _normalized(weights: Float64[np.ndarray, " jump"]) -> Float64[np.ndarray, " jump"]:
    return weights / weights.sum()


@njit(parallel=True, cache=True)
@no_type_check
def _fill_emissions(
    target_ids,
    occurrences,
    shares,
    row_starts,
    row_targets,
    begin,
    end,
    cell_of_pair,
    probabilities,
    vocabulary,
    unseen,
    cells,
):
    """Fill in max(t(y_j | x_i), unseen) of every pair, by target and then by source word."""
    for group in prange(len(shares.group_starts) - 1):
        row = np.zeros(vocabulary, np.float32)
        for rank in range(shares.group_starts[group], shares.group_starts[group + 1]):
            word = shares.words[rank]
            low, high = _find_between(occurrences, word, begin, end)
            if low == high:
                continue
            for entry in range(row_starts[word], row_starts[word + 1]):
                row[row_targets[entry]] = max(probabilities[entry], unseen)
            for k in range(low, high):
                start, n = occurrences.target_start[k], occurrences.source_length[k]
                cell = cell_of_pair[start - begin] + occurrences.position[k] - 1
                for token in range(start, start + occurrences.target_length[k]):
                    cells[cell] = row[target_ids[token]]
                    cell += n


@njit(parallel=True, cache=True)
@no_type_check
def _gather_counts(
    target_ids, occurrences, shares, row_starts, row_targets, begin, end, cell_of_pair, vocabulary, cells, counts
):
    """Add the posteriors of every pair, which lie as the emissions did, to the counts of their words."""
    for group in prange(len(shares.group_starts) - 1):
        mass = np.zeros(vocabulary)
        for rank in range(shares.group_starts[group], shares.group_starts[group + 1]):
            word = shares.words[rank]
            low, high = _find_between(occurrences, word, begin, end)
            if low == high:
                continue
            for k in range(low, high):
                start, n = occurrences.target_start[k], occurrences.source_length[k]
                cell = cell_of_pair[start - begin] + occurrences.position[k] - 1
                for token in range(start, start + occurrences.target_length[k]):
                    mass[target_ids[token]] += cells[cell]
                    cell += n
            for entry in range(row_starts[word], row_starts[word + 1]):
                counts[entry] += mass[row_targets[entry]]
                mass[row_targets[entry]] = 0.0


@njit(cache=True)
@no_type_check
def _find_between(occurrences, word, begin, end):
    """Find the occurrences of a word whose target sentences begin in a range of the text."""
    first = occurrences.first[word]
    starts = occurrences.target_start[first : occurrences.first[word + 1]]
    return first + np.searchsorted(starts, begin), first + np.searchsorted(starts, end)


@njit(parallel=True, cache=True)
@no_type_check
def _pass_both_ways(slab, forward, backward, null_prior, agree, jump_counts, log_likelihoods):
    """Replace emissions by posteriors in both directions, or each by the product of the two."""
    source_starts, target_starts, cell_starts = slab
    ahead, null_ahead, jumps_ahead = forward
    back, null_back, jumps_back = backward
    pairs, blocks = len(source_starts) - 1, jump_counts.shape[1]
    for block in prange(blocks):
        for pair in range(pairs * block // blocks, pairs * (block + 1) // blocks):
            sources = slice(source_starts[pair], source_starts[pair + 1])
            targets = slice(target_starts[pair], target_starts[pair + 1])
            n, m = sources.stop - sources.start, targets.stop - targets.start
            f = ahead[cell_starts[pair] : cell_starts[pair + 1]].reshape(m, n)
            b = back[cell_starts[pair] : cell_starts[pair + 1]].reshape(n, m)
            of_null = null_ahead[targets]
            log_likelihoods[0, block] += forward_backward(
                f, of_null, jumps_ahead, null_prior, f, of_null, jump_counts[0, block]
            )
            of_null = null_back[sources]
            log_likelihoods[1, block] += forward_backward(
                b, of_null, jumps_back, null_prior, b, of_null, jump_counts[1, block]
            )
            if agree:
                for j in range(m):
                    for i in range(n):
                        f[j, i] *= b[i, j]
                        b[i, j] = f[j, i]


@njit(parallel=True, cache=True)
@no_type_check
def _estimate_rows(shares, row_starts, counts, alpha, probabilities):
    for group in prange(len(shares.group_starts) - 1):
        for rank in range(shares.group_starts[group], shares.group_starts[group + 1]):
            word = shares.words[rank]
            row = slice(row_starts[word], row_starts[word + 1])
            estimate(counts[row].astype(np.float64), alpha, probabilities[row])
