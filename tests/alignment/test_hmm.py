"""The hidden Markov model: against sums over all paths, and against a plain forward-backward in training."""

import math
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.alignment.agreement import IBM1_ROUNDS, NULL_PRIOR, HmmSettings, _cut, train_hmm
from sightline.alignment.bitext import build_bitext
from sightline.alignment.forward_backward import FAR, JUMPS, REACH, forward_backward
from sightline.alignment.one_way import UNSEEN
from sightline.alignment.position_model import train_ibm1
from sightline.alignment.statistical import train_aligner

seeds = st.integers(0, 2**32 - 1)
MAXIMUM_LIKELIHOOD = HmmSettings(alpha=0.0, jump_alpha=0.0, agree=False)


def weight_of(jumps, distance):
    return jumps[REACH + distance] if abs(distance) <= REACH else jumps[FAR]


def number_of(distance):
    return REACH + distance if abs(distance) <= REACH else FAR


def all_paths(emissions, null, jumps, p0):
    """The model by its definition: every way to choose an origin for each word, NULL as None."""
    m, n = emissions.shape
    total, posteriors, of_null, counts = 0.0, np.zeros((m, n)), np.zeros(m), np.zeros(JUMPS)
    for path in product([None, *range(1, n + 1)], repeat=m):
        probability, memory, taken = 1.0, 0, []
        for j, i in enumerate(path):
            if i is None:
                probability *= p0 * null[j]
            else:
                probability *= (1 - p0) * weight_of(jumps, i - memory) * emissions[j, i - 1]
                taken.append(i - memory)
                memory = i
        taken.append(n + 1 - memory)
        probability *= weight_of(jumps, n + 1 - memory)
        total += probability
        for j, i in enumerate(path):
            if i is None:
                of_null[j] += probability
            else:
                posteriors[j, i - 1] += probability
        for distance in taken:
            counts[number_of(distance)] += probability
    return math.log(total), posteriors / total, of_null / total, counts / total


def plain_forward_backward(emissions, null, jumps, p0):
    """States (memory, from NULL or not), transitions as a matrix, no scaling: quadratic in the states, in float64."""
    m, n = emissions.shape
    states = [(0, True), *product(range(1, n + 1), [False, True])]

    def step(before, after, j):
        if after[1]:
            return p0 * null[j] if after[0] == before[0] else 0.0
        return (1 - p0) * weight_of(jumps, after[0] - before[0]) * emissions[j, after[0] - 1]

    matrices = [np.array([[step(one, other, j) for other in states] for one in states]) for j in range(m)]
    end = np.array([weight_of(jumps, n + 1 - memory) for memory, _ in states])
    alphas, betas = [np.eye(len(states))[0]], [end]
    for matrix in matrices:
        alphas.append(alphas[-1] @ matrix)
    for matrix in reversed(matrices):
        betas.insert(0, matrix @ betas[0])
    total = alphas[-1] @ end
    posteriors, of_null, counts = np.zeros((m, n)), np.zeros(m), np.zeros(JUMPS)
    for j, matrix in enumerate(matrices):
        joint = alphas[j][:, None] * matrix * betas[j + 1] / total
        for (before, one), (after, other) in product(enumerate(states), enumerate(states)):
            if other[1]:
                of_null[j] += joint[before, after]
            else:
                posteriors[j, other[0] - 1] += joint[before, after]
                counts[number_of(other[0] - one[0])] += joint[before, after]
    for number, (memory, _) in enumerate(states):
        counts[number_of(n + 1 - memory)] += alphas[-1][number] * end[number] / total
    return math.log(total), posteriors, of_null, counts


def random_model(seed, n, m):
    generator = np.random.default_rng(seed)
    jumps = generator.dirichlet(np.full(JUMPS, 0.3)) + 1e-6
    return (
        generator.random((m, n)) + 1e-3,
        generator.random(m) + 1e-3,
        jumps / jumps.sum(),
        generator.uniform(0.05, 0.6),
    )


def ours(emissions, null, jumps, p0):
    emissions, null, counts = emissions.copy(), null.copy(), np.zeros(JUMPS)
    log_likelihood = forward_backward(emissions, null, jumps, p0, emissions, null, counts)
    return log_likelihood, emissions, null, counts


@settings(deadline=None, max_examples=30)
@given(seeds, st.integers(1, 4), st.integers(1, 4))
def test_all_paths_are_summed(seed, n, m):
    model = random_model(seed, n, m)
    for found, expected, literal in zip(ours(*model), all_paths(*model), plain_forward_backward(*model), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(literal, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("n", [REACH - 1, REACH, REACH + 1, 2 * REACH + 5])
def test_jumps_beyond_reach_are_one_outcome(n):
    model = random_model(n, n, 3)
    for found, expected in zip(ours(*model), plain_forward_backward(*model), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(seeds, st.integers(1, 60), st.integers(1, 12))
def test_posteriors_sum_to_one(seed, n, m):
    _, posteriors, of_null, counts = ours(*random_model(seed, n, m))
    np.testing.assert_allclose(posteriors.sum(axis=1) + of_null, 1.0)
    assert counts.sum() == pytest.approx(posteriors.sum() + 1), "a jump for every word that is not NULL's, and the end"


def sentences(seed, size=12, words=5, longest=5):
    generator = np.random.default_rng(seed)

    def side(letter):
        return [f"{letter}{k}" for k in generator.integers(words, size=generator.integers(1, longest + 1))]

    return [(side("x"), side("y")) for _ in range(size)]


def one_round(pairs, model, p0, agree):
    """Expected counts of a round, by dictionaries and the plain forward-backward."""
    counts = defaultdict(float), defaultdict(float)
    log_likelihoods, jump_counts = [0.0, 0.0], [np.zeros(JUMPS), np.zeros(JUMPS)]
    for source, target in pairs:
        found = []
        for number, (xs, ys) in enumerate(((source, target), (target, source))):
            t, null, jumps = model[number]
            emissions = np.array([[max(t[x, y], UNSEEN) for x in xs] for y in ys])
            of_null = np.array([max(null[y], UNSEEN) for y in ys])
            log_likelihood, posteriors, of_null, taken = plain_forward_backward(emissions, of_null, jumps, p0)
            log_likelihoods[number] += log_likelihood
            jump_counts[number] += taken
            found.append(posteriors)
            for y, share in zip(ys, of_null, strict=True):
                counts[number][None, y] += share
        product_of_both = found[0] * found[1].T
        for j, y in enumerate(target):
            for i, x in enumerate(source):
                counts[0][x, y] += product_of_both[j, i] if agree else found[0][j, i]
                counts[1][y, x] += product_of_both[j, i] if agree else found[1][i, j]
    return log_likelihoods, counts, jump_counts


def parameters(aligner):
    """The tables of a trained aligner as dictionaries."""
    lexicon = aligner.lexicon
    table = lexicon.dense()
    t = {
        (x, y): table[k, o]
        for k, x in enumerate(lexicon.source_vocabulary)
        for o, y in enumerate(lexicon.target_vocabulary)
    }
    return t, dict(zip(lexicon.target_vocabulary, aligner.null.tolist(), strict=True)), aligner.jumps


@pytest.mark.parametrize("agree", [False, True])
def test_a_round_of_training_by_definition(agree, monkeypatch):
    """From the parameters after one round to those after two; several slabs of pairs."""
    monkeypatch.setattr("sightline.alignment.agreement.CELLS_IN_SLAB", 40)
    pairs = sentences(0)
    how = HmmSettings(alpha=0.0, jump_alpha=0.5, agree=agree)
    before, after = (train_hmm(build_bitext(pairs), rounds, how) for rounds in (1, 2))
    log_likelihoods, counts, jump_counts = one_round(pairs, [parameters(one) for one in before], NULL_PRIOR, agree)
    words = [sum(len(target) for _, target in pairs), sum(len(source) for source, _ in pairs)]
    for number, model in enumerate(after):
        assert model.log_likelihoods[1] == pytest.approx(log_likelihoods[number] / words[number], rel=1e-5)
        t, null, jumps = parameters(model)
        totals = defaultdict(float)
        for (x, _), count in counts[number].items():
            totals[x] += count
        for (x, y), count in counts[number].items():
            found = null[y] if x is None else t[x, y]
            assert found == pytest.approx(count / totals[x], rel=1e-4, abs=1e-6)
        expected = jump_counts[number] + how.jump_alpha
        np.testing.assert_allclose(jumps, expected / expected.sum(), rtol=1e-5)


def test_training_begins_with_model_1():
    bitext = build_bitext(sentences(0))
    for model, side in zip(train_hmm(bitext, 0), (bitext, bitext.flipped()), strict=True):
        first = train_ibm1(side, IBM1_ROUNDS)
        np.testing.assert_array_equal(model.lexicon.dense(), first.lexicon.dense())
        np.testing.assert_array_equal(model.null, first.null)
        assert model.jumps.sum() == pytest.approx(1)
        for distance in (-REACH, -1, 0, 2, REACH):
            expected = math.exp(-abs(distance - 1) / 2) + 1e-4  # where the next word has 1 + 1e-4
            assert model.jumps[number_of(distance)] / model.jumps[number_of(1)] == pytest.approx(expected / (1 + 1e-4))
        assert model.jumps[FAR] / model.jumps[number_of(1)] == pytest.approx(1e-4 / (1 + 1e-4))


def test_slabs_count_their_cells_from_zero(monkeypatch):
    monkeypatch.setattr("sightline.alignment.agreement.CELLS_IN_SLAB", 10)
    sizes = [(2, 3), (1, 4), (5, 1), (3, 3)]
    slabs = list(_cut(build_bitext([(["x"] * n, ["y"] * m) for n, m in sizes])))
    assert [(slab.begin, slab.end) for slab in slabs] == [(0, 2), (2, 4)]
    assert [slab.cell_starts.tolist() for slab in slabs] == [[0, 6, 10], [0, 5, 14]]


@settings(deadline=None, max_examples=15)
@given(seeds)
def test_likelihood_never_falls(seed):
    for model in train_hmm(build_bitext(sentences(seed)), 8, MAXIMUM_LIKELIHOOD):
        assert (np.diff(model.log_likelihoods) > -1e-6).all()


@settings(deadline=None, max_examples=10)
@given(seeds)
def test_posteriors_of_any_pair_sum_to_one(seed):
    pairs = sentences(seed)
    aligner = train_aligner(build_bitext(pairs), "hmm", 2)
    others = [*sentences(seed + 1, words=8, longest=60), (["unheard"], ["of", "this"])]
    for (source, target), posterior in zip(others, aligner.forward.posteriors(others), strict=True):
        assert posterior.shape == (len(target), len(source) + 1)
        np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    backward = aligner.backward.posteriors([(target, source) for source, target in others])
    both = zip(aligner.posteriors(others), aligner.forward.posteriors(others), backward, strict=True)
    for joined, one, other in both:
        np.testing.assert_allclose(joined, np.sqrt(one[:, :-1] * other[:, :-1].T), atol=1e-12)


def test_agreement_is_not_misled_by_a_rare_word():
    """A source word seen once is linked to what it translates, though the rest of its sentence would explain it too."""
    frame = [([f"a{k}", f"b{k % 3}"], [f"A{k}", f"B{k % 3}"]) for k in range(12)] * 3
    pairs = [*frame, (["rare", "a1", "b1"], ["RARE", "A1", "B1"])]
    bitext = build_bitext(pairs)
    rare = pairs[-1]
    aligner = train_aligner(bitext, "hmm")
    (alignment,) = aligner.align([rare], "union")
    assert list(alignment) == [(0, 0), (1, 1), (2, 2)]
