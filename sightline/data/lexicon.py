"""The words of a generated language pair: pronounceable stems, inflection, and what translates what.

Open classes (nouns, verbs, adjectives, adverbs) are drawn from a seed. Stems and endings have such shapes
that every inflected word has one reading: source stems end in a vowel and source endings begin with a
consonant; target stems end in a consonant other than n and s, and target endings begin with a vowel. Closed
classes are the literal tables below, shorter than any stem.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import no_type_check

DETERMINERS = (("mi", "tho"), ("tu", "var"), ("se", "nim"), ("ko", "dul"))
ADPOSITIONS = (("en", "lo"), ("ba", "sha"), ("pu", "rek"), ("ti", "wen"), ("du", "gal"))
CONJUNCTIONS = (("e", "yo"), ("fa", "kim"), ("nu", "ther"))

ARTICLES = ("la", "las")
"""Source only: before a noun, singular and plural."""
SUBJECT_PARTICLE = "wa"
"""Target only: after the subject, for the nouns that take it."""

PARTNERS = {
    "noun": (("ge", "zo", "ri", "po"), ("eth", "bru", "ish", "nor")),
    "verb": (("ob", "un", "ap", "iz"), ("dro", "kei", "stu", "hem")),
    "adjective": (("ve", "lu"), ("ol", "gri")),
    "adverb": (("da", "me"), ("ar", "shu")),
}
"""The second words, source and target, of concepts that take two words on one side and one on the other."""

# Endings: the last index is the number (singular, plural); a first one is the case, tense or gender.
SOURCE_NOUN = ("", "s")
TARGET_NOUN = (("a", "i"), ("an", "in"))
SOURCE_VERB = (("t", "nt"), ("r", "rn"))
TARGET_VERB = (("as", "es"), ("us", "os"))
SOURCE_ADJECTIVE = ("l", "ls")
TARGET_ADJECTIVE = (("o", "oi"), ("e", "ei"))
SOURCE_ADVERB = "m"
TARGET_ADVERB = "u"

VOWELS = "aeiou"
SOURCE_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z")
TARGET_ONSETS = ("b", "d", "g", "h", "k", "l", "m", "n", "r", "t", "v", "sh", "th", "br", "dr", "kr", "st")
TARGET_MIDDLES = ("b", "d", "g", "k", "l", "m", "n", "r", "v", "sh", "th", "ld", "nd", "rn")
TARGET_FINALS = ("r", "l", "k", "t", "m", "d")

SHARES = {"noun": 0.5, "verb": 0.25, "adjective": 0.2, "adverb": 0.05}
"""The share of the stems that each open class has."""
SHORT_STEMS = 300
"""How many stems of a class, the most frequent ones, have two syllables; rare words have three."""


@dataclass(frozen=True, slots=True)
class Concept:
    """One thing to say, and its words on both sides."""

    source: str
    targets: tuple[str, str]
    """The target stems, indexed by the clause's topic; they differ only for ambiguous nouns."""
    source_partner: str | None
    target_partner: str | None
    gender: int
    """Of a noun: which endings its adjectives take in the target."""
    topic: int
    """Of a verb: which translation it selects for the ambiguous nouns of its clause."""
    takes_particle: bool
    """Of a noun: whether it is followed by the target's particle when it is the subject."""


@no_type_check  # at run time, where `draw` is called for every word
class WordClass:
    """The concepts of one open class, most frequent first, drawn by Zipf's law: p(rank r) ~ r^-exponent."""

    def __init__(self, concepts: list[Concept], exponent: float) -> None:
        self.concepts = concepts
        self._cumulative = list(accumulate(rank**-exponent for rank in range(1, len(concepts) + 1)))

    def draw(self, rng: random.Random) -> Concept:
        """Draw one concept."""
        return rng.choices(self.concepts, cum_weights=self._cumulative)[0]


def build_lexicon(
    stems: int, exponent: float, fertility: float, unaligned: float, ambiguity: float, seed: int
) -> dict[str, WordClass]:
    """Draw the open classes of a language pair, the same for the same arguments in every process."""
    rng = random.Random(f"lexicon {seed}")
    source_stems = _DistinctStems(_source_stem, rng)
    target_stems = _DistinctStems(_target_stem, rng)

    def concept(word_class: str, rank: int) -> Concept:
        # All draws are made whatever the shares are, so that a share changes only the words that it concerns.
        syllables = 2 if rank < SHORT_STEMS else 3
        source, first, second = (
            source_stems.draw(syllables),
            target_stems.draw(syllables),
            target_stems.draw(syllables),
        )
        is_fertile, is_ambiguous, takes_particle = (rng.random() < share for share in (fertility, ambiguity, unaligned))
        wide_side, gender, topic = rng.randrange(2), rng.randrange(2), rng.randrange(2)
        partner = rng.choice(PARTNERS[word_class][wide_side])
        return Concept(
            source=source,
            targets=(first, second if word_class == "noun" and is_ambiguous else first),
            source_partner=partner if is_fertile and wide_side == 0 else None,
            target_partner=partner if is_fertile and wide_side == 1 else None,
            gender=gender,
            topic=topic,
            takes_particle=takes_particle,
        )

    return {
        name: WordClass([concept(name, rank) for rank in range(max(1, round(share * stems)))], exponent)
        for name, share in SHARES.items()
    }


class _DistinctStems:
    """Stems of one language, none of them twice."""

    def __init__(self, make: Callable[[random.Random, int], str], rng: random.Random) -> None:
        self._make = make
        self._rng = rng
        self._seen: set[str] = set()

    def draw(self, syllables: int) -> str:
        """Draw a stem that was not drawn before."""
        while (stem := self._make(self._rng, syllables)) in self._seen:
            pass
        self._seen.add(stem)
        return stem


def _source_stem(rng: random.Random, syllables: int) -> str:
    """Make a stem of open syllables, such as `miro`, that repeats no syllable."""
    consonants = rng.sample(SOURCE_ONSETS, syllables)
    return "".join(consonant + rng.choice(VOWELS) for consonant in consonants)


def _target_stem(rng: random.Random, syllables: int) -> str:
    """Make a stem that ends in a closed syllable, such as `shaldor`."""
    middles = [rng.choice(VOWELS) + rng.choice(TARGET_MIDDLES) for _ in range(syllables - 1)]
    return rng.choice(TARGET_ONSETS) + "".join(middles) + rng.choice(VOWELS) + rng.choice(TARGET_FINALS)
