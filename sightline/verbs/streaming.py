"""Alignments while decoding: each word with its links as soon as it is there, by greedy search.

A word is complete when the next one begins; its rows are then those that a teacher-forced pass would give
(`sightline.verbs.decoding_rows`), and its links those of `align` in this direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from types import TracebackType
from typing import Any

from torch import Tensor
from transformers.generation.streamers import BaseStreamer

from sightline.alignment.extraction import extract_alignment
from sightline.attribution import Attribution, Tokens
from sightline.errors import InputError
from sightline.methods.adapter import ADAPTER
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.text.words import tokens_of_ids
from sightline.verbs.align_options import LAYERED_METHODS, AlignOptions
from sightline.verbs.aligning import build_aligner
from sightline.verbs.decoding_rows import AdapterRows, LayerRows
from sightline.verbs.explaining import Pair
from sightline.verbs.readout import Readout
from sightline.verbs.translating import load_translator

ROW_BY_ROW = ("argmax", "argmax-words", "pieces", "threshold")
ROW_BY_ROW_METHODS = (ADAPTER, *LAYERED_METHODS)


@dataclass(frozen=True)
class AlignedWord:
    """A word of the translation, its number from 0, and the source words that it is linked to, with confidences."""

    number: int
    word: str
    sources: Mapping[int, float]


class AlignmentStreamer(BaseStreamer):
    """A streamer for transformers' `generate` that tells each word with its links, once it is complete.

    with AlignmentStreamer(model, "The cat sleeps.", print) as streamer:
        model.module.generate(**tokenizer("The cat sleeps.", return_tensors="pt"), num_beams=1, streamer=streamer)
    """

    def __init__(
        self, model: Any, source: str, on_word: Callable[[AlignedWord], None], align: Mapping[str, Any] | None = None
    ) -> None:
        """Prepare to translate a source; `align` has the options of `align` that tell how to read one direction."""
        self.model = load(model).facing(source)
        if self.model.task != "translate":
            raise InputError(f"{type(self.model.module).__name__} has no cross-attention to read while it decodes.")
        self.example = Pair(1, source, None).encode(self.model)
        self.on_word = on_word
        readout, self._options = _find_readout(self.model, align or {})
        build = AdapterRows if readout.method == ADAPTER else LayerRows
        self._rows: AdapterRows | LayerRows = build(self.model, self.example, readout)
        self._ids: list[int] = []
        self._start: list[int] = []
        self._told = 0

    def __enter__(self) -> AlignmentStreamer:
        self._rows.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rows.stop()

    def put(self, value: Tensor) -> None:
        """Take what `generate` gives: first what the decoder starts with, then token by token."""
        if not self._start:
            self._start = value.reshape(-1).tolist()
            return
        self._rows.take_step()
        self._ids += value.reshape(-1).tolist()
        self._tell(finished=False)

    def end(self) -> None:
        """Report the last word."""
        self._rows.finish(self._output)
        self._tell(finished=True)

    @property
    def _output(self) -> Example:
        """Return the example with what has been decoded so far."""
        return self.model.with_output(self.example, [*self._start[:1], *self._ids])

    def _tell(self, finished: bool) -> None:
        tokens = tokens_of_ids(self.model.tokenizer, self._ids)
        complete = len(tokens.words) - (not finished)
        while self._told < complete:
            self.on_word(self._aligned(tokens, self._told))
            self._told += 1

    def _aligned(self, tokens: Tokens, number: int) -> AlignedWord:
        positions = [position for position, word in enumerate(tokens.word_ids) if word == number]
        rows = self._rows.of(positions, self._output)
        positions = positions[: len(rows)]
        links = extract_alignment(
            Attribution(rows, source=self.example.source, target=tokens.take(positions)),
            self._options.chosen_extraction,
            self._options.threshold,
        )
        sources = {source: confidence for (source, _), confidence in links.confidences.items()}
        return AlignedWord(number, tokens.words[number], sources)


def stream_translation(
    model: Any, source: str, *, align: Mapping[str, Any] | None = None, **generation: Any
) -> Iterator[AlignedWord]:
    """Translate a text greedily, and give each word with its links as soon as the model has made it.

    `align` has the options of `align` that tell how to read one direction; what it leaves open is as `align` has it:
    the adapter where there is one, what is remembered, or else the default for few pairs.
    """
    loaded = load_translator(model, generation)
    if generation.get("num_beams", 1) != 1:
        raise InputError("Words are given while they are made, which beams may take back: translate(align=True) waits.")
    told: SimpleQueue[AlignedWord | BaseException | None] = SimpleQueue()
    abandoned = Event()

    def tell(word: AlignedWord) -> None:
        if abandoned.is_set():
            raise _NobodyListens
        told.put(word)

    streamer = AlignmentStreamer(loaded, source, tell, align)

    def generate() -> None:
        try:
            with loaded.evaluating(), streamer:
                loaded.answer(
                    [streamer.example], streamer=streamer, **{"num_beams": 1, "do_sample": False} | generation
                )
            told.put(None)
        except BaseException as error:  # it belongs to whoever waits for words
            told.put(error)

    # The model answers in a thread of its own, but as it would here: calibrated or not, for example.
    return _listen(Thread(target=copy_context().run, args=(generate,), daemon=True), told, abandoned)


class _NobodyListens(Exception):  # noqa: N818  it is no error
    pass


def _listen(
    thread: Thread, told: SimpleQueue[AlignedWord | BaseException | None], abandoned: Event
) -> Iterator[AlignedWord]:
    thread.start()
    try:
        while (word := told.get()) is not None:
            if isinstance(word, BaseException):
                raise word
            yield word
    finally:
        abandoned.set()
        thread.join()


def _find_readout(model: LoadedModel, options: Mapping[str, Any]) -> tuple[Readout, AlignOptions]:
    """Return how `align` reads this direction, as remembered or by default; nothing is tried out for it."""
    aligner = build_aligner(model, **options)
    readout = aligner.choose(iter(())).forward
    if readout.method not in ROW_BY_ROW_METHODS:
        raise InputError(f"While decoding only {', '.join(ROW_BY_ROW_METHODS)} can be read, not {readout.method}.")
    extraction = aligner.options.chosen_extraction
    if extraction not in ROW_BY_ROW:
        raise InputError(
            f"The extraction {extraction} needs the whole translation; while decoding: {', '.join(ROW_BY_ROW)}."
        )
    return readout, aligner.options
