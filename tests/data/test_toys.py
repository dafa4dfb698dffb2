"""The toy tasks: what every example of theirs has, and the count tables that make them hard."""

import numpy as np

from sightline.alignment.bitext import build_bitext
from sightline.alignment.lexicon import count_table
from sightline.data.toys import PairSampler, copying, copying_mixture, draw_keywords, reordering


def counts(task: PairSampler, words: int, examples: int) -> np.ndarray:
    """Return C of a sample, its rows and columns in the order of the words' numbers."""
    pairs = zip(*(side.astype(str).tolist() for side in task(np.random.default_rng(0), examples)), strict=True)
    table = count_table(build_bitext(pairs))
    numbers = [str(word) for word in range(words)]
    rows = [table.source_numbers[word] for word in numbers]
    columns = [table.target_numbers[word] for word in numbers]
    return table.dense()[np.ix_(rows, columns)]


def test_copies() -> None:
    source, target = copying(5, 9)(np.random.default_rng(0), 200)
    assert (source == target).all()
    assert all(len(set(row)) == 5 for row in source.tolist())
    assert set(source.ravel().tolist()) == set(range(9))


def test_under_permutations_the_count_table_is_uniform() -> None:
    """Claim 6 (figure 4): every pair has every word on both sides, so each cell of C gets 1/L of each."""
    np.testing.assert_allclose(counts(copying(6, 6), 6, 50), 50 / 6)
    out_of_more = counts(copying(6, 9), 9, 2000)
    assert (np.diag(out_of_more) > 1.3 * out_of_more.mean()).all(), "its control tells words apart"


def test_under_a_mixture_it_is_uniform_within_the_sets() -> None:
    """Figure 8: the sets are told apart, the words of a set are not."""
    table = counts(copying_mixture(4), 8, 60)
    assert (table[:4, 4:] == 0).all()
    assert (table[4:, :4] == 0).all()
    for one_set in (table[:4, :4], table[4:, 4:]):
        np.testing.assert_allclose(one_set, one_set[0, 0])


def test_a_fixed_order() -> None:
    source, target = reordering(3, 7, [2, 0, 1])(np.random.default_rng(0), 10)
    np.testing.assert_array_equal(target, source[:, [2, 0, 1]])
    np.testing.assert_allclose(
        counts(reordering(3, 5, [2, 0, 1]), 5, 40), counts(copying(3, 5), 5, 40), err_msg="counts know no order"
    )


def test_keywords() -> None:
    texts, labels, positions = draw_keywords(np.random.default_rng(0), 101, 12, 30)
    assert labels.sum() == 50
    for text, label, position in zip(texts, labels, positions, strict=True):
        assert np.flatnonzero(text == 0).tolist() == ([position] if label else [])
        assert (position >= 0) == label
    assert texts.max() == 29
