"""Long texts are aligned sentence by sentence."""

from __future__ import annotations

import pytest
import zoo

import sightline
from sightline.verbs.long_texts import LONG

HOW = {"method": "norms", "layer": 1, "reading": "output", "progress": False}


def _sentence(number: int, words: int) -> str:
    return " ".join(["the cat", "a dog", "my house", "red wine"][number % 4].split() * words).split(" .")[0] + " end ."


@pytest.mark.parametrize("as_words", [False, True])
def test_a_long_text_gives_the_links_of_its_sentences(as_words: bool) -> None:
    model = zoo.precise("marian")
    sources = [_sentence(number, words) for number, words in enumerate((6, 9, 4))]
    targets = [_sentence(number + 1, words) for number, words in enumerate((6, 9, 4))]
    one_by_one = sightline.align(model, sources, targets, **HOW)
    expected, before = {}, [0, 0]
    for source, target, links in zip(sources, targets, one_by_one, strict=True):
        expected |= {(i + before[0], j + before[1]): value for (i, j), value in links.confidences.items()}
        before = [before[0] + len(source.split()), before[1] + len(target.split())]
    assert before[0] > LONG
    source, target = " ".join(sources), " ".join(targets)
    texts = ([source, "a cat"], [target, "a dog"])
    whole, other = sightline.align(
        model, *([text.split() for text in side] for side in texts) if as_words else texts, **HOW
    )
    assert dict(whole.confidences) == pytest.approx(expected, abs=1e-6)
    assert whole.source_words == tuple(source.split())
    assert whole.target_length == len(target.split())
    assert other.links == sightline.align(model, "a cat", "a dog", **HOW).links


def test_texts_that_are_not_long_stay_whole() -> None:
    model = zoo.precise("marian")
    source, target = " ".join(map(_sentence, (0, 1), (3, 3))), " ".join(map(_sentence, (2, 3), (3, 3)))
    apart = [_sentence(number, 3) for number in range(4)]
    assert len(source.split()) <= LONG
    whole = sightline.align(model, source, target, **HOW)
    one_by_one = sightline.align(model, apart[:2], apart[2:], **HOW)
    assert [value for links in one_by_one for value in links.confidences.values()] != list(whole.confidences.values())
