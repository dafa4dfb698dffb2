"""The method `adapter` against its adapter asked directly, and similarity against cosines one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import zoo
from methods.literal import close

import sightline
from sightline.attend.alignment import AdapterShape, AlignmentAdapter
from sightline.attend.hooks import hooks
from sightline.errors import InputError
from sightline.methods.adapter import read_both_ways
from sightline.methods.similarity import SimilaritySettings, similarity
from sightline.models.loaded import LoadedModel

PAIRS = list(zip(zoo.SOURCES[:2], zoo.TARGETS[:2], strict=True))


def adapted(name: str) -> LoadedModel:
    """Return a model in double precision, with an adapter of random weights."""
    model = zoo.fresh_precise(name)
    torch.manual_seed(1)
    shape = AdapterShape((zoo.WIDTH,) * (zoo.LAYERS + 1), (zoo.WIDTH,) * (zoo.LAYERS + 1), width=4)
    model.adapters[model.direction] = AlignmentAdapter(shape).double().eval().requires_grad_(False)
    return model


def normalized(layers, norms) -> torch.Tensor:
    return torch.cat([norm(states[0]) for norm, states in zip(norms, layers, strict=True)], -1)


def literal_posterior(queries: torch.Tensor, keys: torch.Tensor, null: torch.nn.Linear, real: np.ndarray) -> list:
    """Compute one softmax a row over the real positions and NULL, position by position."""
    rows = []
    for query in queries:
        weights = [
            math.exp(query @ key / math.sqrt(len(query))) if ok else 0.0 for key, ok in zip(keys, real, strict=True)
        ]
        weights.append(math.exp(null(query)))
        rows.append([weight / math.fsum(weights) for weight in weights])
    return rows


@pytest.mark.parametrize("name", ["marian", "t5"])
@torch.no_grad()
def test_both_ways_are_what_they_define(name: str) -> None:
    model = adapted(name)
    adapter = model.adapter
    for source, target in PAIRS:
        example = model.encode(source, target)
        output = model.module(**model.inputs(model.batch([example])), output_hidden_states=True)
        encoder = normalized(output.encoder_hidden_states, adapter.encoder_norms)
        decoder = normalized(output.decoder_hidden_states, adapter.decoder_norms)
        following = [min(row + 1, len(decoder) - 1) for row in example.rows]
        queries = adapter.query(torch.cat([decoder[list(example.rows)], decoder[following]], -1))
        keys = adapter.key(encoder)
        both = read_both_ways(model, model.batch([example]))[0]
        for why, asking, asked, null, tokens in (
            (both.forward, queries[:, :4], keys[:, :4], adapter.no_source, example.source),
            (both.backward, keys[:, 4:], queries[:, 4:], adapter.no_target, example.target),
        ):
            expected = np.array(literal_posterior(asking, asked, null, ~tokens.special))
            last = np.flatnonzero(tokens.special)[-1]  # where NULL stands
            expected[:, last] += expected[:, -1]
            close(why.scores, torch.from_numpy(expected[:, :-1]))
        why = sightline.explain(model, source, target, method="adapter")
        np.testing.assert_array_equal(why.scores, both.forward.scores)


ENCODERS = ["marian", "pegasus", "m2m100", "t5", "bert-classifier", "roberta-classifier", "distilbert-classifier"]


@pytest.mark.parametrize("name", ENCODERS)
@torch.no_grad()
def test_similarity_is_what_it_defines(name: str) -> None:
    model = zoo.precise(name)
    sources, targets = ([model.encode(pair[side], None) for pair in PAIRS] for side in (0, 1))
    encoder = model.module.base_model if "classifier" in name else model.module.get_encoder()

    def states(example, layer: int) -> torch.Tensor:
        return encoder(torch.tensor([example.ids]), output_hidden_states=True).hidden_states[layer][0]

    for measure, layer, chosen in (("cosine", None, 1), ("cosine", -1, 2), ("dot", 0, 0), ("dot", -3, 0)):
        found = similarity(model, sources, targets, SimilaritySettings(layer=layer, measure=measure))
        for source, target, why in zip(sources, targets, found, strict=True):
            x, y = states(source, chosen), states(target, chosen)
            expected = torch.stack([torch.stack([t @ s for s in x]) for t in y])
            if measure == "cosine":
                expected = torch.stack([torch.cosine_similarity(t[None], x) for t in y])
            close(why.scores, expected)
    last = next(module for module in encoder.modules() if isinstance(module, torch.nn.ModuleList))[-1]
    with hooks(before=[(last, lambda *_: pytest.fail("the last layer is not needed"))]):
        similarity(model, sources, targets, SimilaritySettings(layer=0))
    for layer in (-4, 3):
        with pytest.raises(InputError, match=f"There is no layer {layer}: .* numbered 0 to 2"):
            similarity(model, sources, targets, SimilaritySettings(layer=layer))
