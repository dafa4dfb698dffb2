"""What a demonstration shows: a model that translates, sentences for it, and pairs with gold alignments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sightline.alignment.links import Alignment
from sightline.data.gold import REGISTERS, read_gold
from sightline.files import read_lines
from sightline.json_files import parse_json
from sightline.models.box import BOX_MODEL
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load

FILE = Path(__file__).parent / "sentences.jsonl"
MARKED_UP = 'We saw <b>a white dog</b> in the <a href="#garden">garden</a>.'


@dataclass(frozen=True)
class Sentence:
    """A sentence, and what it shows, if that was written down."""

    text: str
    shows: str = ""


@dataclass(frozen=True)
class GoldSet:
    """Sentence pairs with gold alignments, under one name."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    alignments: tuple[Alignment, ...]


@dataclass(frozen=True)
class Material:
    """What is shown. `marked_up` is a sentence with tags."""

    title: str
    model: LoadedModel
    sentences: tuple[Sentence, ...]
    marked_up: str
    gold: tuple[GoldSet, ...]


def material_in_the_box() -> Material:
    """Take the model in the box, and the gold alignments of the package."""
    gold = []
    for register in REGISTERS:
        pairs = read_gold(register)
        gold.append(
            GoldSet(
                register,
                tuple(pair.source for pair in pairs),
                tuple(pair.target for pair in pairs),
                tuple(pair.alignment for pair in pairs),
            )
        )
    title = "English and Spanish, with the model in the box"
    return Material(title, load(BOX_MODEL), read_sentences(), MARKED_UP, tuple(gold))


def read_sentences() -> tuple[Sentence, ...]:
    """Read the sentences of the demo, chosen for what they show before any model had translated them."""
    lines = (parse_json(line) for line in read_lines(FILE))
    return tuple(Sentence(line["text"], line["shows"]) for line in lines)
