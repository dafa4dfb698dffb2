"""The bag-of-words proxy against its equations, and its first derivative against IBM Model 1's counts."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

from sightline.alignment.bitext import build_bitext
from sightline.alignment.lexicon import count_table
from sightline.data.toys import copying
from sightline.models.proxy import (
    BagOfWords,
    ProxySettings,
    expected_derivative,
    logit_derivative,
    proxy_loss,
    shuffled_batches,
    train_proxy,
)

SOURCES = [[0, 1, 1], [2], [3, 0], [1, 2, 3, 4]]
TARGETS = [[1, 0], [2, 2, 3], [0], [1, 3, 2]]


def model(width: int = 8, sources: int = 5, outputs: int = 4) -> BagOfWords:
    torch.manual_seed(0)
    return BagOfWords(sources, outputs, width)


def counts() -> np.ndarray:
    """Return C (eq. 16) of the pairs, by the aligner's count table."""
    sides = ([list(map(str, words)) for words in side] for side in (SOURCES, TARGETS))
    table = count_table(build_bitext(zip(*sides, strict=True)))
    rows = [table.source_numbers[str(i)] for i in range(5)]
    return table.dense()[np.ix_(rows, [table.target_numbers[str(o)] for o in range(4)])]


def test_its_loss_and_its_probe() -> None:
    proxy = model()
    embedding, output = (weight.detach().double().numpy() for weight in proxy.parameters())
    expected = 0.0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        p = log_softmax(np.mean([output @ embedding[word] for word in source], axis=0))
        expected -= sum(p[word] for word in target)
        beta = [[softmax(output @ embedding[i])[o] for i in source] for o in target]
        np.testing.assert_allclose(proxy.probe(source, target), beta, rtol=1e-5)
    loss, words = proxy_loss(proxy, SOURCES, TARGETS)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert words == 9


def test_the_derivative_is_that_of_a_small_step() -> None:
    proxy = model().double()
    before = (proxy.embedding.weight @ proxy.output.weight.T).detach().numpy()
    derivative = logit_derivative(proxy, SOURCES, TARGETS)
    loss, _ = proxy_loss(proxy, SOURCES, TARGETS)
    loss.backward()
    with torch.no_grad():
        for weight in proxy.parameters():
            weight -= 1e-6 * weight.grad
    after = (proxy.embedding.weight @ proxy.output.weight.T).detach().numpy()
    np.testing.assert_allclose((after - before) / 1e-6, derivative, atol=1e-4)


def test_a_wide_proxy_starts_as_the_counts_say() -> None:
    """Claim 5 (eq. 54): the derivative of the logits comes to 2 (C - row mean), its error shrinking as 1/sqrt(d)."""
    expected = expected_derivative(counts())
    widths = [2**8, 2**12, 2**16]
    errors = []
    for width in widths:
        draws = []
        for seed in range(8):
            torch.manual_seed(seed)
            draws.append(logit_derivative(BagOfWords(5, 4, width), SOURCES, TARGETS) - expected)
        errors.append(np.sqrt(np.mean(np.square(draws))))
    assert errors[2] < 0.01 * np.abs(expected).max()
    slopes = np.diff(np.log(errors)) / np.diff(np.log(widths))
    np.testing.assert_allclose(slopes, -0.5, atol=0.15)


def test_the_equation_as_printed_lacks_a_factor() -> None:
    """Of the probabilities softmax(W e_i), of which eq. 15 speaks, the derivative is 1/|O| of that of the logits."""
    torch.manual_seed(0)
    proxy = BagOfWords(5, 4, 2**16)
    flow = logit_derivative(proxy, SOURCES, TARGETS)
    theta = (proxy.embedding.weight @ proxy.output.weight.T).softmax(-1).detach().numpy()
    of_probabilities = theta * (flow - (theta * flow).sum(1, keepdims=True))
    np.testing.assert_allclose(of_probabilities, expected_derivative(counts()) / 4, atol=0.02)


def test_permutations_give_it_nothing_to_learn() -> None:
    """Claim 6: under permutations C is uniform, so nothing in its first step tells one word from another."""
    source, _ = copying(6, 6)(np.random.default_rng(0), 20)
    pairs = source.tolist()
    torch.manual_seed(0)
    flow = logit_derivative(BagOfWords(6, 6, 2**16), pairs, pairs)
    assert np.abs(flow).max() < 0.15, "against 2 * 20/6 for a word that is only ever copied"
    outside, _ = copying(6, 12)(np.random.default_rng(0), 20)
    flow = logit_derivative(BagOfWords(12, 12, 2**16), outside.tolist(), outside.tolist())
    assert (flow.argmax(1) == np.arange(12)).mean() > 0.8


def test_training_learns_which_words_go_together() -> None:
    rng = np.random.default_rng(0)
    sources = [rng.choice(12, size=4, replace=False).tolist() for _ in range(200)]
    targets = [[(word + 1) % 12 for word in source] for source in sources]
    seen: list[int] = []
    settings = ProxySettings(width=16, batch=20, steps=150, learning_rate=0.02)
    trained = train_proxy(sources, targets, (12, 12), settings, 0, lambda step, _: seen.append(step))
    assert seen == list(range(151))
    beta = trained.probe(list(range(12)), list(range(12)))
    assert (beta.argmax(1) == (np.arange(12) - 1) % 12).all()


def test_batches_see_every_example_once_in_an_epoch() -> None:
    batches = shuffled_batches(10, 4, seed=3)
    drawn = np.concatenate([next(batches) for _ in range(5)])
    assert sorted(drawn[:10]) == sorted(drawn[10:]) == list(range(10))
    assert (drawn != np.concatenate([next(shuffled_batches(10, 4, seed=4)) for _ in range(5)])).any()
