"""The text of the study: test pairs with gold alignments, and the pairs that models and aligners are trained on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sightline.alignment.links import Alignment
from sightline.data.hansard import read_test_set, read_training_pairs
from sightline.data.language import GeneratedLanguage, LanguageSettings
from sightline.errors import InputError
from sightline.files import write_text
from sightline.studies.saliency.settings import GENERATED, Settings

LANGUAGE = LanguageSettings(stems=60, clauses=1, seed=1)
DEV_PAIRS = 200
HELD_OUT = 1000
WordPair = tuple[list[str], list[str]]
Direction = tuple[str, str]


class GoldPairs(NamedTuple):
    """Pairs of words in one direction, with their gold alignments."""

    sources: list[list[str]]
    targets: list[list[str]]
    gold: list[Alignment]

    def flipped(self) -> GoldPairs:
        """Exchange source and target."""
        return GoldPairs(self.targets, self.sources, [one.flipped() for one in self.gold])

    def words(self) -> list[WordPair]:
        """List the pairs."""
        return list(zip(self.sources, self.targets, strict=True))


def find_corpus(settings: Settings, data: Path | None) -> Path | None:
    """Find the folder of the text; a generated language has none."""
    if settings.corpus == GENERATED:
        return None
    folder = Path(settings.corpus) if data is None else data / settings.corpus
    if not (folder / "test.gold").is_file():
        raise InputError(
            f"This preset needs {folder / 'test.gold'} and its texts: name the folder of real corpora with --data, or "
            "choose the preset quick, which needs none."
        )
    return folder


def read_tested(settings: Settings, corpus: Path | None) -> GoldPairs:
    """Read the test pairs, from the first language to the second."""
    if corpus is None:
        generated = GeneratedLanguage(LANGUAGE).pairs(settings.test_pairs or DEV_PAIRS, "test")
        return GoldPairs(
            [list(pair.source_words) for pair in generated],
            [list(pair.target_words) for pair in generated],
            [Alignment(pair.links) for pair in generated],
        )
    read = read_test_set(corpus)
    count = settings.test_pairs
    return GoldPairs(
        [source for source, _ in read.pairs[:count]],
        [target for _, target in read.pairs[:count]],
        list(read.gold[:count]),
    )


def read_trained(settings: Settings, corpus: Path | None) -> Iterator[WordPair]:
    """Yield the training pairs, from the first language to the second."""
    if corpus is None:
        for pair in GeneratedLanguage(LANGUAGE).pairs(settings.generated_pairs):
            yield list(pair.source_words), list(pair.target_words)
    else:
        for source, target in read_training_pairs(corpus):
            yield source.split(), target.split()


def write_recipe_data(settings: Settings, corpus: Path | None, direction: Direction, folder: Path) -> dict[str, Any]:
    """Return the `data` of a recipe for one direction; a generated language is written down into a folder first."""
    data: dict[str, Any] = {"languages": list(direction)}
    if corpus is not None:
        files = {side: str(corpus / f"train.{name}.gz") for side, name in zip(SIDES, direction, strict=True)}
        return data | {"train": files, "dev": {"held_out": HELD_OUT}, "clean": "hansard"}
    language = GeneratedLanguage(LANGUAGE)
    folder.mkdir(parents=True, exist_ok=True)
    turned = direction != settings.languages
    for role, count in (("train", settings.generated_pairs), ("dev", DEV_PAIRS)):
        pairs = language.pairs(count, role)
        texts = [[pair.source for pair in pairs], [pair.target for pair in pairs]]
        data[role] = {}
        for side, lines in zip(SIDES, texts[::-1] if turned else texts, strict=True):
            path = (folder / f"{role}.{side}").resolve()
            write_text(path, "".join(f"{line}\n" for line in lines))
            data[role][side] = str(path)
    return data


SIDES = ("source", "target")
