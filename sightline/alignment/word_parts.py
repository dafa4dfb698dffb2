"""The parts of a written word: its characters, its letters without the punctuation around them, and what that ends.

Placeholders (`{0}`) and entities (`&mdash;`) are one character each: a placeholder is a letter, an entity whatever it
stands for.
"""

from __future__ import annotations

import html
import unicodedata
from collections import Counter
from functools import lru_cache

from sightline.alignment.scanning import find_markup

SIGNS = "%‰#@&*/\\_"  # punctuation by Unicode, but part of what is written: 5%, C#, AT&T
PARTNERS = {"¿": "?", "¡": "!"}
SENTENCE_ENDS = ".!?…。！？"
PAUSES = ",;:，；："
QUOTES = "\"'«»“”„‘’‹›"


def split_characters(word: str) -> list[str]:
    """Split a word into its characters; a placeholder or entity is one.

    >>> split_characters("a{0}!")
    ['a', '{0}', '!']
    """
    characters: list[str] = []
    position = 0
    for start, end in find_markup(word):
        if not word.startswith("<", start):
            characters += [*word[position:start], word[start:end]]
            position = end
    return [*characters, *word[position:]]


@lru_cache(1024)
def is_punctuation(character: str) -> bool:
    """Return whether a character, or the one that an entity stands for, is punctuation or a space."""
    if character.startswith("&"):
        character = html.unescape(character)
    return len(character) == 1 and (
        character.isspace() or (unicodedata.category(character)[0] == "P" and character not in SIGNS)
    )


def find_core(characters: list[str]) -> tuple[int, int]:
    """Find where a word begins and ends without the punctuation around it; one of punctuation only is all there is."""
    letters = [number for number, character in enumerate(characters) if not is_punctuation(character)]
    return (letters[0], letters[-1] + 1) if letters else (0, len(characters))


def core_of(word: str) -> tuple[int, int]:
    """Return the offsets of a word's first letter and of the end of its last.

    >>> core_of("¿{0}?")
    (1, 4)
    """
    characters = split_characters(word)
    start, stop = find_core(characters)
    return len("".join(characters[:start])), len("".join(characters[:stop]))


def is_all_punctuation(word: str) -> bool:
    """Return whether a word has no letters."""
    return all(map(is_punctuation, split_characters(word)))


def boundary_after(word: str) -> str:
    """Return what ends with a word: a sentence ("end"), part of one ("pause"), or nothing ("")."""
    characters = split_characters(word)
    ending = characters[0 if is_all_punctuation(word) else find_core(characters)[1] :]
    for name, signs in (("end", SENTENCE_ENDS), ("pause", PAUSES)):
        if any(html.unescape(character) in signs for character in ending):
            return name
    return ""


def count_inside(characters: list[str], inside: str, outside: str) -> int:
    """Return how many of the characters that end a word belong inside of an element.

    In the source the punctuation `inside` belonged there and `outside` did not. The same sign is the best evidence, one
    that does the same the next best; without any, signs are outside.
    """
    wanted, unwanted = (_count_kinds(split_characters(signs)) for signs in (inside, outside))
    score = best_score = best = 0
    # A sign that moves inside counts for it as much as it is found among those inside, and against it if outside.
    for number, character in enumerate(characters, 1):
        kinds = _kinds(character)
        score += sum(min(1, wanted[kind]) - min(1, unwanted[kind]) for kind in kinds)
        if score > best_score:
            best_score, best = score, number
    return best


def _kinds(character: str) -> tuple[str, ...]:
    """Return a sign and the kind of sign it is, in which the languages differ."""
    character = html.unescape(character) if character.startswith("&") else character
    for signs in (SENTENCE_ENDS, PAUSES):
        if character in signs:
            return character, signs
    return (QUOTES,) if character in QUOTES else (character,)


def _count_kinds(characters: list[str]) -> Counter[str]:
    return Counter(kind for character in characters for kind in _kinds(character))
