"""What an encoder's attention does with every token: the weight that it gets, and the norm of what is weighted.

For each input, layer, head and token j (Kobayashi et al. 2020, eq. 3 and 4):

    received   the mean over queries i of alpha_ij
    lengths    || f(x_j) ||, with f(x) = (x W_V + b_V) W_O of the head
    inputs     || x_j ||, one for a layer

A head's norm || alpha_ij f(x_j) || is alpha_ij || f(x_j) ||, so that its mean over queries is received times lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sightline.attend.hooks import hooks
from sightline.attend.watch import watch
from sightline.errors import InputError
from sightline.methods.norms import transformed_vectors
from sightline.models.examples import Batch, Example
from sightline.models.inspection import AttentionLayer
from sightline.models.loaded import LoadedModel
from sightline.text.words import piece_names
from sightline.verbs.explaining import map_examples

CATEGORIES = ("[CLS]", "[SEP]", "comma & period", "others")
"""As Clark et al. 2019 have them."""
Pairs = Callable[[int, Float[np.ndarray, " pair"], Float[np.ndarray, " pair"]], None]
"""Takes, of one category, the pairs of a weight alpha_ij and the norm of f(x_j), for every query and token."""


@dataclass(frozen=True)
class Observed:
    """The tokens of one input, and what attention did with them."""

    ids: Int[np.ndarray, " token"]
    categories: Int[np.ndarray, " token"]
    received: Float[np.ndarray, "layer head token"]
    lengths: Float[np.ndarray, "layer head token"]
    inputs: Float[np.ndarray, "layer token"]


def categorize(tokenizer: Any, ids: Sequence[int]) -> Int[np.ndarray, " token"]:
    """Return the number of each token's category."""
    categories = []
    for token, piece in zip(ids, piece_names(tokenizer, ids), strict=True):
        named = {tokenizer.cls_token_id: 0, tokenizer.sep_token_id: 1}
        categories.append(named.get(token, 2 if piece.strip("▁") in (",", ".") else 3))
    return np.array(categories)


def observe(model: LoadedModel, examples: Sequence[Example], pairs: Pairs | None = None) -> Iterator[Observed]:
    """Run the model over examples; yield what it did with the tokens of each, in order."""

    def observe_batch(chosen: list[Example]) -> list[Observed]:
        with model.evaluating():
            return _observe_batch(model, chosen, pairs)

    return map_examples(model, examples, observe_batch)


@torch.no_grad()
def _observe_batch(model: LoadedModel, examples: list[Example], pairs: Pairs | None) -> list[Observed]:
    batch = model.batch(examples)
    categories = [categorize(model.tokenizer, example.ids) for example in examples]
    found: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = [[] for _ in examples]
    for weights, lengths, inputs in _read_layers(model, batch):
        real = [len(example.ids) for example in examples]
        alphas = [weights[i, :, :n, :n].numpy() for i, n in enumerate(real)]
        norms = [lengths[i, :, :n].numpy() for i, n in enumerate(real)]
        for i, n in enumerate(real):
            found[i].append((alphas[i].mean(1), norms[i], inputs[i, :n].numpy()))
        if pairs is not None:
            for category in range(len(CATEGORIES)):
                _give_pairs(alphas, norms, [kinds == category for kinds in categories], category, pairs)
    return [
        Observed(np.array(example.ids), kinds, *(np.stack(layers) for layers in zip(*per_layer, strict=True)))
        for example, kinds, per_layer in zip(examples, categories, found, strict=True)
    ]


def _give_pairs(
    alphas: Sequence[Float[np.ndarray, "head _ _"]],
    norms: Sequence[Float[np.ndarray, "head _"]],
    chosen: Sequence[Bool[np.ndarray, " _"]],
    category: int,
    pairs: Pairs,
) -> None:
    """Return the pairs of one category in one layer, of all inputs of a batch at once."""
    weights = [alpha[:, :, tokens] for alpha, tokens in zip(alphas, chosen, strict=True)]
    repeated = [
        np.broadcast_to(length[:, None, tokens], weight.shape).ravel()
        for length, tokens, weight in zip(norms, chosen, weights, strict=True)
    ]
    pairs(category, np.concatenate([weight.ravel() for weight in weights]), np.concatenate(repeated))


def _read_layers(model: LoadedModel, batch: Batch) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield the weights, the norms of f(x) by head, and the norms of x of every layer, on the CPU in float32."""
    layers = model.layers("encoder")
    given: dict[nn.Module, list[Tensor]] = {}

    def keep_input(module: nn.Module, args: tuple[Tensor, ...], _kwargs: object) -> None:
        given.setdefault(module, []).append(args[0].norm(dim=-1))

    projections = {_value_module(layer) for layer in layers}
    modules = {layer.module for layer in layers}
    with (
        hooks(before=[(module, keep_input) for module in projections]),
        watch(model.module, modules, record=("weights", "values")) as seen,
    ):
        model.run(batch)
    for layer in layers:
        record = layer.seen_by(seen)
        lengths = transformed_vectors(layer, record.values).norm(dim=-1).transpose(1, 2)  # (batch, head, token)
        inputs = given[_value_module(layer)][layer.call]
        yield record.weights.float().cpu(), lengths.float().cpu(), inputs.float().cpu()


def _value_module(layer: AttentionLayer) -> nn.Module:
    if layer.value is None:
        raise InputError(f"The value projection of {type(layer.module).__name__} is not known: choose another --model.")
    return layer.value.module


def singular_values(layer: AttentionLayer, heads: int) -> Float[np.ndarray, "head value"]:
    """Compute the singular values of each head's f as a linear map, greatest first (eq. 5 to 7).

    f~(x~) = x~ V~ O~ with x~ = [x 1], V~ = [[W_V 0] [b_V 1]] and O~ = [[W_O 0] [0 1]], which has rank d' + 1 at most.
    They are those of a small matrix: with V~ = Q R and O~' = P S, those of R S'.
    """
    matrices, biases = (part.detach().double().cpu() for part in layer.value_map(heads))
    outputs = layer.output_map(heads).detach().double().cpu()
    found = []
    for matrix, bias, output in zip(matrices, biases, outputs, strict=True):
        values = nn.functional.pad(matrix, (0, 1, 0, 1))
        values[-1, :-1], values[-1, -1] = bias, 1.0
        projection = nn.functional.pad(output, (0, 1, 0, 1))
        projection[-1, -1] = 1.0
        small = torch.linalg.qr(values).R @ torch.linalg.qr(projection.T).R.T
        found.append(torch.linalg.svdvals(small))
    return torch.stack(found).numpy()
