"""Which of two languages a text is in, by its words and by the character n-grams of words that are not listed.

It is made for models that translate both ways, from their own parallel training text (`sightline.training.languages`),
and stored beside the model. What both languages share (names, numbers, marks) speaks for neither, since parallel text
has it on both sides.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from sightline.errors import InputError
from sightline.files import write_text
from sightline.json_files import check_fields, read_json
from sightline.text.words import Text

FILE_NAME = "language-guess.json"
FILE_FORMAT = 1
LONGEST_PIECE = 4
WORD = re.compile(r"[^\W\d_]+")
LIMIT = 4.0
"""The most that one word counts, in log-odds: a foreign name does not decide about a sentence."""
SURE = 2.5
"""From here on, in log-odds, a language is sure: twelve to one."""
UNIT = 100  # the file has whole numbers, in hundredths


@dataclass(frozen=True)
class LanguageGuess:
    """The log-odds of the second language against the first, by whole word, or else as a sum over a word's pieces."""

    languages: tuple[str, str]
    words: Mapping[str, float]
    pieces: Mapping[str, float]

    def score(self, text: Text) -> float:
        """Return the log-odds of the second language against the first; 0 for a text without words."""
        return math.fsum(map(self._score_word, listed_words(text)))

    def language_of(self, text: Text) -> str | None:
        """Return the language of a text; None if that is not sure."""
        return self._named(self.score(text))

    def source_language_of(self, source: Text, target: Text) -> str | None:
        """Return the language of the source of a pair; None if that is not sure."""
        return self._named(self.score(source) - self.score(target))

    def _named(self, score: float) -> str | None:
        return self.languages[int(score > 0)] if abs(score) >= SURE else None

    @cached_property
    def _score_word(self) -> Callable[[str], float]:
        @lru_cache(maxsize=1 << 16)
        def score(word: str) -> float:
            if word not in self.words:
                return max(-LIMIT, min(LIMIT, sum(self.pieces.get(piece, 0.0) for piece in pieces_of(word))))
            return self.words[word]

        return score

    def save(self, folder: Path) -> None:
        """Write it beside a model."""
        plain = {
            "format": FILE_FORMAT,
            "languages": list(self.languages),
            "words": _in_units(self.words),
            "pieces": _in_units(self.pieces),
        }
        write_text(folder / FILE_NAME, json.dumps(plain, ensure_ascii=False, separators=(",", ":")) + "\n")


def read_language_guess(folder: Path) -> LanguageGuess | None:
    """Read what is stored beside a model; None if nothing is."""
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    remedy = "Restore it from a copy, or remove it: then the language of a source is to be named."
    fields = {"format": int, "languages": list, "words": dict, "pieces": dict}
    plain = read_json(path, fields, remedy)
    try:
        if plain["format"] != FILE_FORMAT:
            raise ValueError(f"its format is {plain['format']}, not {FILE_FORMAT}")
        names = plain["languages"]
        if len(names) != 2 or names[0] == names[1] or not all(isinstance(name, str) for name in names):
            raise ValueError("it does not name two languages")
        return LanguageGuess((names[0], names[1]), _from_units(plain["words"]), _from_units(plain["pieces"]))
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}. {remedy}") from None


def listed_words(text: Text) -> Iterator[str]:
    """Yield the words that tell a language, lower-case: not capitalised ones after the first, which are mostly names.

    Digits, marks and, in a text that is all in capitals, case do not matter.
    """
    whole = unicodedata.normalize("NFC", text if isinstance(text, str) else " ".join(text))
    all_capitals = whole.isupper()
    for number, word in enumerate(WORD.findall(whole)):
        if number == 0 or all_capitals or not word[0].isupper():
            yield word.casefold()


def pieces_of(word: str) -> set[str]:
    """Return the character n-grams of a word, its ends marked by a space."""
    marked = f" {word} "
    lengths = range(1, LONGEST_PIECE + 1)
    return {marked[start : start + size] for size in lengths for start in range(len(marked) - size + 1)} - {" "}


def _in_units(weights: Mapping[str, float]) -> dict[str, int]:
    return {key: round(weight * UNIT) for key, weight in weights.items()}


def _from_units(weights: Mapping[str, Any]) -> dict[str, float]:
    check_fields(weights, dict.fromkeys(weights, int))
    return {key: weight / UNIT for key, weight in weights.items()}
