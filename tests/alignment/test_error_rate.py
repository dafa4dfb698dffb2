"""Error rates: against their definitions over sets, with intervals that are repeatable."""

import math
import random
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.alignment import error_rate
from sightline.alignment.error_rate import score_alignments, score_files
from sightline.alignment.links import Alignment
from sightline.errors import InputError
from sightline.version import __version__

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


def test_an_interval_leaves_a_fortieth_out_on_either_side(monkeypatch):
    """Of 18 links 5 are wrong; of 18 drawn, at most 1 is with a chance of 2.26 percent, at most 2 with 8.73."""
    monkeypatch.setattr(error_rate, "RESAMPLES", 50_000)
    gold = [Alignment([(0, 0)])] * 18
    found = [Alignment([(0, 1)])] * 5 + gold[5:]
    assert score_alignments(found, gold).aer.interval[0] == pytest.approx(100 * 2 / 18)


def test_repeatable_by_seed_and_signed(corpus):
    first, again, other = (score_alignments(*corpus, seed=seed, rule="union") for seed in (1, 1, 2))
    assert first == again
    assert first.aer.interval != other.aer.interval
    assert first.aer.value == other.aer.value
    assert first.aer.signature.startswith("sentences:120|sure:")
    assert first.aer.signature.endswith(f"|rule:union|bootstrap:1000|seed:1|sightline:{__version__}")
    lines = str(first).splitlines()
    assert [line.partition("|")[0] for line in lines] == ["AER", "precision", "recall", "F1"]
    assert lines[0] == str(first.aer)


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
    with pytest.raises(InputError, match=r"gold has 1 sentences, .*hypothesis has 3"):
        score_files(hypothesis, gold, gold_base=1)


def test_files_of_different_length(tmp_path):
    long, short, naacl = tmp_path / "long", tmp_path / "short", tmp_path / "naacl"
    long.write_text("0-0\n1-1\n\n2-2\n")
    short.write_text("0-0\n0p1\n")
    naacl.write_text("1 1 1\n2 1 2 P\n")
    with pytest.raises(InputError, match=r"short has 2 sentences, .*long has 4: lines must correspond"):
        score_files(short, long)
    with pytest.raises(InputError, match=r"short has 2 sentences, .*long has 4: lines must correspond"):
        score_files(long, short)
    assert score_files(long, naacl, gold_format="naacl").aer.settings["sentences"] == 4
    gold = [Alignment([(0, 0)]), Alignment([], [(0, 1)])]
    assert score_files(short, naacl, gold_format="naacl") == score_alignments(gold, gold)
    with pytest.raises(InputError, match="both be read from standard input"):
        score_files("-", "-")


def test_memory_does_not_grow_with_the_files(tmp_path, monkeypatch):
    """Of the alignments of both files, no more than a few are ever there at the same time."""
    read, made, most = error_rate.read_alignments, [], 0

    def watched(*arguments):
        nonlocal most
        for alignment in read(*arguments):
            made.append(weakref.ref(alignment))
            most = max(most, sum(one() is not None for one in made))
            yield alignment

    monkeypatch.setattr(error_rate, "read_alignments", watched)
    links, gold, source, target = (tmp_path / name for name in ("links", "gold", "source", "target"))
    for path, line in {links: "0-0 1-1 2-2\n", gold: "0-0 1p1\n", source: "a b c\n", target: "x y z\n"}.items():
        path.write_text(line * 100)
    assert score_files(links, gold, texts=(source, target)).aer.settings["sentences"] == 100
    assert len(made) == 200
    assert most <= 6
