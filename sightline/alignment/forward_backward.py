"""Forward-backward over one sentence pair, for hidden Markov models of word alignment.

The words y_1 ... y_m are emitted in order, each by a word x_i or by NULL. The state remembers the position of the last
word that emitted (0 before the first one does), so that a word from NULL does not interrupt the path (Och and Ney
2003, where each position has its own NULL). From a memory of k:

    y_j comes from x_i     with the weight (1 - p0) c(i - k) t(y_j | x_i), and i is remembered
    y_j comes from NULL    with the weight p0 t(y_j | NULL), and k is still remembered
    the sentence ends      with the weight c(n + 1 - k)

The jumps c(d) are one distribution for all lengths of sentence, d = -REACH ... REACH, and one further outcome for every
longer jump; they are not normalised over the positions of a sentence. So counts divided by their sum are exactly what
maximises the expected log-likelihood, and it never falls (Baum and Eagon 1967).
"""

from __future__ import annotations

import math
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Float64

from sightline.compilation import njit

REACH = 40
JUMPS = 2 * REACH + 2  # c(-REACH) ... c(REACH), and the one for all that are longer
FAR = JUMPS - 1


@njit(cache=True)
@no_type_check
def forward_backward(
    emissions: Float[np.ndarray, "target source"],
    null: Float64[np.ndarray, " target"],
    jumps: Float64[np.ndarray, " jump"],
    null_prior: float,
    posteriors: Float[np.ndarray, "target source"],
    null_posteriors: Float64[np.ndarray, " target"],
    jump_counts: Float64[np.ndarray, " jump"],
) -> float:
    """Fill in p(y_j comes from x_i | x, y), which may take the place of the emissions; return log p(y | x).

    Adds the expected numbers of jumps to `jump_counts`.
    """
    m, n = emissions.shape
    stay = 1.0 - null_prior
    memory = np.zeros((m + 1, n + 1))  # alpha, summed over the word itself and its NULL, scaled to sum to 1
    arriving = np.empty((m, n + 1))  # what the positions get from the memories before them
    scales = np.empty(m + 1)
    memory[0, 0] = 1.0
    log_likelihood = 0.0
    for j in range(m):
        _spread_ahead(memory[j], jumps, arriving[j])
        of_null = null_prior * null[j]
        total = 0.0
        for k in range(n + 1):
            here = of_null * memory[j, k]
            if k > 0:
                here += stay * emissions[j, k - 1] * arriving[j, k]
            memory[j + 1, k] = here
            total += here
        scales[j] = 1.0 / total
        memory[j + 1] *= scales[j]
        log_likelihood += math.log(total)
    to_come = np.empty(n + 1)  # beta of each memory
    total = 0.0
    for k in range(n + 1):
        to_come[k] = jumps[_jump_number(n + 1 - k)]
        total += memory[m, k] * to_come[k]
    log_likelihood += math.log(total)
    to_come /= total
    for k in range(n + 1):
        jump_counts[_jump_number(n + 1 - k)] += memory[m, k] * to_come[k]
    leaving = np.empty(n + 1)
    following = np.empty(n + 1)
    raw_counts = np.zeros(JUMPS)
    for j in range(m - 1, -1, -1):
        following[0] = 0.0
        for k in range(1, n + 1):
            following[k] = stay * emissions[j, k - 1] * to_come[k] * scales[j]
        for k in range(1, n + 1):
            posteriors[j, k - 1] = arriving[j, k] * following[k]
        of_null = null_prior * null[j] * scales[j]
        null_posteriors[j] = of_null * (memory[j] * to_come).sum()
        _count_jumps(memory[j], following, raw_counts)
        _spread_back(following, jumps, leaving)
        for k in range(n + 1):
            to_come[k] = leaving[k] + of_null * to_come[k]
    for jump in range(JUMPS):
        jump_counts[jump] += raw_counts[jump] * jumps[jump]
    return log_likelihood


@njit(inline="always")
@no_type_check
def _jump_number(distance):
    """Return where c(distance) stands in the jumps."""
    return distance + REACH if -REACH <= distance <= REACH else FAR


@njit(cache=True)
@no_type_check
def _spread_ahead(memory, jumps, arriving):
    """Sum memory[k] c(i - k) over k, for each i from 1 on."""
    size = len(memory)
    if size <= REACH + 1:
        arriving[:] = 0.0
        for k in range(size):
            weight = memory[k]
            for i in range(1, size):
                arriving[i] += weight * jumps[REACH - k + i]
        return
    far = jumps[FAR]
    arriving[:] = far * memory.sum()
    for k in range(size):
        weight = memory[k]
        for i in range(max(k - REACH, 0), min(k + REACH + 1, size)):
            arriving[i] += weight * (jumps[REACH - k + i] - far)


@njit(cache=True)
@no_type_check
def _spread_back(following, jumps, leaving):
    """Sum c(i - k) following[i] over i from 1 on, for each k."""
    size = len(following)
    if size <= REACH + 1:
        leaving[:] = 0.0
        for i in range(1, size):
            weight = following[i]
            for k in range(size):
                leaving[k] += weight * jumps[REACH + i - k]
        return
    far = jumps[FAR]
    leaving[:] = far * following.sum()
    for i in range(1, size):
        weight = following[i]
        for k in range(max(i - REACH, 0), min(i + REACH + 1, size)):
            leaving[k] += weight * (jumps[REACH + i - k] - far)


@njit(cache=True)
@no_type_check
def _count_jumps(memory, following, counts):
    """Add memory[k] following[i] to the count of the jump i - k, for all i and k."""
    size = len(memory)
    if size <= REACH + 1:
        for k in range(size):
            weight = memory[k]
            for i in range(1, size):
                counts[REACH - k + i] += weight * following[i]
        return
    near = 0.0
    for k in range(size):
        weight = memory[k]
        for i in range(max(k - REACH, 1), min(k + REACH + 1, size)):
            counts[REACH - k + i] += weight * following[i]
            near += weight * following[i]
    counts[FAR] += max(memory.sum() * following.sum() - near, 0.0)
