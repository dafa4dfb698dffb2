"""Error rates: against their definitions over sets, with intervals that are repeatable."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.alignment.error_rate import score_alignments, score_files
from sightline.alignment.links import Alignment
from sightline.errors import InputError

LINKS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8)
SENTENCES = st.lists(st.tuples(LINKS, LINKS, LINKS), min_size=1, max_size=5).filter(
    lambda sentences: any(sure for _, sure, _ in sentences)
)


@given(SENTENCES)
@settings(max_examples=30)
def test_definitions(sentences):
    found = [Alignment(links) for links, _, _ in sentences]
    gold = [Alignment(sure, possible) for _, sure, possible in sentences]
    a = sum(len(links) for links, _, _ in sentences)
    s = sum(len(sure) for _, sure, _ in sentences)
    a_and_s = sum(len(links & sure) for links, sure, _ in sentences)
    a_and_p = sum(len(links & (possible | sure)) for links, sure, possible in sentences)
    precision, recall = (100 * a_and_p / a if a else 0), 100 * a_and_s / s
    scores = score_alignments(found, gold)
    assert scores.aer.value == pytest.approx(100 * (1 - (a_and_s + a_and_p) / (a + s)))
    assert scores.precision.value == pytest.approx(precision)
    assert scores.recall.value == pytest.approx(recall)
    both = precision + recall
    assert scores.f1.value == pytest.approx(2 * precision * recall / both if both else 0)
    assert not any(math.isnan(bound) for score in scores for bound in score.interval)


def test_perfect_and_hopeless():
    gold = [Alignment([(0, 0), (1, 1)])]
    assert score_alignments(gold, gold).aer.value == 0
    assert score_alignments([Alignment()], gold).aer.value == 100
    assert score_alignments([Alignment([(0, 1)])], gold).aer.value == 100


@pytest.fixture
def corpus():
    chance = random.Random(0)
    links = [[(i, j) for i in range(5) for j in range(5) if chance.random() < 0.3] for _ in range(120)]
    found = [Alignment(link for link in some if chance.random() < 0.7) for some in links]
    return found, [Alignment(some) for some in links]


def test_intervals_agree_with_a_plain_bootstrap(corpus):
    found, gold = corpus
    score = score_alignments(found, gold).aer
    chance = random.Random(1)
    values = []
    for _ in range(400):
        drawn = chance.choices(range(len(gold)), k=len(gold))
        correct = sum(len(found[k].links & gold[k].links) for k in drawn)
        total = sum(len(found[k]) + len(gold[k]) for k in drawn)
        values.append(100 * (1 - 2 * correct / total))
    low, high = sorted(values)[10], sorted(values)[389]
    assert score.interval == pytest.approx((low, high), abs=0.6)
    assert score.interval[0] < score.value < score.interval[1]


def test_repeatable_by_seed_and_signed(corpus):
    first, again, other = (score_alignments(*corpus, seed=seed, rule="union") for seed in (1, 1, 2))
    assert first == again
    assert first.aer.interval != other.aer.interval
    assert first.aer.value == other.aer.value
    assert first.aer.signature.startswith("sentences:120|sure:")
    assert first.aer.signature.endswith("|rule:union|bootstrap:1000|seed:1")


def test_what_cannot_be_scored():
    one = Alignment([(0, 0)])
    with pytest.raises(InputError, match="no sure link"):
        score_alignments([one], [Alignment([], [(0, 0)])])
    with pytest.raises(InputError, match="hypothesis ends after 1 sentences"):
        score_alignments([one], [one, one])
    with pytest.raises(InputError, match="gold standard ends after 1 sentences"):
        score_alignments(iter([one, one]), iter([one]))


def test_files(tmp_path):
    hypothesis, gold, naacl = tmp_path / "hypothesis", tmp_path / "gold", tmp_path / "gold.naacl"
    hypothesis.write_text("0-0 1-1\n0-0\n0-1\n")
    gold.write_text("1-1 2p2\n1-1\n\n")
    naacl.write_text("1 1 1 S\n1 2 2 P\n2 1 1 S\n")
    expected = score_files(hypothesis, gold, gold_base=1)
    assert expected.aer.value == pytest.approx(100 * (1 - (2 + 3) / (4 + 2)))
    assert score_files(hypothesis, naacl, gold_format="naacl") == expected
    gold.write_text("1-1\n")
    with pytest.raises(InputError, match=r"hypothesis has 3 sentences, .*gold has 1"):
        score_files(hypothesis, gold, gold_base=1)
