"""Statistical aligners: against expectation-maximisation written out over dictionaries, saved, and on new sentences."""

import math
from collections import defaultdict

import numba
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from sightline.alignment.bitext import build_bitext
from sightline.alignment.diagonal import bin_positions, fit_tension, normalisers
from sightline.alignment.expectation import estimate, exp_digamma, gather_evidence, weigh_evidence
from sightline.alignment.lexicon import count_table
from sightline.alignment.position_model import (
    DIAGONAL_ALPHA,
    DIAGONAL_NULL,
    INITIAL_TENSION,
    build_table,
    train_diagonal,
    train_ibm1,
)
from sightline.alignment.statistical import ALIGNERS, train_aligner
from sightline.errors import InputError

LEXICON = {
    "the": "la",
    "red": "rouge",
    "house": "maison",
    "door": "porte",
    "car": "voiture",
    "big": "grande",
    "is": "est",
}


def random_pairs(size, seed=0):
    """Word-for-word translations with adjectives behind their nouns, now and then with a word that has no origin."""
    generator = np.random.default_rng(seed)
    words = list(LEXICON)
    pairs = []
    for _ in range(size):
        source = [words[k] for k in generator.integers(len(words), size=generator.integers(1, 9))]
        target = [LEXICON[word] for word in source]
        if len(target) > 2 and generator.random() < 0.5:
            target[1], target[2] = target[2], target[1]
        if generator.random() < 0.2:
            target.append("euh")
        pairs.append((source, target))
    return pairs


PAIRS = random_pairs(60)
NULL = "NULL"


def expectation_maximisation(pairs, iterations, diagonal):
    """The models as published, in plain Python; the tension by a general solver."""
    met = defaultdict(set)
    for source, target in pairs:
        for y in target:
            met[NULL].add(y)
            for x in source:
                met[x].add(y)
    vocabulary = len(met[NULL])
    t = {(x, y): 1 / vocabulary for x in met for y in met[x]}
    tension = INITIAL_TENSION if diagonal else 0.0
    log_likelihoods = []

    def priors(n, j, m, tension):
        weights = [math.exp(-tension * abs(i / n - j / m)) for i in range(1, n + 1)]
        null = DIAGONAL_NULL if diagonal else 1 / (n + 1)
        return [(1 - null) * weight / sum(weights) for weight in weights], null

    for _ in range(iterations):
        counts = defaultdict(float)
        posteriors = []
        log_likelihood, words = 0.0, 0
        for source, target in pairs:
            n, m = len(source), len(target)
            for j, y in enumerate(target, start=1):
                prior, null = priors(n, j, m, tension)
                joint = [p * t[x, y] for p, x in zip(prior, source, strict=True)] + [null * t[NULL, y]]
                log_likelihood, words = log_likelihood + math.log(sum(joint)), words + 1
                for i, (x, mass) in enumerate(zip([*source, NULL], joint, strict=True), start=1):
                    counts[x, y] += mass / sum(joint)
                    if x is not NULL:
                        posteriors.append((mass / sum(joint), i, n, j, m))
        log_likelihoods.append(log_likelihood / words)
        for x in met:
            total = sum(counts[x, y] for y in met[x])
            for y in met[x]:
                if diagonal:
                    digamma = scipy.special.digamma
                    whole = total + DIAGONAL_ALPHA * len(met[x])
                    t[x, y] = math.exp(digamma(counts[x, y] + DIAGONAL_ALPHA) - digamma(whole))
                else:
                    t[x, y] = counts[x, y] / total
        if diagonal:

            def loss(tension, posteriors=posteriors):
                logs = {}
                for _, _, n, j, m in posteriors:
                    if (n, j, m) not in logs:
                        logs[n, j, m] = [math.log(p) for p in priors(n, j, m, tension)[0]]
                return -sum(mass * logs[n, j, m][i - 1] for mass, i, n, j, m in posteriors)

            tension = scipy.optimize.minimize_scalar(loss, bounds=(0.01, 50), options={"xatol": 1e-7}).x
    return t, tension, log_likelihoods


@pytest.mark.parametrize(("train", "diagonal"), [(train_ibm1, False), (train_diagonal, True)])
def test_training_as_published(train, diagonal):
    model = train(build_bitext(PAIRS), iterations=3)
    t, tension, log_likelihoods = expectation_maximisation(PAIRS, 3, diagonal)
    assert model.tension == pytest.approx(tension, rel=1e-4)
    assert model.log_likelihoods == pytest.approx(log_likelihoods, rel=1e-6)
    for (x, y), probability in t.items():
        null = model.null[model.lexicon.target_numbers[y]]
        ours = null if x is NULL else model.lexicon.lookup([x], [y])[0, 0]
        assert ours == pytest.approx(probability, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("train", [train_ibm1, train_diagonal])
def test_posteriors_as_published(train):
    model = train(build_bitext(PAIRS), 3)
    source, target = PAIRS[1]
    n, m = len(source), len(target)
    (found,) = model.posteriors([(source, target)])
    t = np.maximum(model.lexicon.lookup(source, target), 1e-9)
    weights = np.array(
        [[math.exp(-model.tension * abs(i / n - j / m)) for i in range(1, n + 1)] for j in range(1, m + 1)]
    )
    null = model.null_prior or 1 / (n + 1)
    joint = (1 - null) * weights / weights.sum(1, keepdims=True) * t
    of_null = null * np.maximum(model.null[[model.lexicon.target_numbers[y] for y in target]], 1e-9)
    expected = np.column_stack([joint, of_null])
    np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True), rtol=1e-6)


def test_evidence_by_definition():
    """The sums of a round, word by word; sentences in two blocks, as on two cores."""
    generator, tension = np.random.default_rng(0), 2.5
    pairs = PAIRS[:6]
    bitext = build_bitext(pairs)
    ids, table = bitext.target.ids, build_table(bitext)
    t = generator.random((len(bitext.source.vocabulary), len(table.null))).astype(np.float32)
    rows = np.repeat(np.arange(len(t)), np.diff(table.starts))
    blocks = table.shares._replace(block_starts=bitext.target.starts[[0, 3, 6]])
    evidence, distance = np.full((2, len(ids)), np.nan)
    probabilities = t[rows, table.targets]
    known = (ids, table.occurrences, blocks, table.starts, table.targets, probabilities, len(table.null), tension)
    gather_evidence(*known, evidence, distance)
    sums = []
    for source, target in pairs:
        for j, y in enumerate(target, start=1):
            away = [abs(i / len(source) - j / len(target)) for i in range(1, len(source) + 1)]
            column = t[:, bitext.target.vocabulary.index(y)].tolist()
            weights = [
                math.exp(-tension * far) * column[bitext.source.vocabulary.index(x)]
                for far, x in zip(away, source, strict=True)
            ]
            sums.append((sum(weights), np.dot(weights, away)))
    np.testing.assert_allclose(np.column_stack([evidence, distance]), sums, rtol=1e-6)  # of rows in float32

    bins = np.arange(len(ids), dtype=np.int32) % 2
    word_priors, null_priors, null = np.array([0.3, 0.2]), np.array([0.4, 0.1]), generator.random(len(table.null))
    of_null, of_words = null_priors[bins] * null[ids], word_priors[bins] * evidence
    null_counts, bin_weights = np.zeros(len(null)), np.zeros(2)
    where = (evidence.copy(), distance, null_counts, bin_weights)
    likelihood, expected_distance = weigh_evidence(ids, bins, word_priors, null_priors, null, *where)
    assert likelihood == pytest.approx(np.log(of_null + of_words).mean())
    assert expected_distance == pytest.approx((word_priors[bins] * distance / (of_null + of_words)).sum())
    np.testing.assert_allclose(where[0], word_priors[bins] / (of_null + of_words))
    np.testing.assert_allclose(null_counts, np.bincount(ids, of_null / (of_null + of_words), len(null)))
    np.testing.assert_allclose(bin_weights, np.bincount(bins, of_words / (of_null + of_words)))


def test_likelihood_never_falls():
    likelihoods = train_ibm1(build_bitext(PAIRS), 12).log_likelihoods
    assert all(np.diff(likelihoods) > -1e-9)


@pytest.mark.parametrize("name", ALIGNERS)
def test_the_same_on_any_number_of_cores(name):
    bitext = build_bitext(PAIRS)
    threads = numba.get_num_threads()
    models = []
    try:
        for some in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(some)
            models.append(train_aligner(bitext, name))
    finally:
        numba.set_num_threads(threads)
    alone, together = models
    for one, other in ((alone.forward, together.forward), (alone.backward, together.backward)):
        assert np.array_equal(one.lexicon.values, other.lexicon.values)
        assert np.array_equal(one.null, other.null)
        for posterior, same in zip(one.posteriors(PAIRS), other.posteriors(PAIRS), strict=True):
            assert np.array_equal(posterior, same)


@pytest.mark.parametrize("name", ALIGNERS)
def test_words_find_their_translations(name):
    """Trained without the sentences that it aligns: the online scenario of Ding et al. 2019."""
    aligner = train_aligner(build_bitext(random_pairs(600)), name)
    unseen = random_pairs(50, seed=1)
    found = 0
    for (source, target), alignment in zip(unseen, aligner.align(unseen, "intersection"), strict=True):
        assert all(LEXICON[source[i]] == target[j] for i, j in alignment)
        assert (alignment.source_length, alignment.target_length) == (len(source), len(target))
        found += len(alignment)
    assert found > 0.75 * sum(len(source) for source, _ in unseen)


def test_words_never_seen_keep_to_the_diagonal():
    aligner = train_diagonal(build_bitext(PAIRS))
    (alignment,) = aligner.align([(["a", "b", "c"], ["x", "y", "z"])])
    assert list(alignment) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("name", ALIGNERS)
def test_empty_sides(name):
    aligner = train_aligner(build_bitext(PAIRS), name)
    pairs = [([], ["la"]), (["the"], []), ([], []), (["the"], ["la"])]
    assert [len(alignment) for alignment in aligner.align(pairs, "union")] == [0, 0, 0, 1]
    posteriors = list(aligner.forward.posteriors(pairs))
    assert [posterior.shape for posterior in posteriors] == [(1, 1), (0, 2), (0, 1), (1, 2)]
    np.testing.assert_allclose(posteriors[0], 1.0)


def test_confidences_are_posteriors():
    model = train_diagonal(build_bitext(PAIRS))
    for posterior, alignment in zip(model.posteriors(PAIRS), model.align(PAIRS), strict=True):
        np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
        best = {j: int(i) for j, i in enumerate(posterior.argmax(axis=1)) if i < posterior.shape[1] - 1}
        assert {j: i for i, j in alignment} == best
        assert all(alignment.confidences[i, j] == pytest.approx(posterior[j, i]) for j, i in best.items())


@pytest.mark.parametrize("name", ALIGNERS)
def test_a_corpus_is_aligned_as_its_pairs_are(name, monkeypatch):
    """In its own numbers and in another vocabulary's, with pairs that have an empty side in their places."""
    monkeypatch.setattr("sightline.alignment.statistical.PAIRS_AT_ONCE", 7)
    pairs = [([], ["la"]), *PAIRS[:20], (["the"], []), ([], []), (["red", "unheard"], ["voiture", "x"]), ([], [])]
    corpus = build_bitext(pairs)
    for aligner in (train_aligner(corpus, name), train_aligner(build_bitext(PAIRS), name)):
        expected = list(aligner.align(pairs, "union"))
        found = [alignment for chunk in aligner.align_bitext(corpus, "union") for alignment in chunk]
        assert found == expected
        for lengths in ("source_length", "target_length"):
            assert [getattr(one, lengths) for one in found] == [getattr(one, lengths) for one in expected]


def test_many_cells_at_once_are_too_many(monkeypatch):
    aligner = train_aligner(build_bitext(PAIRS))
    expected = list(aligner.align(PAIRS))
    for module in ("one_way", "statistical"):
        monkeypatch.setattr(f"sightline.alignment.{module}.CELLS_AT_ONCE", 100)
    assert 4 < len(list(aligner.align_in_columns(PAIRS))) < len(PAIRS)
    assert 4 < len(list(aligner.align_bitext(build_bitext(PAIRS)))) < len(PAIRS)
    assert list(aligner.align(PAIRS)) == expected
    # Of 6 x 5 = 30 cells each, the fourth fills up 100.
    alike = build_bitext([(["the"] * 5, ["la"] * 6)] * 11)
    assert [len(part) for part in aligner.align_bitext(alike)] == [4, 4, 3]


def test_alignments_come_as_pairs_do():
    def endless():
        while True:
            yield from PAIRS

    aligner = train_aligner(build_bitext(PAIRS))
    alignments = aligner.align(endless())
    assert [next(alignments) for _ in PAIRS] == list(aligner.align(PAIRS))


def test_what_cannot_be_trained_on():
    with pytest.raises(InputError, match="no sentence pair with words on both sides"):
        build_bitext([([], ["x"])])
    with pytest.raises(InputError, match="split into words"):
        build_bitext([("a b", "x y")])
    with pytest.raises(InputError, match="no statistical aligner 'ibm5'"):
        train_aligner(build_bitext(PAIRS), "ibm5")


def test_count_table_by_definition():
    counts = defaultdict(float)
    for source, target in PAIRS:
        for x in source:
            for y in target:
                counts[x, y] += 1 / len(source)
    table = count_table(build_bitext(PAIRS))
    dense = table.dense()
    for k, x in enumerate(table.source_vocabulary):
        for o, y in enumerate(table.target_vocabulary):
            assert dense[k, o] == pytest.approx(counts[x, y])
            assert table.lookup([x, "unknown"], [y])[0].tolist() == pytest.approx([counts[x, y], 0])
    np.testing.assert_allclose(table.normalized().dense().sum(axis=1), 1.0)
    few = table.pruned(4.0)
    np.testing.assert_array_equal(few.dense(), np.where(dense > 4.0, dense, 0))
    np.testing.assert_allclose(few.normalized().dense().sum(axis=1), few.dense().any(axis=1))


def test_count_table_of_permutations_is_uniform():
    """Snell et al. 2021, figure 4: when every order is equally likely, co-occurrence tells nothing."""
    words = ["a", "b", "c", "d"]
    table = count_table(build_bitext([(words, [f"{word}'" for word in np.roll(words, k)]) for k in range(4)]))
    assert np.ptp(table.dense()) == 0


@pytest.mark.parametrize("x", [1e-3, 0.01, 0.0123, 0.5, 1.0, 5.9, 6.0, 100.0, 1e6])
def test_exp_digamma(x):
    assert exp_digamma(x) == pytest.approx(math.exp(scipy.special.digamma(x)), rel=1e-10, abs=0)


def test_estimates():
    counts = np.array([5.0, 0.5, 0.0, 1e-9])
    probabilities = np.empty(4)
    estimate(counts, 0.0, probabilities)
    np.testing.assert_allclose(probabilities, counts / counts.sum())
    estimate(counts, 0.01, probabilities)
    digamma = scipy.special.digamma
    expected = np.exp(digamma(counts + 0.01) - digamma(counts.sum() + 0.04))
    np.testing.assert_allclose(probabilities, expected, rtol=1e-8, atol=1e-30)
    few = np.array([0.3, 0.2])
    estimate(few, 0.01, probabilities[:2])
    np.testing.assert_allclose(probabilities[:2], np.exp(digamma(few + 0.01) - digamma(0.52)), rtol=1e-8)
    estimate(np.zeros(4), 0.0, probabilities)
    assert not probabilities.any(), "a row without counts is not NaN"


@pytest.mark.parametrize("tension", [0.5, 4.0, 12.0])
def test_tension_is_recovered(tension):
    bitext = build_bitext(PAIRS)
    bins = bin_positions(bitext)
    counts = np.bincount(bins.of_token, minlength=len(bins.position)).astype(float)
    expected = 0.0
    for count, n, m, j in zip(counts, bins.source_length, bins.target_length, bins.position, strict=True):
        distances = np.abs(np.arange(1, n + 1) / n - j / m)
        weights = np.exp(-tension * distances)
        expected += count * (weights * distances).sum() / weights.sum()
        assert 1 <= j <= m
    assert counts.sum() == len(bitext.target.ids)
    assert fit_tension(bins, counts, expected, 4.0) == pytest.approx(tension, abs=1e-4)
    np.testing.assert_allclose(normalisers(bins, 0.0), bins.source_length)


def test_tension_without_evidence_stays():
    bins = bin_positions(build_bitext([(["a"], ["x"])]))
    assert fit_tension(bins, np.ones(1), 0.0, 4.0) == 4.0


def test_bitext_leaves_out_empty_pairs_and_flips():
    bitext = build_bitext([(["a", "b"], ["x"]), ([], ["y"]), (["b"], ["z", "x"])])
    assert len(bitext) == 2
    assert bitext.source.vocabulary == ("a", "b")
    assert bitext.target.ids.tolist() == [0, 1, 0]
    assert bitext.target.lengths.tolist() == [1, 2]
    assert bitext.flipped().source is bitext.target
