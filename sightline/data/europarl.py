"""Europarl, German-English: training text cleaned to look like the RWTH test set (Vilar et al. 2006).

The test set is tokenised: punctuation and the English possessive `'s` stand apart, hyphens stay in their word. Its
German keeps the spelling before the reform of 1996 (`daß`), the training text mostly follows the newer one (`dass`).
Both are brought to one form: lower case, `ss` for `ß`, plain quotation marks and dashes, tokenised.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sightline.alignment.formats import read_alignments, read_lengths
from sightline.alignment.links import Alignment
from sightline.alignment.parallel import read_pairs

PLAIN = str.maketrans({"’": "'", "‘": "'", "´": "'", "`": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
DASH = re.compile(r"[‐-―−]")
NUMBER = r"\d+(?:[.,:]\d+)*"  # 25,000  6.42  10:30
ABBREVIATION = r"\b(?:bzw|etc|usw|mio|mrd|nr|art|abs|ca|mr|mrs|ms|dr|st|no)\.|\b\w(?:\.\w)+\.?"  # d.h.  a.m.
WORD = r"[^\W_]+(?:-[^\W_]+)*(?:-(?!\w))?"  # cross-border  h-0689  wirtschafts-
TOKEN = re.compile(rf"{ABBREVIATION}|{NUMBER}(?![^\W_]|-[^\W_])|'s\b|{WORD}|\.\.\.|\S")


@dataclass(frozen=True)
class TestSet:
    """The sentence pairs of the test set, German first, in the form of the training text, and their gold alignments."""

    pairs: tuple[tuple[list[str], list[str]], ...]
    gold: tuple[Alignment, ...]


def plain_text(text: str) -> str:
    """Put text in lower case, in the newer German spelling, with plain marks; the number of words stays."""
    return DASH.sub("-", text.translate(PLAIN)).lower().replace("ß", "ss")


def clean(text: str) -> str:
    """Tokenise a sentence; words are joined by one space.

    >>> clean("Die EVP-Fraktion glaubt, daß dies d.h. „nichts“ ändert.")
    'die evp-fraktion glaubt , dass dies d.h. " nichts " ändert .'
    >>> clean("The Union’s share – 25.5% – isn't known.")
    "the union 's share - 25.5 % - isn ' t known ."
    """
    return " ".join(TOKEN.findall(plain_text(text)))


def read_test_set(folder: str | os.PathLike[str]) -> TestSet:
    """Read the RWTH test set: 508 pairs, with sure and possible links."""
    texts = Path(folder, "test.de"), Path(folder, "test.en")
    pairs = tuple((plain_text(german).split(), plain_text(english).split()) for german, english in read_pairs(*texts))
    gold = read_alignments(Path(folder, "test.gold"), base=1, lengths=read_lengths(*texts))
    return TestSet(pairs, tuple(gold))
