"""Alignments while decoding: each word with its links as soon as it is there, by greedy search.

At every step of `generate` the row of attention weights, or of norms, is taken that the step computes anyway. Rows are
those that a teacher-forced pass would give: the row of the step that gives a piece (read by output) is there with the
piece, the row of the step that reads it (read by input) one step later. A word is complete when the next one begins,
and then it has both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from types import TracebackType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.generation.streamers import BaseStreamer

from sightline.attend.projections import precise
from sightline.attend.watch import Record, watch
from sightline.attribution import Attribution, Tokens
from sightline.errors import InputError
from sightline.methods import find_method
from sightline.methods.attention import choose_head, read_layers
from sightline.methods.norms import gram_matrices, norms_by_head, norms_of_sum
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.text.words import tokens_of_ids
from sightline.verbs.choosing import choose
from sightline.verbs.explaining import Pair
from sightline.verbs.remembering import recall
from sightline.verbs.translating import answer_pairs, load_translator
from sightline.verbs.ways import LAYERED_METHODS, Asked, Way

ROW_BY_ROW = ("argmax", "argmax-words", "pieces", "threshold")


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
        self.pair = Pair(1, source, None)
        self.example = self.pair.encode(self.model)
        self.way = _way(self.model, self.pair, align or {})
        self.on_word = on_word
        self._settings = find_method(self.way.method).settings(self.way.method, self.way.settings)
        self._layers = read_layers(self.model, self._settings).layers
        self._grams: dict[tuple[nn.Module, int], Tensor] = {}
        self._watching = ExitStack()
        self._ids: list[int] = []
        self._rows: list[Float[np.ndarray, " source"]] = []
        self._start: list[int] = []
        self._told = 0

    def __enter__(self) -> AlignmentStreamer:
        parts = ("weights", "values") if self.way.method == "norms" else ("weights",)
        self._seen = self._watching.enter_context(
            watch(self.model.module, [x.module for x in self._layers], record=parts, keep=self._last_row)
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching.close()

    def put(self, value: Tensor) -> None:
        """Take what `generate` gives: first what the decoder starts with, then token by token."""
        if not self._start:
            self._start = value.reshape(-1).tolist()
            return
        self._take_row()
        self._ids += value.reshape(-1).tolist()
        self._tell(finished=False)

    def end(self) -> None:
        """Tell the last word."""
        if self._settings.reading == "input":
            self._read_last_piece()
        self._tell(finished=True)

    @torch.no_grad()
    def _read_last_piece(self) -> None:
        """Run the step that reads the last piece of a translation that was cut short: `generate` had no need of it."""
        example = self.model.with_output(self.example, [*self._start[:1], *self._ids])
        if len(example.decoder_ids) > len(example.labels):
            self.model.run(self.model.batch([example]))
            self._take_row()

    def _take_row(self) -> None:
        rows = [layer.seen_by(self._seen).cpu().numpy() for layer in self._layers]
        self._seen.calls.clear()
        self._rows.append(np.mean(rows, axis=0))

    @torch.no_grad()
    def _last_row(self, module: nn.Module, record: Record) -> Float[Tensor, " source"]:
        """Score the source for the last step of a layer, as the method does."""
        assert record.weights is not None
        weights = record.weights[:, :, -1:]
        if self.way.method == "attention":
            scores = choose_head(weights, self._settings.head)
        else:
            assert record.values is not None
            key = (module, len(self._seen.calls[module]))
            if key not in self._grams:  # the source's values are the same in every step
                layer = next(layer for layer in self._layers if layer.module is module)
                self._grams[key] = gram_matrices(layer, precise(record.values))
            gram, head = self._grams[key], self._settings.head
            by_head = head != "sum"
            scores = choose_head(norms_by_head(weights, gram), head) if by_head else norms_of_sum(weights, gram)
        return scores[0, 0].float()

    def _tell(self, finished: bool) -> None:
        tokens = tokens_of_ids(self.model.tokenizer, self._ids)
        complete = len(tokens.words) - (not finished)
        while self._told < complete:
            self.on_word(self._aligned(tokens, self._told))
            self._told += 1

    def _aligned(self, tokens: Tokens, number: int) -> AlignedWord:
        later = self._settings.reading == "input"
        positions = [i for i, word in enumerate(tokens.word_ids) if word == number and i + later < len(self._rows)]
        rows = np.array([self._rows[i + later] for i in positions]).reshape(len(positions), len(self.example.source))
        links = self.way.extract(Attribution(rows, source=self.example.source, target=tokens.take(positions)))
        sources = {source: confidence for (source, _), confidence in links.confidences.items()}
        return AlignedWord(number, tokens.words[number], sources)


def stream_translation(
    model: Any, source: str, *, align: Mapping[str, Any] | None = None, **generation: Any
) -> Iterator[AlignedWord]:
    """Translate a text greedily, and give each word with its links as soon as the model has made it.

    `align` has the options of `align` that tell how to read one direction; what it leaves open is as remembered, or
    else chosen by a translation made for it beforehand, which takes time.
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


def _way(model: LoadedModel, pair: Pair, options: Mapping[str, Any]) -> Way:
    named = dict(options)
    asked = Asked(
        named.pop("method", "auto"), named.pop("extraction", None), named.pop("threshold", None), settings=named
    )
    if asked.method not in ("auto", *LAYERED_METHODS):
        raise InputError(f"While decoding only {' and '.join(LAYERED_METHODS)} can be read, not {asked.method}.")
    if asked.extraction is not None and asked.extraction not in ROW_BY_ROW:
        raise InputError(
            f"The extraction {asked.extraction} needs the whole translation; while decoding: {', '.join(ROW_BY_ROW)}."
        )
    if not asked.is_open:
        return Way(asked.method, asked.settings, asked.extraction or "argmax", asked.threshold)
    choice = recall(model, None, asked)
    return (choice or choose(model, None, list(answer_pairs(model, iter([pair]), {"num_beams": 1})), asked)).forward
