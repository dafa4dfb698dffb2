"""IBM Model 1 and the diagonal model: which source word a target word comes from depends on positions alone.

- `ibm1`: Brown et al. 1993, with a NULL word, maximum likelihood.
- `diagonal`: Dyer, Chahuneau and Smith 2013 ("A simple, fast, and effective reparameterization of IBM Model 2"), the
  model of fast_align: a prior for the diagonal whose tension is learned, NULL with probability 0.08, and
  variational Bayes with a sparse Dirichlet prior (alpha 0.01) on the translation probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from numba import prange

from sightline.alignment.bitext import Bitext
from sightline.alignment.diagonal import bin_positions, fit_tension, normalisers
from sightline.alignment.expectation import (
    Occurrences,
    Shares,
    estimate,
    find_cooccurrences,
    find_occurrences,
    gather_evidence,
    replace_rows,
    share_work,
    weigh_evidence,
)
from sightline.alignment.lexicon import Lexicon, find_value
from sightline.alignment.one_way import UNSEEN, Posteriors, StatisticalAligner
from sightline.compilation import begin_parallel_loops, njit

ROUNDS = 5
INITIAL_TENSION = 4.0
DIAGONAL_NULL = 0.08
DIAGONAL_ALPHA = 0.01


@dataclass(frozen=True, eq=False)
class PositionAligner(StatisticalAligner):
    """IBM Model 1, whose tension is 0, or the diagonal model."""

    tension: float
    null_prior: float | None  # None: NULL counts as one more source word

    def _fill(self, text: Bitext, posteriors: Posteriors) -> None:
        _fill_posteriors(
            text.source.ids,
            text.source.starts,
            text.target.ids,
            text.target.starts,
            self.lexicon.starts,
            self.lexicon.targets,
            self.lexicon.values,
            self.null,
            _null_priors(self.null_prior, text.source.lengths),
            self.tension,
            posteriors.starts,
            posteriors.cells,
        )


def ignore_pass(pairs: int) -> None:
    """Take no notice of how far the training is."""


def train_ibm1(
    bitext: Bitext, iterations: int = ROUNDS, on_pass: Callable[[int], None] = ignore_pass
) -> PositionAligner:
    """Train IBM Model 1 in one direction: every source word, and NULL, is as likely as any other.

    `on_pass` is told after each pass how many pairs it went through.
    """
    return _train(bitext, iterations, 0.0, None, 0.0, on_pass)


def train_diagonal(
    bitext: Bitext, iterations: int = ROUNDS, on_pass: Callable[[int], None] = ignore_pass
) -> PositionAligner:
    """Train the diagonal model in one direction, learning its tension."""
    return _train(bitext, iterations, INITIAL_TENSION, DIAGONAL_NULL, DIAGONAL_ALPHA, on_pass)


class Table(NamedTuple):
    """What a model of one direction has learned of t(y | x) and t(y | NULL), and how its text is laid out for that.

    Row x of the table is `probabilities[starts[x]:starts[x + 1]]`, of the words `targets[starts[x]:starts[x + 1]]`.
    """

    occurrences: Occurrences
    shares: Shares
    starts: Int64[np.ndarray, " word_1"]
    targets: Int32[np.ndarray, " entry"]
    probabilities: Float32[np.ndarray, " entry"]
    null: Float64[np.ndarray, " word"]

    def lexicon(self, bitext: Bitext) -> Lexicon:
        """Keep the entries that are not negligible."""
        vocabularies = bitext.source.vocabulary, bitext.target.vocabulary
        return Lexicon(*vocabularies, self.starts, self.targets, self.probabilities).pruned(UNSEEN)


def build_table(bitext: Bitext) -> Table:
    """Lay out a text, with uniform probabilities.

    Memory: 8 bytes for each pair of words that ever met, 24 for each source and 24 for each target word of the text.
    """
    begin_parallel_loops("A statistical aligner")
    occurrences = find_occurrences(bitext)
    shares = share_work(bitext, occurrences)
    starts, targets = find_cooccurrences(bitext, occurrences, shares)
    vocabulary = len(bitext.target.vocabulary)
    probabilities = np.full(len(targets), 1 / vocabulary, np.float32)
    return Table(occurrences, shares, starts, targets, probabilities, np.full(vocabulary, 1 / vocabulary))


def fit_table(
    bitext: Bitext,
    table: Table,
    iterations: int,
    tension: float,
    null_prior: float | None,
    alpha: float,
    on_pass: Callable[[int], None],
) -> tuple[float, tuple[float, ...]]:
    """Run expectation-maximisation, in place; return the tension, which is learned unless it is 0, and likelihoods."""
    target, vocabulary = bitext.target, len(bitext.target.vocabulary)
    bins = bin_positions(bitext)
    null_priors = _null_priors(null_prior, bins.source_length)
    evidence, distance = np.empty(len(target.ids)), np.empty(len(target.ids))
    log_likelihoods = []
    for _ in range(iterations):
        known = (target.ids, *table[:-1], vocabulary, tension)
        gather_evidence(*known, evidence, distance)
        word_priors = (1 - null_priors) / normalisers(bins, tension)
        null_counts, bin_weights = np.zeros(vocabulary), np.zeros(len(bins.position))
        log_likelihood, expected_distance = weigh_evidence(
            target.ids,
            bins.of_token,
            word_priors,
            null_priors,
            table.null,
            evidence,
            distance,
            null_counts,
            bin_weights,
        )
        log_likelihoods.append(log_likelihood)
        replace_rows(*known, evidence, alpha)
        estimate(null_counts, alpha, table.null)
        if tension:
            tension = fit_tension(bins, bin_weights, expected_distance, tension)
        on_pass(len(bitext))
    return tension, tuple(log_likelihoods)


def _train(
    bitext: Bitext,
    iterations: int,
    tension: float,
    null_prior: float | None,
    alpha: float,
    on_pass: Callable[[int], None],
) -> PositionAligner:
    """Run expectation-maximisation from uniform translation probabilities."""
    table = build_table(bitext)
    tension, log_likelihoods = fit_table(bitext, table, iterations, tension, null_prior, alpha, on_pass)
    null = table.null.astype(np.float32)
    return PositionAligner(table.lexicon(bitext), null, log_likelihoods, tension, null_prior)


def _null_priors(null_prior: float | None, source_lengths: Int64[np.ndarray, " pair"]) -> Float64[np.ndarray, " pair"]:
    """Return p0 of each pair."""
    if null_prior is None:
        return 1.0 / (source_lengths + 1.0)
    return np.full(len(source_lengths), null_prior)


@njit(parallel=True, cache=True)
@no_type_check
def _fill_posteriors(
    source_ids,
    source_starts,
    target_ids,
    target_starts,
    row_starts,
    row_targets,
    probabilities,
    null,
    null_priors,
    tension,
    cell_starts,
    cells,
):
    for pair in prange(len(source_starts) - 1):
        xs = source_ids[source_starts[pair] : source_starts[pair + 1]]
        ys = target_ids[target_starts[pair] : target_starts[pair + 1]]
        n, m = len(xs), len(ys)
        matrix = cells[cell_starts[pair] : cell_starts[pair + 1]].reshape(m, n + 1)
        for i in range(n):  # row by row of the table, which then stays in the cache
            for j in range(m):
                matrix[j, i] = max(find_value(row_starts, row_targets, probabilities, xs[i], ys[j]), UNSEEN)
        for j in range(m):
            row = matrix[j]
            normaliser = 0.0
            for i in range(n):
                weight = math.exp(-tension * abs((i + 1) / n - (j + 1) / m))
                normaliser += weight
                row[i] *= weight
            for i in range(n):
                row[i] *= (1 - null_priors[pair]) / normaliser
            row[n] = null_priors[pair] * max(null[ys[j]] if ys[j] >= 0 else 0.0, UNSEEN)
            row /= row.sum()
