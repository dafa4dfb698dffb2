"""The tasks of models: what each can do, what it reads and gives as output, and which words these are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import torch

from sightline.attribution import Tokens
from sightline.errors import InputError
from sightline.models.examples import Example
from sightline.models.names import Task
from sightline.text.words import Encoded, Part, encode, piece_names, tokens_of_ids, word_part

Words = tuple[str, ...]


@dataclass(frozen=True)
class Prompt:
    """What is put around a source: languages, a prefix, a chat template."""

    source_lang: str | None = None
    target_lang: str | None = None
    prefix: str = ""
    chat: bool = False


class Texts:
    """The texts of a model that only represents them: there is no output."""

    takes_segments = True
    """A text may have a second segment: in encoders, whose tokenizers separate segments."""
    has_output = False
    generates = False
    """The output is given token by token, each with those before it as input."""
    continues = False
    """The source and its output are one sequence."""
    classifies = False
    """The output is one label for the whole text."""
    fills_gaps = False
    """The output is a word for each gap in the text."""

    def __init__(self, module: Any, tokenizer: Any, prompt: Prompt) -> None:
        self.module = module
        self.tokenizer = tokenizer
        self.prompt = prompt

    def encode(self, source: Words, target: Words | None, second: Words = ()) -> Example:
        """Make the example of a source, perhaps of two segments, and, if it is given, its target."""
        if target is not None:
            raise InputError(f"{type(self.module).__name__} only represents text: it has no output, so give no target.")
        return self._without_output(source, second)

    def answered(self, example: Example, ids: tuple[int, ...]) -> Example:
        """Complete an example with the output that the model answered."""
        return example

    def _without_output(self, source: Words, second: Words = ()) -> Example:
        if second and not self.takes_segments:
            raise InputError(
                f"{type(self.module).__name__} reads one text: two segments are for encoders such as BERT. "
                "Give several texts, or the words of one, as a list."
            )
        encoded = self._encode_source(source, second=second)
        if self.takes_segments:
            self._check_separators(encoded)
        segments = encoded.segments if any(encoded.segments) and self._knows_segments else ()
        return Example(encoded.ids, encoded.tokens(source + second), segments=segments)

    def _encode_source(self, words: Words, after: Sequence[Part] = (), second: Words = ()) -> Encoded:
        parts = [*self._source_parts(words), *after]
        second_parts = [word_part(second)] if second else []
        return encode(self.tokenizer, parts, second_parts, special_tokens=not self.prompt.chat)

    @property
    def _knows_segments(self) -> bool:
        """Return whether the model embeds the numbers of segments; others tell them apart by separators alone."""
        return "token_type_ids" in signature(self.module.forward).parameters

    def _check_separators(self, encoded: Encoded) -> None:
        """Refuse separators that are written in a text: what follows would count as the first segment."""
        separators = {self.tokenizer.sep_token_id, self.tokenizer.cls_token_id} - {None}
        for token, part, piece in zip(encoded.ids, encoded.parts, encoded.pieces, strict=True):
            if part is not None and token in separators:
                raise InputError(
                    f"The source holds {piece}, which only the tokenizer may add: give two segments as a tuple "
                    "(first, second), on the command line with --second."
                )

    def _source_parts(self, words: Words) -> list[Part]:
        prefix = self.prompt.prefix
        parts = [Part(prefix), word_part(words)]
        if self.prompt.chat:
            content = prefix + " ".join(words)
            turns = [{"role": "user", "content": content}]
            text: str = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            start = text.rindex(content)
            parts = [Part(text[:start]), *parts, Part(text[start + len(content) :])]
        return [part for part in parts if part.text]


class TranslationTexts(Texts):
    """A source for the encoder, a target that the decoder reads one step behind."""

    takes_segments = False
    has_output = generates = True

    def encode(self, source: Words, target: Words | None, second: Words = ()) -> Example:
        example = self._without_output(source, second)
        if target is None:
            return example
        encoded = encode(self.tokenizer, [word_part(target)], as_target=True)
        return self._translated(example, self._decoder_ids(encoded.ids), encoded.ids, encoded.tokens(target))

    def answered(self, example: Example, ids: tuple[int, ...]) -> Example:
        return self._translated(example, ids[:-1], ids[1:], tokens_of_ids(self.tokenizer, ids[1:]))

    def _decoder_ids(self, labels: tuple[int, ...]) -> tuple[int, ...]:
        """Shift labels to the right, as the model was trained on them."""
        if hasattr(self.module, "prepare_decoder_input_ids_from_labels"):
            return tuple(self.module.prepare_decoder_input_ids_from_labels(labels=torch.tensor([labels]))[0].tolist())
        return (self.module.config.decoder_start_token_id, *labels[:-1])

    def _translated(
        self, example: Example, decoder_ids: tuple[int, ...], labels: tuple[int, ...], target: Tokens
    ) -> Example:
        if target.word_ids and target.word_ids[-1] is not None:
            decoder_ids = (*decoder_ids, labels[-1])  # no end token: the step that reads the last word counts too
        prefix = Tokens(
            piece_names(self.tokenizer, decoder_ids[:1]) + target.pieces[:-1],
            (None, *target.word_ids[:-1]),
            target.words,
        )
        rows = tuple(range(len(labels)))
        return Example(example.ids, example.source, target, prefix, labels, rows, decoder_ids)


class ContinuationTexts(Texts):
    """A prompt and its continuation, one sequence."""

    takes_segments = False
    has_output = generates = continues = True

    def encode(self, source: Words, target: Words | None, second: Words = ()) -> Example:
        if target is None or second:
            return self._without_output(source, second)
        between = [] if self.prompt.chat else [Part(" ")]
        encoded = self._encode_source(source, [*between, word_part(target)])
        last_part = max(part for part in encoded.parts if part is not None)
        start = encoded.parts.index(last_part)
        stop = len(encoded.ids) - encoded.parts[::-1].index(last_part)  # an end token after it is no output here
        prompt = Example(encoded.ids[:start], encoded.tokens(source, 0, start))
        return self._continued(prompt, encoded.ids[start:stop], encoded.tokens(target, start, stop))

    def answered(self, example: Example, ids: tuple[int, ...]) -> Example:
        return self._continued(example, ids, tokens_of_ids(self.tokenizer, ids))

    def _continued(self, prompt: Example, ids: tuple[int, ...], target: Tokens) -> Example:
        if not prompt.ids:
            raise InputError("The source is empty for this model: it needs at least one token before the target.")
        start = len(prompt.ids)
        rows = tuple(range(start - 1, start + len(ids) - 1))
        return Example(prompt.ids + ids, prompt.source, target, target.take(range(len(ids) - 1)), ids, rows)


class ClassificationTexts(Texts):
    """A text and its label."""

    has_output = classifies = True

    def encode(self, source: Words, target: Words | None, second: Words = ()) -> Example:
        example = self._without_output(source, second)
        return example if target is None else self.answered(example, (self.label_id(" ".join(target)),))

    def answered(self, example: Example, ids: tuple[int, ...]) -> Example:
        label = self.module.config.id2label[ids[0]]
        return replace(example, label_tokens=Tokens((label,), (0,), (label,)), labels=ids, label_rows=(0,))

    def label_id(self, label: str) -> int:
        """Find a label by its name or number."""
        names = self.module.config.id2label
        for number, name in names.items():
            if label in (name, str(number)):
                return int(number)
        raise InputError(f"There is no label {label!r}: this model knows {', '.join(names.values())}.")


class GapTexts(Texts):
    """A text with gaps, and a word for each."""

    has_output = fills_gaps = True

    def encode(self, source: Words, target: Words | None, second: Words = ()) -> Example:
        example = self._without_output(source, second)
        gaps = self.gaps(example)
        if not gaps:
            raise InputError(
                f"The source has no {self.tokenizer.mask_token}: put one where the model is to fill in a word."
            )
        if target is None:
            return example
        if len(target) != len(gaps):
            raise InputError(f"The target has {len(target)} words for {len(gaps)} gaps: give one word for each.")
        ids = tuple(self._one_piece(word) for word in target)
        return self._filled(example, ids, target)

    def answered(self, example: Example, ids: tuple[int, ...]) -> Example:
        return self._filled(example, ids, piece_names(self.tokenizer, ids))

    def gaps(self, example: Example) -> tuple[int, ...]:
        """List the positions that are to be filled in."""
        return tuple(i for i, token in enumerate(example.ids) if token == self.tokenizer.mask_token_id)

    def _one_piece(self, word: str) -> int:
        # Byte-level vocabularies know most words only with the space before them.
        for text in (" " + word, word):
            ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
            if len(ids) == 1:
                return ids[0]
        raise InputError(f"The word {word!r} is more than one piece for this tokenizer: a gap takes one piece.")

    def _filled(self, example: Example, ids: tuple[int, ...], words: Words) -> Example:
        target = Tokens(words, tuple(range(len(words))), words)
        return replace(example, label_tokens=target, labels=ids, label_rows=self.gaps(example))


TEXTS: dict[Task, type[Texts]] = {
    "translate": TranslationTexts,
    "continue": ContinuationTexts,
    "classify": ClassificationTexts,
    "fill": GapTexts,
    "represent": Texts,
}
