"""Symmetrisation: against the rules written out over sets, and against what others published."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.alignment.error_rate import score_alignments
from sightline.alignment.formats import read_alignments, read_lengths, write_alignments
from sightline.alignment.links import Alignment
from sightline.alignment.symmetrization import (
    RULES,
    symmetrize,
    symmetrize_all,
    symmetrize_files,
)
from sightline.errors import InputError

REPOSITORY = Path(__file__).parents[2]
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))  # as Koehn et al. list them
LINKS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=16)


def join_by_the_book(forward, reverse, rule):
    """The heuristics over sets, word for word: (either | both) free, for growing and for finishing."""
    grow, finish = {
        "grow-diag": (any, None),
        "grow-diag-final": (any, any),
        "grow-diag-final-and": (any, all),
        "grow-diag-strict": (all, None),
        "grow-diag-final-strict": (all, all),
    }[rule]
    chosen = forward & reverse

    def free(source, target):
        return source not in {s for s, _ in chosen}, target not in {t for _, t in chosen}

    added = True
    while added:
        added = False
        for target in range(7):
            for source in range(7):
                if (source, target) in chosen:
                    for target_step, source_step in NEIGHBOURS:
                        link = (source + source_step, target + target_step)
                        if link in (forward | reverse) - chosen and grow(free(*link)):
                            chosen = chosen | {link}
                            added = True
    for direction in (forward, reverse):
        for target in range(7):
            for source in range(7):
                link = (source, target)
                if finish and link in direction - chosen and finish(free(*link)):
                    chosen = chosen | {link}
    return chosen


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.startswith("grow")])
@settings(max_examples=50)
@given(forward=LINKS, reverse=LINKS)
def test_as_the_book_says(rule, forward, reverse):
    joined = symmetrize(Alignment(forward), Alignment(reverse), rule)
    assert joined.links == join_by_the_book(forward, reverse, rule)


@given(LINKS, LINKS)
def test_every_rule_lies_between_intersection_and_union(forward, reverse):
    joined = {rule: symmetrize(Alignment(forward), Alignment(reverse), rule).links for rule in RULES}
    assert joined["intersection"] == forward & reverse
    assert joined["union"] == forward | reverse
    assert all(forward & reverse <= links <= forward | reverse for links in joined.values())
    assert joined["grow-diag"] <= joined["grow-diag-final-and"]
    assert joined["grow-diag-strict"] <= joined["grow-diag-final-strict"]


@settings(max_examples=30)
@given(st.lists(st.tuples(LINKS, LINKS), max_size=5))
def test_many_pairs_are_joined_as_one_by_one(pairs):
    forward, reverse = ([Alignment(pair[side]) for pair in pairs] for side in (0, 1))
    one_by_one = [symmetrize(one, other, "grow-diag-final") for one, other in zip(forward, reverse, strict=True)]
    assert list(symmetrize_all(iter(forward), iter(reverse), "grow-diag-final")) == one_by_one


def test_confidences_are_averaged_and_lengths_kept():
    joined = symmetrize(Alignment({(0, 0): 0.5, (1, 1): 0.4}, (), 3, 2), Alignment({(0, 0): 1.0}), "union")
    assert joined == Alignment({(0, 0): 0.75, (1, 1): 0.2})
    assert (joined.source_length, joined.target_length) == (3, 2)


def test_the_families_differ():
    forward, reverse = Alignment([(0, 0), (1, 0), (1, 1)]), Alignment([(0, 0), (2, 2)])
    assert list(symmetrize(forward, reverse, "grow-diag-strict")) == [(0, 0), (1, 1), (2, 2)]
    assert list(symmetrize(forward, reverse, "grow-diag")) == [(0, 0), (1, 0), (1, 1), (2, 2)]


def test_mistakes():
    one = [Alignment([(0, 0)])]
    with pytest.raises(InputError, match=r"no symmetrisation rule 'grow-dig'. Did you mean 'grow-diag'"):
        list(symmetrize_all(one, one, "grow-dig"))
    with pytest.raises(InputError, match="reverse direction ends after 1 sentences"):
        list(symmetrize_all(one * 2, one, "union"))
    with pytest.raises(InputError, match="10,000 words at most"):
        symmetrize(one[0], Alignment([(10_000, 0)]), "union")


def test_links_far_apart_cost_no_more_than_others():
    """A matrix of the words would take minutes and gigabytes."""
    far = [Alignment([(0, 0), (9_999, 9_999), (9_998, 9_998)])] * 200
    other = [Alignment([(9_999, 9_999), (5_000, 1)])] * 200
    before = time.process_time()
    joined = list(symmetrize_all(far, other, "grow-diag"))
    assert time.process_time() - before < 5
    assert joined == [Alignment({(9_998, 9_998): 0.5, (9_999, 9_999): 1.0})] * 200


def test_growing_against_the_order_is_quick():
    """Each round would add one link if all were looked at in every one."""
    diagonal = Alignment([(i, i) for i in range(9_999)])
    before = time.process_time()
    joined = symmetrize(diagonal, Alignment([(9_998, 9_998)]), "grow-diag-strict")
    assert time.process_time() - before < 5
    assert joined.links == diagonal.links


def test_a_reverse_file_in_the_other_order_is_refused(tmp_path):
    alignments = [Alignment([(0, 3), (1, 2), (2, 5), (3, 1)])] * 30
    forward, reverse = tmp_path / "forward", tmp_path / "reverse"
    write_alignments(alignments, forward)
    write_alignments(alignments, reverse, target_first=True)
    assert list(symmetrize_files(forward, reverse, "grow-diag")) == alignments
    with pytest.raises(InputError, match=r"reverse: in the first 30 sentences it shares 0 links .* but 120"):
        list(symmetrize_files(forward, reverse, "grow-diag", reverse_target_first=False))
    assert list(symmetrize_files(forward, forward, "union", reverse_target_first=False)) == alignments
    forward.write_text("0-1\n")
    reverse.write_text("1-0\n")  # one link in a sentence may be chance
    found = list(symmetrize_files(forward, reverse, "union", reverse_target_first=False))
    assert found == [Alignment({(0, 1): 0.5, (1, 0): 0.5})]


PUBLISHED = {
    "fast_align": {
        "forward": 28.5,
        "reverse": 32.0,
        "intersection": 28.0,
        "union": 31.8,
        "grow-diag-strict": 27.0,
        "grow-diag-final-strict": 27.7,
    },
    "giza": {
        "forward": 20.9,
        "reverse": 23.1,
        "intersection": 23.4,
        "union": 20.9,
        "grow-diag-strict": 21.4,
        "grow-diag-final-strict": 20.5,
    },
}


@pytest.mark.parametrize("system", PUBLISHED)
def test_published_error_rates(rwth, system):
    lengths = list(read_lengths(rwth / "test.de", rwth / "test.en"))
    gold = list(read_alignments(rwth / "test.gold", base=1, lengths=lengths))
    folder = rwth / "published" / system
    found = {
        "forward": list(read_alignments(folder / "test.deen.talp", lengths=lengths)),
        "reverse": list(read_alignments(folder / "test.deen.reverse.talp", target_first=True, lengths=lengths)),
    }
    for rule in PUBLISHED[system].keys() & RULES:
        found[rule] = list(symmetrize_all(found["forward"], found["reverse"], rule))
    error_rates = {name: score_alignments(alignments, gold).aer.value for name, alignments in found.items()}
    assert error_rates == pytest.approx(PUBLISHED[system], abs=0.1)

    # Theirs depend on the order of a set, so that a few links may differ.
    for rule, name in [("grow-diag-strict", "grow-diagonal"), ("grow-diag-final-strict", "grow-diagonal-final")]:
        theirs = list(read_alignments(folder / f"test.deen.{name}.talp"))
        different = sum(len(one.links ^ other.links) for one, other in zip(found[rule], theirs, strict=True))
        assert different < 0.01 * sum(map(len, theirs))


JOIN_MANY = """
import sys, time
from sightline.alignment.formats import read_alignments
from sightline.alignment.symmetrization import symmetrize_all
folder, rule = sys.argv[1:]
forward = list(read_alignments(f"{folder}/test.deen.talp"))
reverse = list(read_alignments(f"{folder}/test.deen.reverse.talp", target_first=True))
times = 100_000 // len(forward) + 1
started = time.process_time()
assert sum(1 for _ in symmetrize_all(forward * times, reverse * times, rule)) >= 100_000
print(time.process_time() - started)
"""


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_a_hundred_thousand_pairs_in_ten_seconds(rwth, rule):
    """In a process of its own: checking every argument's type, as these tests do, doubles the time."""
    folder = rwth / "published" / "fast_align"
    command = [sys.executable, "-c", JOIN_MANY, str(folder), rule]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY).stdout
    assert float(printed) < 10
