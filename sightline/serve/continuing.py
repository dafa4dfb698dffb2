"""A causal model's continuation, told word by word while it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor
from transformers.generation.streamers import BaseStreamer

from sightline.models.loaded import LoadedModel
from sightline.text.words import tokens_of_ids

GREEDY = {"num_beams": 1, "do_sample": False}
"""Options of `generate`: a beam could take words back, and a second run should continue as the first did."""


class Continuation(NamedTuple):
    """What the model wrote, as it stands and as words.

    `target` is the text that `explain` takes for the same pieces; None where the tokenizer would cut it otherwise.
    """

    text: str
    words: tuple[str, ...]
    target: str | None


def continue_text(model: LoadedModel, source: str, on_word: Callable[[int, str], None]) -> Continuation:
    """Continue a text greedily, and call `on_word` with each word's number and text once it is complete."""
    prompt = model.encode(source, None)
    with model.evaluating():
        [ids] = model.answer([prompt], streamer=_Words(model, on_word), **GREEDY)
    words = tokens_of_ids(model.tokenizer, ids).words
    target = " ".join(words)
    is_same = bool(target) and model.encode(source, target).labels == ids
    return Continuation(model.text_of(ids), words, target if is_same else None)


class _Words(BaseStreamer):
    """Take what `generate` gives, first the prompt and then token by token; a word is complete when the next begins."""

    def __init__(self, model: LoadedModel, on_word: Callable[[int, str], None]) -> None:
        self._model = model
        self._on_word = on_word
        self._ids: list[int] | None = None
        self._told = 0

    def put(self, value: Tensor) -> None:
        if self._ids is None:
            self._ids = []
            return
        self._ids += value.reshape(-1).tolist()
        self._tell(unfinished=1)

    def end(self) -> None:
        self._tell(unfinished=0)

    def _tell(self, unfinished: int) -> None:
        words = tokens_of_ids(self._model.tokenizer, self._ids or []).words
        for number in range(self._told, len(words) - unfinished):
            self._on_word(number, words[number])
            self._told = number + 1
