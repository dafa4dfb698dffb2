"""A language pair made by a seeded grammar, with the exact word alignment of every sentence pair.

It needs no download and has what makes real alignment hard: word frequencies by Zipf's law, inflection that
agrees across words, reordering (near: adjectives and adpositions change sides; far: the verb goes to the end
of its clause), concepts that take two words on one side, words without a counterpart, and nouns whose
translation the verb of their clause decides. The target is a function of the source, so that a perfect
translation exists.

    source   clause       subject verb [object] [partner of the verb] [adposition noun phrase] [adverb]
             noun phrase  [article | determiner] [adjective]* noun
    target   clause       subject [particle] [object] [noun phrase adposition] [adverb] verb
             noun phrase  [determiner] noun [adjective]*
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import no_type_check

from sightline.data import lexicon
from sightline.data.lexicon import WordClass, build_lexicon
from sightline.errors import InputError


@dataclass(frozen=True)
class LanguageSettings:
    """What a generated language pair is like; a setting leaves the rest of the language as it was."""

    stems: int = 2000
    """The number of stems of each language, of which inflection makes two to four words each."""
    zipf: float = 1.0
    """The exponent of Zipf's law by which stems are drawn; 0 draws them uniformly."""
    clauses: int = 2
    """The greatest number of clauses in a sentence."""
    inflection: bool = True
    """Whether nouns have number and case, verbs tense and number, and adjectives agree with their noun."""
    local_reordering: bool = True
    """Whether, in the target, adjectives follow their noun and adpositions their noun phrase."""
    long_reordering: bool = True
    """Whether, in the target, the verb ends its clause."""
    fertility: float = 0.1
    """The share of concepts that take two words on one side."""
    unaligned: float = 0.5
    """The share of nouns with an article in the source, and of subjects with a particle in the target: words
    without counterpart."""
    ambiguity: float = 0.05
    """The share of nouns with two translations, of which the verb of the clause selects one."""
    seed: int = 0
    """The language itself: another seed has other words."""

    def __post_init__(self) -> None:
        if not 20 <= self.stems <= 100_000:
            raise InputError(f"stems is {self.stems}: choose a number from 20 to 100000.")
        if self.clauses < 1:
            raise InputError(f"clauses is {self.clauses}: a sentence needs at least 1.")
        if self.zipf < 0:
            raise InputError(f"zipf is {self.zipf}: the exponent cannot be negative.")
        for name in ("fertility", "unaligned", "ambiguity"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}: a share lies between 0 and 1.")


@dataclass(frozen=True, slots=True)
class GeneratedPair:
    """A sentence, its translation, and the links (source word, target word) between them, counted from 0."""

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: frozenset[tuple[int, int]]

    @property
    def source(self) -> str:
        """The source as text."""
        return " ".join(self.source_words)

    @property
    def target(self) -> str:
        """The target as text."""
        return " ".join(self.target_words)


class GeneratedLanguage:
    """A language pair that never runs out of sentences, the same ones in every process."""

    def __init__(self, settings: LanguageSettings | None = None) -> None:
        self.settings = settings or LanguageSettings()
        self.words = build_lexicon(
            stems=self.settings.stems,
            exponent=self.settings.zipf,
            fertility=self.settings.fertility,
            unaligned=self.settings.unaligned,
            ambiguity=self.settings.ambiguity,
            seed=self.settings.seed,
        )

    def stream(self, split: str = "train") -> Iterator[GeneratedPair]:
        """Yield sentence pairs without end; each name of a split has its own random stream."""
        rng = random.Random(f"sentences {self.settings.seed} {split}")
        while True:
            yield _Speaker(self.settings, self.words, rng).sentence()

    def pairs(self, count: int, split: str = "train") -> list[GeneratedPair]:
        """Return the first `count` sentence pairs of a split."""
        return list(islice(self.stream(split), count))


PLURAL, PAST = 0.3, 0.4
DETERMINER, OBJECT, ADPOSITION, ADVERB = 0.25, 0.7, 0.3, 0.25
ADJECTIVE_COUNTS = (0, 0, 0, 0, 0, 0, 1, 1, 1, 2)
NOMINATIVE, ACCUSATIVE = 0, 1

_Token = tuple[str, int | None]
"""A word, and the number of the unit of meaning that it expresses; None where it has no counterpart."""


@no_type_check
@dataclass(frozen=True, slots=True)
class _Phrase:
    """The same thing in both languages; words of one unit translate each other."""

    source: list[_Token] = field(default_factory=list)
    target: list[_Token] = field(default_factory=list)

    @staticmethod
    def join(source_order: "Iterable[_Phrase]", target_order: "Iterable[_Phrase]") -> "_Phrase":
        """Put phrases one after the other, in an order for each language."""
        return _Phrase(
            [token for phrase in source_order for token in phrase.source],
            [token for phrase in target_order for token in phrase.target],
        )


@no_type_check  # at run time: these small calls are many, and checking them would take ten times the work
class _Speaker:
    """Says one sentence in both languages at once.

    Every random draw is made whatever the settings are, so that a setting changes only what it concerns.
    """

    def __init__(self, settings: LanguageSettings, words: dict[str, WordClass], rng: random.Random) -> None:
        self.settings = settings
        self.words = words
        self.rng = rng
        self.units = count()

    def sentence(self) -> GeneratedPair:
        """Generate one to `clauses` clauses, joined by conjunctions, and link the words that share a unit."""
        parts = [self.clause()]
        for _ in range(self.rng.randrange(self.settings.clauses)):
            source, target = self.rng.choice(lexicon.CONJUNCTIONS)
            parts += [self.unit([source], [target]), self.clause()]
        tokens = _Phrase.join(parts, parts)
        positions: dict[int | None, list[int]] = {}
        for position, (_, unit) in enumerate(tokens.source):
            positions.setdefault(unit, []).append(position)
        return GeneratedPair(
            source_words=tuple(word for word, _ in tokens.source),
            target_words=tuple(word for word, _ in tokens.target),
            links=frozenset(
                (i, j) for j, (_, unit) in enumerate(tokens.target) if unit is not None for i in positions[unit]
            ),
        )

    def clause(self) -> _Phrase:
        """Generate subject and verb, and at times an object, an adposition phrase and an adverb."""
        concept = self.words["verb"].draw(self.rng)
        past = self.inflected(PAST)
        subject, is_plural = self.noun_phrase(concept.topic, NOMINATIVE, is_subject=True)
        verb = self.unit(
            [concept.source + lexicon.SOURCE_VERB[past][is_plural], concept.source_partner],
            [concept.target_partner, concept.targets[0] + lexicon.TARGET_VERB[past][is_plural]],
        )
        rest = []
        if self.chance(OBJECT):
            rest.append(self.noun_phrase(concept.topic, ACCUSATIVE)[0])
        # The partner of a verb stands after the object, as in "pick the ball up".
        verb, partner = _Phrase(verb.source[:1], verb.target), _Phrase(source=verb.source[1:])
        rest.append(partner)
        if self.chance(ADPOSITION):
            rest.append(self.adposition_phrase(concept.topic))
        if self.chance(ADVERB):
            rest.append(self.adverb())
        parts = [subject, verb, *rest]
        return _Phrase.join(parts, [subject, *rest, verb] if self.settings.long_reordering else parts)

    def noun_phrase(self, topic: int, case: int, is_subject: bool = False) -> tuple[_Phrase, bool]:
        """Generate a noun with what belongs to it, and return whether it is plural."""
        noun = self.words["noun"].draw(self.rng)
        is_plural = self.inflected(PLURAL)
        opening = self.opening(is_plural)
        adjectives = [self.adjective(noun.gender, is_plural) for _ in range(self.rng.choice(ADJECTIVE_COUNTS))]
        shown_case = case if self.settings.inflection else NOMINATIVE
        head = self.unit(
            [noun.source_partner, noun.source + lexicon.SOURCE_NOUN[is_plural]],
            [noun.targets[topic] + lexicon.TARGET_NOUN[shown_case][is_plural], noun.target_partner],
        )
        parts = [opening, *adjectives, head]
        target_parts = [opening, head, *reversed(adjectives)] if self.settings.local_reordering else parts
        if is_subject and noun.takes_particle:
            target_parts = [*target_parts, _Phrase(target=[(lexicon.SUBJECT_PARTICLE, None)])]
        return _Phrase.join(parts, target_parts), is_plural

    def opening(self, is_plural: bool) -> _Phrase:
        """Generate a determiner, or an article (in the source only), or nothing."""
        has_determiner, has_article = self.chance(DETERMINER), self.chance(self.settings.unaligned)
        if has_determiner:
            source, target = self.rng.choice(lexicon.DETERMINERS)
            return self.unit([source], [target])
        return _Phrase(source=[(lexicon.ARTICLES[is_plural], None)] if has_article else [])

    def adjective(self, gender: int, is_plural: bool) -> _Phrase:
        """Generate an adjective that agrees with its noun."""
        adjective = self.words["adjective"].draw(self.rng)
        agreement = gender if self.settings.inflection else 0
        return self.unit(
            [adjective.source_partner, adjective.source + lexicon.SOURCE_ADJECTIVE[is_plural]],
            [adjective.targets[0] + lexicon.TARGET_ADJECTIVE[agreement][is_plural], adjective.target_partner],
        )

    def adposition_phrase(self, topic: int) -> _Phrase:
        """Generate a noun phrase with a preposition in the source, a postposition in the target."""
        source, target = self.rng.choice(lexicon.ADPOSITIONS)
        adposition = self.unit([source], [target])
        noun_phrase, _ = self.noun_phrase(topic, NOMINATIVE)
        parts = [adposition, noun_phrase]
        return _Phrase.join(parts, parts[::-1] if self.settings.local_reordering else parts)

    def adverb(self) -> _Phrase:
        """Generate an adverb, which has one form."""
        adverb = self.words["adverb"].draw(self.rng)
        return self.unit(
            [adverb.source_partner, adverb.source + lexicon.SOURCE_ADVERB],
            [adverb.targets[0] + lexicon.TARGET_ADVERB, adverb.target_partner],
        )

    def unit(self, source: list[str | None], target: list[str | None]) -> _Phrase:
        """Make words (where there are any) that translate each other."""
        unit = next(self.units)
        return _Phrase([(word, unit) for word in source if word], [(word, unit) for word in target if word])

    def chance(self, probability: float) -> bool:
        """Draw yes with a probability."""
        return self.rng.random() < probability

    def inflected(self, probability: float) -> bool:
        """Draw a feature that only inflection shows."""
        return self.chance(probability) and self.settings.inflection
