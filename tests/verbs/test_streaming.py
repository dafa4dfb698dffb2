"""Alignments while decoding are those of a teacher-forced pass, and come as soon as a word is complete."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
import zoo

import sightline
from sightline.alignment.extraction import extract_alignment
from sightline.attend.alignment import AdapterShape, AlignmentAdapter
from sightline.errors import InputError

SEARCH = {"max_new_tokens": 14, "num_beams": 1}
WAYS = [
    {"method": method, "layer": layer, "reading": reading, "extraction": extraction, **more}
    for method, layer, reading, extraction, more in [
        ("attention", 0, "output", "argmax", {}),
        ("attention", "mean", "input", "pieces", {}),
        ("attention", 1, "input", "argmax-words", {"head": 2}),
        ("norms", 1, "output", "pieces", {}),
        ("norms", 0, "input", "argmax", {}),
        ("norms", "mean", "input", "threshold", {"head": 1}),
    ]
]


CASES = [(name, way) for name in ["marian", "t5", "m2m100", "bart", "nllb"] for way in WAYS]
CASES += [(name, way) for name in ["lstm", "conv"] for way in WAYS[:1]]  # one head, and perhaps one layer


@pytest.mark.parametrize(("name", "way"), CASES)
def test_words_are_aligned_as_by_teacher_forcing(name: str, way: dict[str, Any]) -> None:
    model = zoo.model(name)
    for source in zoo.SOURCES[:2]:
        forced = sightline.translate(model, source, align=way, **SEARCH)
        words = list(sightline.stream_translation(model, source, align=way, max_new_tokens=14))
        assert tuple(word.word for word in words) == forced.words
        assert [word.number for word in words] == list(range(len(words)))
        assert forced.alignment is not None
        confidences = {(i, word.number): c for word in words for i, c in word.sources.items()}
        assert confidences.keys() == forced.alignment.links
        for link, confidence in forced.alignment.confidences.items():
            assert confidences[link] == pytest.approx(confidence, abs=1e-5)


def test_a_word_is_told_when_the_next_one_begins() -> None:
    model = zoo.model("marian")
    told: list[sightline.AlignedWord] = []
    tokens = []

    class Counting(sightline.AlignmentStreamer):
        def put(self, value: torch.Tensor) -> None:
            super().put(value)
            tokens.append((value.reshape(-1).tolist(), len(told)))

    inputs = model.tokenizer(zoo.SOURCES[0], return_tensors="pt")
    with Counting(model, zoo.SOURCES[0], told.append, WAYS[4]) as streamer:
        ids = model.module.generate(**inputs, num_beams=1, do_sample=False, max_new_tokens=14, streamer=streamer)
    assert [token for some, _ in tokens for token in some] == ids[0].tolist()
    for step, (_, count) in enumerate(tokens[1:], 1):
        complete = len(model.text_of(ids[0, 1 : step + 1].tolist()).split()) - 1
        assert count == max(complete, 0)
    assert len(told) == len(model.text_of(ids[0].tolist()).split())


def test_nothing_is_left_behind_when_nobody_listens() -> None:
    model = zoo.fresh("marian")
    before = threading.active_count()
    trainable = [parameter.requires_grad for parameter in model.module.parameters()]
    implementation = model.module.config._attn_implementation
    words = sightline.stream_translation(model, zoo.SOURCES[4], align=WAYS[0])
    next(words)
    words.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert model.module.config._attn_implementation == implementation
    assert [parameter.requires_grad for parameter in model.module.parameters()] == trainable


def test_a_failure_reaches_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.fresh("marian")
    words = sightline.stream_translation(model, zoo.SOURCES[0], align=WAYS[0])
    monkeypatch.setattr(model.module, "generate", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(words)


def links_of(words: list[sightline.AlignedWord]) -> set[tuple[int, int]]:
    return {(source, word.number) for word in words for source in word.sources}


def test_what_is_open_is_read_as_by_align() -> None:
    model = zoo.fresh("marian")
    model.adapters.clear()
    forced = sightline.translate(model, zoo.SOURCES[0], align=True, **SEARCH)
    words = list(sightline.stream_translation(model, zoo.SOURCES[0], max_new_tokens=14))
    assert forced.alignment is not None
    assert links_of(words) == forced.alignment.links
    # What is remembered is used as soon as it is there.
    many = [" ".join(zoo.SOURCES[i % 5].split()[: 3 + i % 3]) for i in range(24)]
    choice = sightline.explain_choice(model, many, many)
    assert choice.forward.settings["layer"] != -1
    words = list(sightline.stream_translation(model, zoo.SOURCES[0], max_new_tokens=14))
    forced = sightline.translate(model, zoo.SOURCES[0], align=True, **SEARCH)
    assert forced.alignment is not None
    assert links_of(words) == forced.alignment.links


@pytest.mark.parametrize("name", ["marian", "t5", "lstm", "conv"])
@pytest.mark.parametrize("most", [14, 3])
def test_an_adapter_is_read_while_decoding(name: str, most: int) -> None:
    model = zoo.fresh(name)
    with model.evaluating(), torch.no_grad():
        states = model.states_of_all_layers(model.probe())
    torch.manual_seed(0)
    shape = AdapterShape(*(tuple(layer.shape[-1] for layer in side) for side in states), 8)
    model.adapters[model.direction] = AlignmentAdapter(shape).eval()
    for source in zoo.SOURCES[:2]:
        words = list(sightline.stream_translation(model, source, max_new_tokens=most))
        forced = sightline.explain(model, source, method="adapter", generation={"max_new_tokens": most, "num_beams": 1})
        assert links_of(words) == extract_alignment(forced).links


def test_mistakes() -> None:
    model = zoo.model("marian")
    for message, options in {
        "needs the whole translation": {"align": {"extraction": "mutual"}},
        "only adapter, norms, attention can be read": {"align": {"method": "erasure"}},
        "beams may take back": {"num_beams": 4},
        "no option of generate 'beam'": {"beam": 1},
    }.items():
        with pytest.raises(InputError, match=message):
            sightline.stream_translation(model, "The cat", **options)
    with pytest.raises(InputError, match="has no cross-attention"):
        sightline.stream_translation(zoo.model("gpt2"), "The cat")
