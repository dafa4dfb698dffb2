"""Translations, with the word alignment that the model itself gives: free decoding, then one teacher-forced pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import Any, NamedTuple, overload

from transformers import GenerationConfig

from sightline.alignment.links import Alignment
from sightline.alignment.markup import Markup, parse_against, parse_markup, strip_markup
from sightline.alignment.restoring import link_placeholders, restore_markup
from sightline.errors import InputError, check_names
from sightline.limits import MOST_BEAMS
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.text.words import Source, Text
from sightline.verbs.aligning import ModelAligner, build_aligner
from sightline.verbs.explaining import Pair, in_the_form_of, map_examples, pair_up, recognise_directions


@dataclass(frozen=True)
class Translation:
    """A translation; its alignment is to the words of the source, both split at white space."""

    text: str
    alignment: Alignment | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text.split())


@overload
def translate(model: Any, sources: str, **options: Any) -> Translation: ...
@overload
def translate(model: Any, sources: Sequence[Text], **options: Any) -> list[Translation]: ...
@overload
def translate(model: Any, sources: Iterator[Text], **options: Any) -> Iterator[Translation]: ...


def translate(
    model: Any,
    sources: Any,
    *,
    align: bool | Mapping[str, Any] = False,
    progress: bool | None = None,
    **generation: Any,
) -> Translation | list[Translation] | Iterator[Translation]:
    """Translate one text, a list of texts, or an iterator of which only a window is held at a time.

    `align` gives each translation its word alignment; instead of True it may be a mapping of the options of `align`.
    The other options are those of transformers' `generate`: num_beams, length_penalty and so on.
    """
    loaded = load_translator(model, generation)
    aligner = build_aligner(loaded, **(align if isinstance(align, Mapping) else {})) if align else None
    results = translate_pairs(loaded, pair_up(sources, None), generation, aligner)
    return in_the_form_of(sources, results, "Translating", progress)


def translate_pairs(
    model: LoadedModel, pairs: Iterator[Pair], generation: Mapping[str, Any], aligner: ModelAligner | None
) -> Iterator[Translation]:
    """Translate the sources of pairs that have no targets yet, and align them; in order, as they come."""
    answered = answer_pairs(model, recognise_directions(model, pairs), generation)
    return map(_translation, answered) if aligner is None else _with_alignments(answered, aligner)


@overload
def translate_markup(model: Any, texts: str, **options: Any) -> str: ...
@overload
def translate_markup(model: Any, texts: Sequence[str], **options: Any) -> list[str]: ...
@overload
def translate_markup(model: Any, texts: Iterator[str], **options: Any) -> Iterator[str]: ...


def translate_markup(
    model: Any,
    texts: Any,
    *,
    align: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    **generation: Any,
) -> str | list[str] | Iterator[str]:
    """Translate text with inline markup: tags and placeholders are taken out, and put back by the alignment.

    `align` has options of `align`; the others are those of transformers' `generate`.
    """
    loaded = load_translator(model, generation)
    results = translate_marked_pairs(loaded, pair_up(texts, None), generation, build_aligner(loaded, **(align or {})))
    return in_the_form_of(texts, results, "Translating", progress)


def translate_marked_pairs(
    model: LoadedModel, pairs: Iterator[Pair], generation: Mapping[str, Any], aligner: ModelAligner
) -> Iterator[str]:
    """Translate the sources of pairs, their markup put back by the alignment; in order, as they come."""
    given, to_translate = tee(pairs)
    plain = (pair._replace(source=" ".join(strip_markup(_text(pair.source, pair)))) for pair in to_translate)
    translations = translate_pairs(model, plain, generation, aligner)
    return (_restore(_text(pair.source, pair), one) for pair, one in zip(given, translations, strict=True))


@overload
def transfer_markup(model: Any, sources: str, targets: str, **options: Any) -> str: ...
@overload
def transfer_markup(model: Any, sources: Sequence[str], targets: Sequence[str], **options: Any) -> list[str]: ...
@overload
def transfer_markup(model: Any, sources: Iterator[str], targets: Iterable[str], **options: Any) -> Iterator[str]: ...


def transfer_markup(
    model: Any, sources: Any, targets: Any, *, progress: bool | None = None, **align: Any
) -> str | list[str] | Iterator[str]:
    """Put the markup of source texts onto translations that are already there; the other options are those of `align`.

    A translation has no tags yet; placeholders and entities that it has stay where they are. An entity that it lacks
    became something else there (`&amp;`: *y*) and is not put back.
    """
    results = mark_pairs(pair_up(sources, targets), build_aligner(model, **align))
    return in_the_form_of(sources, results, "Aligning", progress)


def mark_pairs(pairs: Iterator[Pair], aligner: ModelAligner) -> Iterator[str]:
    """Put the markup of sources onto their targets; in order, as they come."""
    to_align, to_mark = tee(_Marked.of(pair) for pair in pairs)
    words = (Pair(one.number, list(one.markup.words), one.words) for one in to_align)
    return map(_Marked.restore, to_mark, aligner.align(words))


class _Marked(NamedTuple):
    """A text with its number, the markup in it, and the words of its translation."""

    number: int
    text: str
    markup: Markup
    words: list[str]

    @classmethod
    def of(cls, pair: Pair) -> _Marked:
        source, target = _text(pair.source, pair), _text(pair.target, pair)
        return cls(pair.number, source, parse_against(source, target), target.split())

    def restore(self, alignment: Alignment) -> str:
        if not self.markup.words:
            return " ".join([*self.text.split(), *self.words])
        return restore_markup(self.markup, self.words, link_placeholders(self.markup, self.words, alignment))


def _text(side: Source | None, pair: Pair) -> str:
    if not isinstance(side, str):
        raise InputError(f"Pair {pair.number} is no text: markup is carried from a text onto its translation.")
    return side


def _restore(text: str, translation: Translation) -> str:
    assert translation.alignment is not None
    markup = parse_markup(text)
    return restore_markup(markup, translation.words, translation.alignment) if markup.words else text


def _with_alignments(pairs: Iterator[Pair], aligner: ModelAligner) -> Iterator[Translation]:
    kept, to_align = tee(pairs)
    for alignment, pair in zip(aligner.align(to_align), kept, strict=True):
        yield _translation(pair, alignment)


def load_translator(model: Any, generation: Mapping[str, Any]) -> LoadedModel:
    """Load a model that generates, and check the options to generate with."""
    loaded = load(model)
    if not loaded.generates:
        raise InputError(f"{type(loaded.module).__name__} does not generate text: take a translation model.")
    valid = [name for name in GenerationConfig().to_dict() if not name.startswith("_")]
    check_names("option of generate", generation, valid)
    beams = generation.get("num_beams")
    if beams is not None and (type(beams) is not int or not 1 <= beams <= MOST_BEAMS):
        raise InputError(f"num_beams is {beams!r}: it should be a whole number from 1 to {MOST_BEAMS}.")
    penalty = generation.get("length_penalty")
    if penalty is not None and not (isinstance(penalty, int | float) and math.isfinite(penalty)):
        raise InputError(f"length_penalty is {penalty!r}: it should be a number.")
    try:
        GenerationConfig(**generation).validate()
    except (ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"The options of generate cannot be used: {reason}") from error
    return loaded


def answer_pairs(model: LoadedModel, pairs: Iterator[Pair], generation: Mapping[str, Any]) -> Iterator[Pair]:
    """Let the model give the targets; in order, as they come. A source without words has none."""

    def answer(examples: list[Example]) -> list[Example]:
        with model.evaluating():
            answers = model.answer(examples, **generation)
        return [model.with_output(example, ids) for example, ids in zip(examples, answers, strict=True)]

    to_answer, every_pair = tee(pairs)
    examples = (pair.encode(model) for pair in to_answer if _has_words(pair.source))
    answers = map_examples(model, examples, answer, copies=generation.get("num_beams") or 1)
    for pair in every_pair:
        if _has_words(pair.source):
            example = next(answers)
            yield pair._replace(target=" ".join(example.label_tokens.words), example=example)
        else:
            yield pair._replace(target="")


def _translation(pair: Pair, alignment: Alignment | None = None) -> Translation:
    assert isinstance(pair.target, str)
    return Translation(pair.target, alignment)


def _has_words(text: Source) -> bool:
    return bool(text.split() if isinstance(text, str) else text)
