"""What a demonstration shows: a model that translates, sentences for it, and pairs with gold alignments."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.alignment.links import Alignment
from sightline.data.gold import REGISTERS, read_gold
from sightline.models.box import BOX_MODEL
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load

SENTENCES = (
    "The black cat is sleeping under the table.",
    "I don't want to go to school today.",
    "My brother has never eaten raw fish.",
    "She gave him a book for his birthday.",
    "Where did you learn to speak Spanish so well?",
    "It was raining when we left the house.",
    "There are three letters on the table.",
    "He asked me if I knew the answer.",
    "The white house on the hill is very old.",
    "If you are tired, go to bed.",
    "They have been living in Madrid for ten years.",
    "The train leaves at half past six in the morning.",
)
MARKED_UP = 'We saw <b>a white dog</b> in the <a href="#garden">garden</a>.'


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
    sentences: tuple[str, ...]
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
    return Material("English to Spanish, with the model in the box", load(BOX_MODEL), SENTENCES, MARKED_UP, tuple(gold))
