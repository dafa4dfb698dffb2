"""The value Alignment."""

import dataclasses
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.alignment.links import Alignment
from sightline.errors import InputError

LINKS = st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.floats(0, 1), max_size=20)
EXTRA = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5)


@given(LINKS, EXTRA)
def test_links_come_sorted_and_possible_ones_include_them(links, extra):
    alignment = Alignment(links, extra)
    assert list(alignment) == sorted(links)
    assert alignment.links == set(links)
    assert alignment.possible == set(links) | extra
    assert dict(alignment.confidences) == links


def test_it_is_shown_as_it_is_written_with_confidences_that_are_not_certain():
    alignment = Alignment({(2, 1): 0.375, (0, 0): 1.0}, possible=[(3, 0), (1, 1)])
    assert repr(alignment) == "Alignment(0-0 2-1:0.38 1p1 3p0)"
    assert repr(Alignment()) == "Alignment()"


@given(LINKS, EXTRA)
def test_flipping_twice_changes_nothing(links, extra):
    alignment = Alignment(links, extra, 10, 11)
    flipped = alignment.flipped()
    assert flipped.links == {(target, source) for source, target in links}
    assert (flipped.source_length, flipped.target_length) == (11, 10)
    assert flipped.flipped() == alignment


@given(LINKS, st.floats(0, 1))
def test_threshold_keeps_what_is_sure_enough(links, confidence):
    kept = Alignment(links).threshold(confidence)
    assert dict(kept.confidences) == {link: value for link, value in links.items() if value >= confidence}


@given(LINKS, EXTRA)
def test_equal_alignments_are_one_in_a_set_and_survive_pickling(links, extra):
    alignment = Alignment(links, extra, 10, 10)
    copy = pickle.loads(pickle.dumps(alignment))
    assert copy == alignment
    assert (copy.source_length, copy.target_length) == (10, 10)
    assert len({alignment, copy, Alignment(dict(reversed(links.items())), extra)}) == 1


def test_plain_links_are_certain():
    assert Alignment([(1, 1), (0, 0), (1, 1)]).confidences == {(0, 0): 1.0, (1, 1): 1.0}


def test_immutable():
    alignment = Alignment([(0, 0)])
    with pytest.raises(dataclasses.FrozenInstanceError):
        alignment.possible = frozenset()
    with pytest.raises(TypeError):
        alignment.confidences[1, 1] = 1.0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (({(0, 0): math.nan},), "confidence nan"),
        (({(0, 0): 1.5},), "confidence 1.5"),
        (([(-1, 0)],), "negative"),
        (([(0, 3)], (), 4, 3), "0-3 lies outside the sentences of 4 and 3 words"),
        (([(0, 0)], [(4, 0)], 4, None), "4-0 lies outside"),
    ],
)
def test_impossible_links_are_refused(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        Alignment(*arguments)


# Pictures


def test_words_are_shown_and_not_compared() -> None:
    plain = Alignment({(0, 0): 1.0, (1, 2): 0.5}, possible=[(1, 1)])
    named = plain.with_words("the cat", ["el", "gran", "gato"])
    assert named == plain
    assert pickle.loads(pickle.dumps(named)).target_words == ("el", "gran", "gato")
    assert named.pairs() == ["the–el", "cat–gato"]
    assert named.flipped().pairs() == ["el–the", "gato–cat"]
    assert named.threshold(0.9).pairs() == ["the–el"]
    assert plain.pairs() == ["0–0", "1–2"]
    with pytest.raises(InputError, match="outside the sentences of 1 and 3 words"):
        plain.with_words("the", "el gran gato")


def test_an_alignment_is_drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    named = Alignment({(0, 0): 1.0, (1, 2): 0.5}).with_words("the cat", "el gran gato")
    named.show()
    out = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert out[0] == "alignment"
    assert "  el ██" in out
    assert "gran" in out
    assert "gato   ██" in out  # every row uses the whole scale
    assert "gato ← cat 0.500 100%" in out
    for drawn in (named.to_svg(), named.to_html(), named._repr_html_()):
        assert ">gran<" in drawn
    assert Alignment().to_svg().startswith("<svg")
