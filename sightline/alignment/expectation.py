"""Expectation-maximisation for word-to-word translation models, on all cores, in two passes a round.

A model of this family generates each target word y_j of a pair from one source word x_i, or from NULL:

    p(y_j) = p0 t(y_j | NULL) + sum_i (1 - p0) d(i | j, n, m) t(y_j | x_i)

for n source and m target words, where d(i | j, n, m) is proportional to exp(-tension * |i/n - j/m|), i and j
counted from 1 (Dyer, Chahuneau and Smith 2013, eq. 1); IBM Model 1 has tension 0 (Brown et al. 1993).

Row x of the table t lists the target words that x ever met, in increasing order. The first pass goes over blocks
of sentences and leaves, for each target word, the sum over i; the second goes over the source words, gathers the
expected counts of one row, and replaces the row at once. So no two threads write to one place, results are the
same to the last bit on any number of cores, and no table of counts is kept.
"""

from __future__ import annotations

import math
from typing import NamedTuple, no_type_check

import numba
import numpy as np
from jaxtyping import Float, Float32, Float64, Int32, Int64
from numba import prange

from sightline.alignment.bitext import Bitext
from sightline.compilation import njit

NEGLIGIBLE = 1e-30  # a translation probability below this is taken as zero: nothing above it can tell


class Occurrences(NamedTuple):
    """Where each source word occurs: those of word w are entries `first[w]:first[w + 1]`, in corpus order."""

    first: Int64[np.ndarray, " word_1"]
    position: Int32[np.ndarray, " occurrence"]  # i, counted from 1
    source_length: Int32[np.ndarray, " occurrence"]
    target_length: Int32[np.ndarray, " occurrence"]
    target_start: Int64[np.ndarray, " occurrence"]  # where the words of the pair's target sentence begin


class Shares(NamedTuple):
    """How the work is divided: sentences in blocks for the first pass, source words in groups for the second."""

    block_starts: Int64[np.ndarray, " block_1"]  # as positions in the target text
    words: Int32[np.ndarray, " word"]
    group_starts: Int64[np.ndarray, " group_1"]


def find_occurrences(bitext: Bitext) -> Occurrences:
    """List the occurrences of every source word with what the passes need to know of each."""
    source, target = bitext.source, bitext.target
    first = np.zeros(len(source.vocabulary) + 1, np.int64)
    np.cumsum(np.bincount(source.ids, minlength=len(source.vocabulary)), out=first[1:])
    return Occurrences(first, *_scatter_occurrences(source.ids, source.starts, target.starts, first))


@njit(cache=True)
@no_type_check
def _scatter_occurrences(ids, source_starts, target_starts, first):
    free = first[:-1].copy()
    position = np.empty(len(ids), np.int32)
    source_length = np.empty(len(ids), np.int32)
    target_length = np.empty(len(ids), np.int32)
    target_start = np.empty(len(ids), np.int64)
    for sentence in range(len(source_starts) - 1):
        begin, end = source_starts[sentence], source_starts[sentence + 1]
        for token in range(begin, end):
            slot = free[ids[token]]
            free[ids[token]] += 1
            position[slot] = token - begin + 1
            source_length[slot] = end - begin
            target_length[slot] = target_starts[sentence + 1] - target_starts[sentence]
            target_start[slot] = target_starts[sentence]
    return position, source_length, target_length, target_start


def share_work(bitext: Bitext, occurrences: Occurrences) -> Shares:
    """Divide sentences and source words among the threads, by the number of word pairs that they hold."""
    threads = numba.get_num_threads()
    cells = np.concatenate([[0], np.cumsum(bitext.source.lengths * bitext.target.lengths)])
    blocks = np.searchsorted(cells, np.linspace(0, cells[-1], threads + 1))
    block_starts = bitext.target.starts[blocks]

    running = np.concatenate([[0], np.cumsum(occurrences.target_length, dtype=np.int64)])
    work = np.diff(running[occurrences.first])
    heaviest_first = np.argsort(-work, kind="stable")
    rank = np.arange(len(work))
    there_and_back = np.where(rank // threads % 2, threads - 1 - rank % threads, rank % threads)
    words = heaviest_first[np.argsort(there_and_back, kind="stable")].astype(np.int32)
    group_starts = np.concatenate([[0], np.cumsum(np.bincount(there_and_back, minlength=threads))])
    return Shares(block_starts, words, group_starts)


def find_cooccurrences(
    bitext: Bitext, occurrences: Occurrences, shares: Shares
) -> tuple[Int64[np.ndarray, " word_1"], Int32[np.ndarray, " entry"]]:
    """List the target words that each source word ever meets: where its row starts, and the sorted rows."""
    vocabulary = len(bitext.target.vocabulary)
    lengths = np.zeros(len(occurrences.first) - 1, np.int64)
    _measure_rows(bitext.target.ids, occurrences, shares, vocabulary, lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    targets = np.empty(starts[-1], np.int32)
    _fill_rows(bitext.target.ids, occurrences, shares, vocabulary, starts, targets)
    return starts, targets


@njit(parallel=True, cache=True)
@no_type_check
def _measure_rows(target_ids, occurrences, shares, vocabulary, lengths):
    for group in prange(len(shares.group_starts) - 1):
        last_met_by = np.full(vocabulary, -1, np.int32)
        for rank in range(shares.group_starts[group], shares.group_starts[group + 1]):
            word = shares.words[rank]
            size = 0
            for k in range(occurrences.first[word], occurrences.first[word + 1]):
                begin = occurrences.target_start[k]
                for token in range(begin, begin + occurrences.target_length[k]):
                    if last_met_by[target_ids[token]] != word:
                        last_met_by[target_ids[token]] = word
                        size += 1
            lengths[word] = size


@njit(parallel=True, cache=True)
@no_type_check
def _fill_rows(target_ids, occurrences, shares, vocabulary, starts, targets):
    for group in prange(len(shares.group_starts) - 1):
        last_met_by = np.full(vocabulary, -1, np.int32)
        for rank in range(shares.group_starts[group], shares.group_starts[group + 1]):
            word = shares.words[rank]
            free = starts[word]
            for k in range(occurrences.first[word], occurrences.first[word + 1]):
                begin = occurrences.target_start[k]
                for token in range(begin, begin + occurrences.target_length[k]):
                    if last_met_by[target_ids[token]] != word:
                        last_met_by[target_ids[token]] = word
                        targets[free] = target_ids[token]
                        free += 1
            targets[starts[word] : free].sort()


@njit(parallel=True, cache=True)
@no_type_check
def gather_evidence(
    target_ids: Int32[np.ndarray, " token"],
    occurrences: Occurrences,
    shares: Shares,
    row_starts: Int64[np.ndarray, " word_1"],
    row_targets: Int32[np.ndarray, " entry"],
    probabilities: Float32[np.ndarray, " entry"],
    vocabulary: int,
    tension: float,
    evidence: Float64[np.ndarray, " token"],
    distance: Float64[np.ndarray, " token"],
) -> None:
    """Sum w_ij t(y_j | x_i) over i into `evidence`, and the same times |i/n - j/m| into `distance`.

    w_ij = exp(-tension * |i/n - j/m|); its normaliser depends on j, n and m alone and is left to the caller.
    """
    growth = _growth(occurrences, tension)
    for block in prange(len(shares.block_starts) - 1):
        begin, end = shares.block_starts[block], shares.block_starts[block + 1]
        evidence[begin:end] = 0.0
        distance[begin:end] = 0.0
        row = np.empty(vocabulary, np.float32)
        for word in range(len(occurrences.first) - 1):
            starts = occurrences.target_start[occurrences.first[word] : occurrences.first[word + 1]]
            low = occurrences.first[word] + np.searchsorted(starts, begin)
            high = occurrences.first[word] + np.searchsorted(starts, end)
            if low == high:
                continue
            for entry in range(row_starts[word], row_starts[word + 1]):
                row[row_targets[entry]] = probabilities[entry]
            for k in range(low, high):
                weight, peak, away, step = _start(occurrences, k, tension)
                start, m = occurrences.target_start[k], occurrences.target_length[k]
                factor = growth[m]
                for token in range(start, start + peak):
                    share = weight * row[target_ids[token]]
                    evidence[token] += share
                    distance[token] += share * away
                    weight *= factor
                    away -= step
                weight, factor, away = 1.0 / weight, 1.0 / factor, -away
                for token in range(start + peak, start + m):
                    share = weight * row[target_ids[token]]
                    evidence[token] += share
                    distance[token] += share * away
                    weight *= factor
                    away += step


@njit(cache=True)
@no_type_check
def _growth(occurrences, tension):
    """Return w_i,j+1 / w_ij before the diagonal, for each number m of target words: exp(tension / m)."""
    growth = np.ones(occurrences.target_length.max() + 1)
    for m in range(1, len(growth)):
        growth[m] = math.exp(tension * (1.0 / m))
    return growth


@njit(inline="always")
@no_type_check
def _start(occurrences, k, tension):
    """Return w_i1, how many target words lie at or before the diagonal, |i/n - 1/m| signed, and 1/m."""
    i, n, m = occurrences.position[k], occurrences.source_length[k], occurrences.target_length[k]
    step = 1.0 / m
    away = i / n - step
    return math.exp(-tension * away), i * m // n, away, step


@njit(cache=True)
@no_type_check
def weigh_evidence(
    target_ids: Int32[np.ndarray, " token"],
    bin_of_token: Int32[np.ndarray, " token"],
    word_priors: Float64[np.ndarray, " bin"],
    null_priors: Float64[np.ndarray, " bin"],
    null: Float64[np.ndarray, " word"],
    evidence: Float64[np.ndarray, " token"],
    distance: Float64[np.ndarray, " token"],
    null_counts: Float64[np.ndarray, " word"],
    bin_weights: Float64[np.ndarray, " bin"],
) -> tuple[float, float]:
    """Turn the evidence for each target word, in place, into the factor that makes posteriors of its links.

    The prior of link (i, j) is w_ij times the word prior of j's bin. Gathers the expected counts of NULL and, for
    each bin, those of the other words; returns the mean log-likelihood and the expected sum of |i/n - j/m|.
    """
    log_likelihood, expected_distance = 0.0, 0.0
    for token in range(len(target_ids)):
        word, bin = target_ids[token], bin_of_token[token]
        of_null = null_priors[bin] * null[word]
        likelihood = word_priors[bin] * evidence[token] + of_null
        log_likelihood += math.log(likelihood)
        null_counts[word] += of_null / likelihood
        bin_weights[bin] += 1.0 - of_null / likelihood
        evidence[token] = word_priors[bin] / likelihood
        expected_distance += distance[token] * evidence[token]
    return log_likelihood / len(target_ids), expected_distance


@njit(parallel=True, cache=True)
@no_type_check
def replace_rows(
    target_ids: Int32[np.ndarray, " token"],
    occurrences: Occurrences,
    shares: Shares,
    row_starts: Int64[np.ndarray, " word_1"],
    row_targets: Int32[np.ndarray, " entry"],
    probabilities: Float32[np.ndarray, " entry"],
    vocabulary: int,
    tension: float,
    scale: Float64[np.ndarray, " token"],
    alpha: float,
) -> None:
    """Gather each row's expected counts and replace the row by its new probabilities.

    The posterior of link (i, j) is w_ij t(y_j | x_i) scale_j.
    """
    growth = _growth(occurrences, tension)
    for group in prange(len(shares.group_starts) - 1):
        mass = np.zeros(vocabulary, np.float64)
        for rank in range(shares.group_starts[group], shares.group_starts[group + 1]):
            word = shares.words[rank]
            _gather_mass(target_ids, occurrences, word, tension, growth, scale, mass)
            row = slice(row_starts[word], row_starts[word + 1])
            counts = probabilities[row] * mass[row_targets[row]]
            mass[row_targets[row]] = 0.0
            estimate(counts, alpha, probabilities[row])


@njit(parallel=True, cache=True)
@no_type_check
def gather_counts(
    target_ids: Int32[np.ndarray, " token"],
    occurrences: Occurrences,
    shares: Shares,
    row_starts: Int64[np.ndarray, " word_1"],
    row_targets: Int32[np.ndarray, " entry"],
    vocabulary: int,
    weights: Float64[np.ndarray, " token"],
    counts: Float64[np.ndarray, " entry"],
) -> None:
    """Count how often words meet, each time with the weight of the target word."""
    growth = _growth(occurrences, 0.0)
    for group in prange(len(shares.group_starts) - 1):
        mass = np.zeros(vocabulary, np.float64)
        for rank in range(shares.group_starts[group], shares.group_starts[group + 1]):
            word = shares.words[rank]
            _gather_mass(target_ids, occurrences, word, 0.0, growth, weights, mass)
            row = slice(row_starts[word], row_starts[word + 1])
            counts[row] = mass[row_targets[row]]
            mass[row_targets[row]] = 0.0


@njit(cache=True)
@no_type_check
def _gather_mass(target_ids, occurrences, word, tension, growth, scale, mass):
    """Add w_ij scale_j to the mass of every target word that one source word meets."""
    for k in range(occurrences.first[word], occurrences.first[word + 1]):
        weight, peak, _, _ = _start(occurrences, k, tension)
        start, m = occurrences.target_start[k], occurrences.target_length[k]
        factor = growth[m]
        for token in range(start, start + peak):
            mass[target_ids[token]] += weight * scale[token]
            weight *= factor
        weight, factor = 1.0 / weight, 1.0 / factor
        for token in range(start + peak, start + m):
            mass[target_ids[token]] += weight * scale[token]
            weight *= factor


@njit(cache=True)
@no_type_check
def estimate(counts: Float64[np.ndarray, " entry"], alpha: float, probabilities: Float[np.ndarray, " entry"]) -> None:
    """Turn expected counts into probabilities: relative frequencies, or by a Dirichlet(alpha) prior.

        exp(digamma(count + alpha) - digamma(sum of counts + alpha))

    (the mean-field update of Dyer et al. 2013, section 2.3), which is nearly zero for what was hardly seen.
    """
    total = counts.sum()
    if alpha == 0.0:
        for entry in range(len(counts)):
            probabilities[entry] = counts[entry] / total if total > 0.0 else 0.0
        return
    normaliser = exp_digamma(total + alpha * len(counts))
    hopeless = 1.0 / (0.43 - math.log(NEGLIGIBLE * normaliser))  # for digamma(x) < 0.43 - 1/x where x < 1
    for entry in range(len(counts)):
        x = counts[entry] + alpha
        probabilities[entry] = exp_digamma(x) / normaliser if x > hopeless else 0.0


@njit(cache=True)
@no_type_check
def exp_digamma(x: float) -> float:
    """Return exp(digamma(x)) for x > 0.

    digamma(x) = digamma(x + 6) - sum_k 1 / (x + k), k < 6, and the asymptotic series is exact to 1e-10 from 6 on.
    """
    numerator, denominator = 0.0, 1.0
    while x < 6.0:
        numerator = numerator * x + denominator
        denominator *= x
        x += 1.0
    square = 1.0 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return x * math.exp(-numerator / denominator - 0.5 / x - series)
