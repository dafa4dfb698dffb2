"""Norms against the full tensor of weighted vectors, which they never build."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import zoo
from methods.literal import close, example_of

import sightline
from sightline.attend.watch import watch
from sightline.errors import InputError
from sightline.methods.norms import norms_by_head, norms_of_sum

KINDS = [
    *((name, kind) for name in zoo.TRANSLATORS if name not in zoo.OURS for kind in ("cross", "encoder", "decoder")),
    *((name, "cross") for name in ("lstm", "conv", "lstm-classifier", "transformer-classifier")),
    ("transformer-classifier", "encoder"),
    *((name, "decoder") for name in zoo.DECODERS),
    *((name, "encoder") for name in zoo.FILLERS),
]


def weighted_vectors(model, example, kind):
    """Build alpha f(x) of every layer as it is defined: (head, target, source, model)."""
    batch = model.batch([example])
    layers = model.layers(kind)
    with torch.no_grad(), watch(model.module, [x.module for x in layers], record=("weights", "values")) as seen:
        model.module(**model.inputs(batch))
    for layer in layers:
        weights, values = layer.seen_by(seen).weights[0], layer.seen_by(seen).values[0]
        heads, width = values.shape[0], values.shape[2]
        none = layer.output(values.new_zeros(1, heads * width))
        vectors = []
        for head in range(heads):
            alone = values.new_zeros(values.shape[1], heads * width)
            alone[:, head * width : (head + 1) * width] = values[head]
            vectors.append(layer.output(alone) - none)
        yield weights[..., None] * torch.stack(vectors)[:, None], torch.stack(vectors)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_norms_are_what_they_define(name: str, kind: str) -> None:
    model, example = example_of(name)
    target = zoo.targets(name)
    why = sightline.explain(model, zoo.texts(name)[0], target and target[0], method="norms", kind=kind)
    by_head = sightline.explain(model, zoo.texts(name)[0], target and target[0], method="norms", kind=kind, head="all")
    rows = list(range(len(example.source))) if kind == "encoder" else list(example.rows)
    for layer, (weighted, _) in enumerate(weighted_vectors(model, example, kind)):
        width = why.scores.shape[-1]
        close(why.scores[layer], weighted.sum(0).norm(dim=-1)[rows][:, :width])
        close(by_head.scores[layer], weighted.norm(dim=-1)[:, rows][..., :width])


def test_vectors_without_weights() -> None:
    model, example = example_of("marian")
    why = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="norms", of="vectors", head="all", layer=0)
    _, vectors = next(weighted_vectors(model, example, "cross"))
    close(why.scores[:, 0], vectors.norm(dim=-1))
    np.testing.assert_allclose(why.scores[:, 0], why.scores[:, -1], rtol=1e-6)


def test_vectors_of_a_decoder_are_its_own_positions() -> None:
    """The longest source is as long as the longest target, and each stands beside a short one."""
    model = zoo.precise("marian")
    long, short = "el gato el gato", "Sí."
    pairs = [(long, short), (short, long)]
    whole = sightline.explain(model, *map(list, zip(*pairs, strict=True)), method="norms", of="vectors", kind="decoder")
    assert len(model.encode(long, short).ids) == len(model.encode(short, long).decoder_ids)
    for pair, together in zip(pairs, whole, strict=True):
        alone = sightline.explain(model, *pair, method="norms", of="vectors", kind="decoder")
        assert (alone.scores > 0).all()
        close(together.scores, torch.from_numpy(alone.scores.copy()))


def test_settings_are_checked_whatever_the_head() -> None:
    for settings, sentence in (
        ({"layer": "al"}, "The layer is 'al': it should be a number, 'all' or 'mean'."),
        ({"reading": "inptu"}, "There is no reading 'inptu'"),
        ({"kind": "self"}, "There is no kind of attention 'self'"),
        ({"head": "max"}, "The head is 'max': it should be a number, 'sum' or 'all' or 'mean'."),
        ({"of": "weights"}, "There is no quantity 'weights'"),
    ):
        with pytest.raises(InputError, match=sentence):
            sightline.explain(zoo.precise("marian"), "cat", "gato", method="norms", **settings)


@pytest.mark.parametrize("name", ["marian", "gpt2"])
@pytest.mark.parametrize("method", ["attention", "norms"])
def test_the_reading_by_input_is_one_step_later(name: str, method: str) -> None:
    model, _ = example_of(name)
    output, by_input = (
        sightline.explain(model, zoo.SOURCES, zoo.TARGETS, method=method, reading=reading, layer=-1)
        for reading in ("output", "input")
    )
    for one, other in zip(output, by_input, strict=True):
        if name == "marian":  # the step that would be given the end token does not exist
            assert other.target.pieces == one.target.pieces[:-1]
            np.testing.assert_allclose(other.scores, one.scores[1:], rtol=1e-6)
        else:
            assert other.target.pieces == one.target.pieces
            np.testing.assert_allclose(other.scores[:-1], one.scores[1:], rtol=1e-6)


@pytest.mark.parametrize("name", ["marian", "t5"])
@pytest.mark.parametrize("method", ["attention", "norms"])
def test_by_input_a_translation_that_was_cut_keeps_its_last_row(name: str, method: str) -> None:
    """The step that reads the last piece is what the decoder would have done next."""
    model = zoo.precise(name)
    short, longer = (
        sightline.explain(model, zoo.SOURCES[0], method=method, reading="input", generation=options)
        for options in ({"max_new_tokens": n, "min_new_tokens": n, "do_sample": False} for n in (5, 6))
    )
    assert len(short.target) == 5
    assert short.target.pieces == longer.target.pieces[:5]
    close(short.scores, torch.from_numpy(longer.scores[:, :5].copy()))
    output = sightline.explain(
        model, zoo.SOURCES[0], method=method, generation={"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False}
    )
    assert output.target == short.target
    close(short.scores[:, :-1], torch.from_numpy(output.scores[:, 1:].copy()))


def test_a_translation_that_takes_every_position_is_read_as_far_as_there_are_steps() -> None:
    model = zoo.precise("marian")
    assert model.max_length == 128
    cut = {"max_new_tokens": 128, "min_new_tokens": 128, "do_sample": False}
    why = sightline.explain(model, "cat", reading="input", generation=cut)
    assert len(why.target) == 127
    endless = {"min_new_tokens": 127, "do_sample": False}
    long = " ".join(["cat"] * 60)
    assert len(sightline.explain(model, long, reading="input", generation=endless).target) == 127


def test_gram_matrices_are_enough() -> None:
    weights = torch.rand(2, 3, 4, 5, dtype=torch.float64).softmax(-1)
    vectors = torch.randn(2, 5, 3, 7, dtype=torch.float64)
    gram = vectors @ vectors.transpose(-1, -2)
    full = weights.permute(0, 2, 3, 1)[..., None] * vectors[:, None]  # (batch, target, source, head, model)
    torch.testing.assert_close(norms_of_sum(weights, gram), full.sum(3).norm(dim=-1), atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(
        norms_by_head(weights, gram), full.norm(dim=-1).permute(0, 3, 1, 2), atol=1e-12, rtol=1e-12
    )
