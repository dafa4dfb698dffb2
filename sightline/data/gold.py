"""Gold word alignments in the package: English-Spanish, written and annotated by hand (see docs/annotation.md).

Two registers of 33 short sentence pairs each, and two of 75 longer ones, which were added later; tokenised, with case
and accents. The files are plain text beside this module, in the usual form: one sentence a line, links `i-j` sure and
`ipj` possible, words counted from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sightline.alignment.formats import read_alignments, read_lengths
from sightline.alignment.links import Alignment
from sightline.alignment.parallel import read_pairs
from sightline.errors import unknown_name

GOLD_FOLDER = Path(__file__).parent / "gold" / "en-es"
REGISTERS = ("everyday", "encyclopaedic")
"""The first 66 pairs, on which the models in the box are measured."""
LONGER_REGISTERS = ("encyclopaedic2", "parliamentary")
"""150 pairs of 13 to 32 words."""
ALL_REGISTERS = (*REGISTERS, *LONGER_REGISTERS)


@dataclass(frozen=True)
class GoldPair:
    """A sentence pair, words separated by spaces, and its gold alignment, words counted from 0."""

    register: str
    source: str
    target: str
    alignment: Alignment


def gold_files(register: str) -> tuple[Path, Path, Path]:
    """Return the files of a register: English, Spanish, and the links."""
    if register not in ALL_REGISTERS:
        raise unknown_name("register", register, ALL_REGISTERS)
    english, spanish, links = (GOLD_FOLDER / f"{register}.{ending}" for ending in ("en", "es", "gold"))
    return english, spanish, links


def read_gold(*registers: str) -> list[GoldPair]:
    """Read the gold pairs of some registers; the first 66 where none is named."""
    pairs = []
    for register in registers or REGISTERS:
        english, spanish, links = gold_files(register)
        alignments = read_alignments(links, base=1, lengths=read_lengths(english, spanish))
        for (source, target), alignment in zip(read_pairs(english, spanish), alignments, strict=True):
            pairs.append(GoldPair(register, source, target, alignment))
    return pairs
