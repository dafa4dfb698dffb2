"""The sentences with markup: every tag is carried over once, nested as it was, and the translation stays as it is."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from sightline.data.marked_up import MarkedUp, read_marked_up

TAG = re.compile(r"</?[A-Za-z][^<>]*>")
PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}|\$?\{[^{}]*\}|%(?:\d\$)?[sd]")
ENTITY = re.compile(r"&\w+;")
STANDS_ALONE = {"br", "hr", "img", "input", "x"}
SENTENCES = read_marked_up()


def nesting(text: str) -> tuple[Counter[tuple[str, ...]], Counter[str]]:
    """Count tags with those around them, and elements without text; fail where a tag has no partner."""
    found: Counter[tuple[str, ...]] = Counter()
    empty: Counter[str] = Counter()
    opened: list[tuple[str, int]] = []
    for match in TAG.finditer(text):
        name = re.findall(r"\w+", match[0])[0]
        around = tuple(tag for tag, _ in opened)
        if match[0].startswith("</"):
            opening, start = opened.pop()
            assert re.findall(r"\w+", opening)[0] == name
            if not TAG.sub("", text[start : match.start()]).strip():
                empty[opening] += 1
        else:
            found[*around, match[0]] += 1
            if name not in STANDS_ALONE:
                opened.append((match[0], match.end()))
    assert not opened
    return found, empty


def test_there_are_enough_of_every_kind() -> None:
    assert len(SENTENCES) == 151
    assert len({one.source for one in SENTENCES}) == len(SENTENCES)
    kinds = Counter(one.kind for one in SENTENCES)
    for kind in ("placeholder", "break", "punctuation", "reordering", "nested", "entity", "expression"):
        assert kinds[kind] >= 12
    for kind in ("adjacent", "sentence end", "clause"):
        assert kinds[kind] >= 5


@pytest.mark.parametrize("one", SENTENCES, ids=lambda one: one.source[:30])
def test_the_expected_result_follows_the_conventions(one: MarkedUp) -> None:
    tags, empty = nesting(one.source)
    assert tags
    assert nesting(one.expected) == (tags, empty)
    assert not TAG.search(one.target)
    assert " ".join(TAG.sub("", one.expected).split()) == one.target
    assert one.target == " ".join(one.target.split())
    for opening in re.finditer(r"<(?!/)(\w+)[^<>]*>(?=\s)", one.expected):  # tags touch what they enclose
        assert opening[1] in STANDS_ALONE
    assert not re.search(r"\s</", one.expected)


@pytest.mark.parametrize("one", SENTENCES, ids=lambda one: one.source[:30])
def test_placeholders_stay_whole_in_the_translation(one: MarkedUp) -> None:
    plain = TAG.sub("", one.source)
    assert Counter(PLACEHOLDER.findall(one.target)) == Counter(PLACEHOLDER.findall(plain))
    for pattern in (PLACEHOLDER, ENTITY):  # no tag stands inside one
        assert Counter(pattern.findall(TAG.sub("", one.expected))) == Counter(
            found for part in TAG.split(one.expected) for found in pattern.findall(part)
        )
