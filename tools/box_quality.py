"""What a packed model does: translations by corpus, names and numbers carried over, alignments, languages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

import sightline
from sightline.data.corpora import TextPair
from sightline.data.gold import ALL_REGISTERS, REGISTERS, read_gold
from sightline.models.loaded import LoadedModel
from sightline.scores import Score
from sightline.text.languages import LanguageGuess
from sightline.training.augmentation import shared_names

SEARCH = {"num_beams": 4, "length_penalty": 1.0}
NAMED_SENTENCES = 200
ADAPTER, AUTO = "adapter", "auto"
LENGTHS = {"1 word": range(1, 2), "2 or 3 words": range(2, 4), "4 words or more": range(4, 10**6)}


@dataclass(frozen=True)
class Quality:
    """What a packed model does on held-out pairs and on the gold alignments of the package."""

    pairs: Mapping[str, int]
    """Test pairs by corpus."""
    translation: Mapping[tuple[str, str], Sequence[Score]]
    """By corpus and direction."""
    names: Mapping[str, Score]
    """The percentage of sentences whose names and numbers are all carried over, by direction."""
    alignment: Mapping[tuple[str, str], Score]
    """By registers and by how the model is read, the usual way first."""


def measure(model: LoadedModel, tests: Mapping[str, Sequence[TextPair]], has_adapter: bool) -> Quality:
    """Translate held-out pairs of each corpus both ways, and align the gold pairs of the package."""
    assert model.other_way is not None
    translation, names = {}, {}
    for direction, source, target in ((model, 0, 1), (model.other_way, 1, 0)):
        way = f"{direction.prompt.source_lang}-{direction.prompt.target_lang}"
        named: list[tuple[list[str], str]] = []
        for corpus, pairs in tests.items():
            found = [one.text for one in sightline.translate(direction, [pair[source] for pair in pairs], **SEARCH)]
            references = [[pair[target] for pair in pairs]]
            translation[corpus, way] = [_score(metric, found, references) for metric in (BLEU(), CHRF())]
            print(corpus, way, *map(str, translation[corpus, way]), flush=True)
            with_names = [(shared_names(*pair), text) for pair, text in zip(pairs, found, strict=True)]
            named += [one for one in with_names if one[0]][: NAMED_SENTENCES // len(tests)]
        if named:
            names[way] = carried_over(named)
            print(way, names[way], flush=True)
    return Quality(
        {corpus: len(pairs) for corpus, pairs in tests.items()}, translation, names, _align(model, has_adapter)
    )


def carried_over(named: Sequence[tuple[Sequence[str], str]]) -> Score:
    """Return the percentage of translations that have every name and number they should, whole and unchanged."""
    whole = [
        all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None for name in names) for names, text in named
    ]
    settings = {"sentences": len(named), "names": sum(len(names) for names, _ in named)}
    return Score("names carried over", 100 * sum(whole) / len(whole), settings=settings, decimals=1)


def _align(model: LoadedModel, has_adapter: bool) -> dict[tuple[str, str], Score]:
    readings: dict[str, dict[str, Any]] = {AUTO: {}}
    if has_adapter:
        readings = {ADAPTER: {}, AUTO: {"use_adapter": False}}
    rates = {}
    for reading, options in readings.items():
        for registers in (*((register,) for register in ALL_REGISTERS), REGISTERS, ALL_REGISTERS):
            gold = read_gold(*registers)
            found = sightline.align(model, [pair.source for pair in gold], [pair.target for pair in gold], **options)
            name = "all" if registers == ALL_REGISTERS else " and ".join(registers)
            rates[name, reading] = sightline.score(found, [pair.alignment for pair in gold]).aer
            print(name, "by", reading, rates[name, reading], flush=True)
    return rates


def _score(metric: Any, hypotheses: list[str], references: list[list[str]]) -> Score:
    value = metric.corpus_score(hypotheses, references)
    settings = dict(part.split(":", 1) for part in str(metric.get_signature()).split("|"))
    return Score(value.name, value.score, settings=settings, decimals=1)


def measure_guess(guess: LanguageGuess, tests: Mapping[str, Sequence[TextPair]]) -> dict[str, tuple[int, int, int]]:
    """Count, by their length, the sentences, those recognised, and those taken for the other language."""
    counts = {}
    sentences = [(pair[side], side) for pairs in tests.values() for pair in pairs for side in (0, 1)]
    for name, lengths in LENGTHS.items():
        some = [(text, side) for text, side in sentences if len(text.split()) in lengths]
        found = [(guess.language_of(text), guess.languages[side]) for text, side in some]
        right = sum(language == true for language, true in found)
        wrong = sum(language not in (true, None) for language, true in found)
        counts[name] = (len(some), right, wrong)
    return counts
