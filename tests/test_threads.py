"""Several threads on one loaded model: each gets what it would have got alone."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.attend.watch import eager_attention, watch
from sightline.errors import InputError
from sightline.methods import METHODS
from sightline.models.loaded import LoadedModel

THREADS = 4
SMALL = {"integrated_gradients": {"steps": 3, "baseline": "zero"}, "perturbation_mask": {"steps": 3}}
JOBS = [
    *((name, SMALL.get(name, {})) for name in METHODS),
    ("word_saliency", {"smoothgrad": 4}),
    ("attention", {"smoothgrad": 4, "head": "all"}),
    ("gradient", {"smoothgrad": 8, "prefix": True}),
    ("erasure", {"how": "zero"}),
    *[("translate", {})] * 4,
]


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, items))


def elsewhere(function: Callable[[], Any]) -> Any:
    """Call a function in another thread, and wait for it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def answer(model: LoadedModel, name: str, job: tuple[str, dict[str, Any]]) -> Any:
    method, settings = job
    try:
        if method == "translate":
            return sightline.translate(model, "A cat sees the bird", max_new_tokens=6).text
        target = "Un gato ve" if zoo.targets(name) else None
        return sightline.explain(model, "A cat sees the bird", target, method=method, **settings).scores.tolist()
    except InputError as error:  # refused in every thread alike
        return str(error)


@pytest.mark.parametrize("name", ["marian", "gemma2", "bert-classifier", "lstm-linear", "calibrated"])
def test_every_method_gives_what_it_gives_alone(name: str) -> None:
    kind = "marian" if name == "calibrated" else name

    def build() -> LoadedModel:
        model = zoo.fresh(kind)
        if name != "calibrated":
            return model
        torch.manual_seed(1)
        return sightline.calibrate(model, fusion="fixed", ratio=2.0)

    alone = build()
    expected = [answer(alone, kind, job) for job in JOBS]
    shared = build()  # new, so that threads also find its attention layers at the same time
    order = [number for number in range(len(JOBS)) for _ in range(THREADS)]
    random.Random(0).shuffle(order)
    found = at_once(lambda number: answer(shared, kind, JOBS[number]), order)
    wrong = [JOBS[number] for number, one in zip(order, found, strict=True) if one != expected[number]]
    assert wrong == []


def test_a_change_of_embeddings_is_nobody_elses() -> None:
    model = zoo.fresh("marian")
    batch = model.batch([model.encode(zoo.SOURCES[0], zoo.TARGETS[0])])

    def scored() -> torch.Tensor:
        with torch.no_grad():
            return model.log_probs(batch)

    before = scored()
    with model.changed_embeddings(source=lambda e: e * 0, prefix=lambda e: e * 0):
        assert not torch.equal(scored(), before)
        assert torch.equal(elsewhere(scored), before)
        context = copy_context()
        assert not torch.equal(elsewhere(lambda: context.run(scored)), before)


@pytest.mark.parametrize("name", ["marian", *zoo.LANGUAGES])
def test_sources_and_targets_are_tokenised_at_once(name: str) -> None:
    model = zoo.fresh(name)
    pairs = list(zip(zoo.SOURCES, zoo.TARGETS, strict=True))
    expected = [model.encode(*pair) for pair in pairs]
    found = at_once(lambda number: model.encode(*pairs[number % len(pairs)]), list(range(300)))
    wrong = [number for number, example in enumerate(found) if example != expected[number % len(pairs)]]
    assert wrong == []


def test_dropout_stays_off_until_the_last_thread_is_done() -> None:
    model = zoo.fresh("marian")
    model.module.train()
    trainable = [parameter for parameter in model.module.parameters() if parameter.requires_grad]
    with model.evaluating():
        other = model.evaluating()
        elsewhere(other.__enter__)
    assert not model.module.training
    assert not any(parameter.requires_grad for parameter in trainable)
    elsewhere(lambda: other.__exit__(None, None, None))
    assert all(module.training for module in model.module.modules())
    assert all(parameter.requires_grad for parameter in trainable)
    assert len(trainable) > 10


def test_the_reference_of_a_watch_leaves_the_model_to_others() -> None:
    model = zoo.fresh("t5")
    batch = model.batch([model.encode(zoo.SOURCES[0], zoo.TARGETS[0])])
    with torch.no_grad(), eager_attention(model.module) as reference, watch(model.module) as seen:
        expected = reference(**model.inputs(batch)).logits
        assert not seen.calls
        assert {one.data_ptr() for one in reference.parameters()} == {p.data_ptr() for p in model.module.parameters()}
        torch.testing.assert_close(model.module(**model.inputs(batch)).logits, expected)
        assert seen.calls


def test_a_model_that_cannot_be_copied_has_a_reference_all_the_same() -> None:
    model = zoo.fresh("marian")
    model.module.open_file = (number for number in range(3))
    with eager_attention(model.module) as reference:
        assert reference is model.module
        assert model.module.config._attn_implementation == "eager"
    assert model.module.config._attn_implementation == "sdpa"
    assert len(model.attention_layers) == 3 * zoo.LAYERS


def test_words_stream_from_the_model_as_it_is_here() -> None:
    torch.manual_seed(1)
    model = sightline.calibrate(zoo.fresh("marian"), fusion="fixed", ratio=50.0)
    options = {"align": {"method": "attention", "layer": 0, "reading": "output", "extraction": "argmax"}}

    def words() -> list[str]:
        return [one.word for one in sightline.stream_translation(model, zoo.SOURCES[0], max_new_tokens=8, **options)]

    with model.uncalibrated():
        original = sightline.translate(model, zoo.SOURCES[0], num_beams=1, max_new_tokens=8).words
        assert words() == list(original)
    assert words() != list(original)


def test_threads_of_a_user_need_no_pool() -> None:
    model, found = zoo.fresh("marian"), []
    expected = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="word_saliency", smoothgrad=4)

    def explain() -> None:
        found.append(sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="word_saliency", smoothgrad=4))

    threads = [Thread(target=explain) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        np.testing.assert_array_equal(one.scores, expected.scores)
    assert len(found) == THREADS
