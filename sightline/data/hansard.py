"""The Canadian Hansards, English-French: training text cleaned to look like the WPT 2003 test set.

The test set (Mihalcea and Pedersen 2003) is tokenised, and in its French elided and contracted words are written out:
`l'` is `le`, `qu'` is `que`, `du` is `de le`, `aux` is `à les`. The training text is raw and has no accents. Both are
brought to one form: lower case, no accents, tokenised, French words written out.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sightline.alignment.formats import read_alignments, read_lengths
from sightline.alignment.links import Alignment
from sightline.alignment.parallel import read_pairs

NUMBER = r"\d+(?:[.,]\d+)*[a-z]*"  # 25,000  6.42  36th
ABBREVIATION = r"\b(?:mr|mrs|ms|dr|st|hon|no|m|mm)\.|\b[a-z](?:\.[a-z])+\.?"  # mr.  p.m.
SIGN = r"\.\.\.|--|''|``|\S"
ENGLISH = re.compile(rf"{NUMBER}|{ABBREVIATION}|'s\b|[a-z]+|{SIGN}")
FRENCH = re.compile(rf"{NUMBER}|{ABBREVIATION}|[a-z]+'?|{SIGN}")

WRITTEN_OUT = {f"{letter}'": f"{letter}e" for letter in "cdjlmnst"} | {
    "du": "de le",
    "des": "de les",
    "au": "a le",
    "aux": "a les",
}


@dataclass(frozen=True)
class TestSet:
    """The sentence pairs of the test set, without accents and in lower case, and their gold alignments."""

    pairs: tuple[tuple[list[str], list[str]], ...]
    gold: tuple[Alignment, ...]


def clean_english(text: str) -> str:
    """Tokenise English; words are joined by one space.

    >>> clean_english("Mr. Speaker, the Government's offer was $1,000.")
    "mr. speaker , the government 's offer was $ 1,000 ."
    """
    return " ".join(ENGLISH.findall(plain_letters(text)))


def clean_french(text: str) -> str:
    """Tokenise French and write out elided and contracted words; words are joined by one space.

    >>> clean_french("Qu'en est-il du rapport de l'an dernier?")
    'que en est - il de le rapport de le an dernier ?'
    """
    return " ".join(map(_write_out, FRENCH.findall(plain_letters(text))))


def _write_out(word: str) -> str:
    if word.endswith("qu'"):  # also lorsqu', puisqu', jusqu'
        return word[:-1] + "e"
    return WRITTEN_OUT.get(word, word)


def plain_letters(text: str) -> str:
    """Put text in lower case and take its accents away."""
    text = text.lower()
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("æ", "ae"))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def read_training_pairs(folder: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield the cleaned (English, French) training pairs, each once; about 227,000."""
    seen = set()
    for english, french in read_pairs(Path(folder, "train.en.gz"), Path(folder, "train.fr.gz")):
        pair = clean_english(english), clean_french(french)
        if all(pair) and pair not in seen:
            seen.add(pair)
            yield pair


def read_test_set(folder: str | os.PathLike[str]) -> TestSet:
    """Read the WPT 2003 test set: 447 pairs, with sure and possible links."""
    texts = Path(folder, "test.en"), Path(folder, "test.fr")
    pairs = tuple(
        (plain_letters(english).split(), plain_letters(french).split()) for english, french in read_pairs(*texts)
    )
    gold = read_alignments(Path(folder, "test.gold"), base=1, lengths=read_lengths(*texts))
    return TestSet(pairs, tuple(gold))
