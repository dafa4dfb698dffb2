"""Training texts made of pairs: joined, with marks set apart, with invented names: what a corpus lacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from sightline.data.corpora import TextPair

MOST_JOINED = 6
# As in the vocabulary, apostrophes and hyphens stay in their word.
MARK = re.compile(r"([^\w\s'’-])")
NAME_OR_NUMBER = re.compile(r"(?<!\w)(?:\d++(?:[.,:]\d++)*+|[^\W\d_]{3,}+)(?!\w)")  # whole words: the 2 of CO2 is none


def augment(
    pairs: Sequence[TextPair], joined: float, spaced: float, renamed: float, max_words: int, seed: int
) -> list[TextPair]:
    """Change names in a fraction of the pairs, join a fraction into longer texts, set marks apart in a fraction."""
    draw = np.random.default_rng(seed)
    pairs = rename(pairs, renamed, np.random.default_rng([seed, 1])) if renamed else list(pairs)
    if not joined and not spaced:
        return pairs
    order = draw.permutation(len(pairs))
    bound = round(joined * len(pairs))
    texts = [pairs[number] for number in sorted(order[bound:])]
    texts += [_join(group) for group in _groups([pairs[number] for number in order[:bound]], max_words, draw)]
    apart = draw.random(len(texts)) < spaced
    return [
        (space_marks(source), space_marks(target)) if is_apart else (source, target)
        for (source, target), is_apart in zip(texts, apart, strict=True)
    ]


def space_marks(text: str) -> str:
    """Write every punctuation mark as a word of its own, as tokenised text has it."""
    return " ".join(MARK.sub(r" \1 ", text).split())


def rename(pairs: Sequence[TextPair], share: float, draw: np.random.Generator) -> list[TextPair]:
    """Replace, in a fraction of the pairs that have one, a name or number that both sides share by an invented one.

    An invented name begins as another name of the text and ends as the one it replaces, so that what its ending says
    (a woman's name, a town's) stays true.
    """
    shared = [shared_names(source, target) for source, target in pairs]
    pool = sorted({name for names in shared for name in names if name.isalpha()})
    renamed = list(pairs)
    for number, names in enumerate(shared):
        if names and draw.random() < share:
            old = names[draw.integers(len(names))]
            new = _invent_name(old, pool[draw.integers(len(pool))]) if old.isalpha() else _invent_number(old, draw)
            source, target = (re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, text) for text in pairs[number])
            renamed[number] = source, target
    return renamed


def shared_names(source: str, target: str) -> list[str]:
    """List the capitalised words and the numbers that stand once in each of two texts."""
    counts = [Counter(NAME_OR_NUMBER.findall(text)) for text in (source, target)]
    return [
        word
        for word, count in counts[0].items()
        if count == counts[1][word] == 1 and (not word.isalpha() or (word[0].isupper() and word[1:].islower()))
    ]


def _invent_name(old: str, other: str) -> str:
    return other[: (len(other) + 1) // 2] + old[len(old) // 2 :].lower()


def _invent_number(old: str, draw: np.random.Generator) -> str:
    """Draw every digit anew; a first digit that is not 0 stays so."""
    lowest = [int(place == 0 and sign != "0") for place, sign in enumerate(old)]
    return "".join(
        str(draw.integers(low, 10)) if sign.isdigit() else sign for low, sign in zip(lowest, old, strict=True)
    )


def _groups(pairs: Sequence[TextPair], max_words: int, draw: np.random.Generator) -> Iterator[list[TextPair]]:
    """Cut pairs into groups of two to `MOST_JOINED`, smaller where a side would have more than `max_words`."""
    start = 0
    while start < len(pairs):
        size = int(draw.integers(2, MOST_JOINED, endpoint=True))
        group = [pairs[start]]
        words = _words(pairs[start])
        for pair in pairs[start + 1 : start + size]:
            words += _words(pair)
            if words.max() > max_words:
                break
            group.append(pair)
        yield group
        start += len(group)


def _words(pair: TextPair) -> np.ndarray:
    """Return the number of words of each side."""
    return np.array([len(side.split()) for side in pair])


def _join(pairs: Sequence[TextPair]) -> TextPair:
    return " ".join(source for source, _ in pairs), " ".join(target for _, target in pairs)
