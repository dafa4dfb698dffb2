"""Value zeroing (Mohebbi et al. 2023): what a layer's output loses when one value is zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sightline.attend.hooks import hooks
from sightline.attend.projections import precise
from sightline.attend.watch import Call, Change, watch
from sightline.errors import InputError
from sightline.methods.attention import read_layers
from sightline.methods.scored import Scored
from sightline.methods.settings import ValueZeroingSettings
from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel

Output = tuple[nn.Module, int]
"""A block of a stack, and the number of its call."""


@torch.no_grad()
def value_zeroing(model: LoadedModel, batch: Batch, settings: ValueZeroingSettings) -> Scored:
    """Return the cosine distance between each layer's output with and without each value.

    1 - cos(x_t, x_t without v_j), in every layer by itself: the layers above see the clean output.
    """
    reading = read_layers(model, settings.reading())
    layers = [layer.module for layer in reading.layers]
    # Where one module serves several layers, so does its block: the output of each is known by the number of its call.
    outputs = [(_block_of(model.module, layer.module), layer.call) for layer in reading.layers]
    blocks = list(dict.fromkeys(block for block, _ in outputs))
    clean: dict[Output, Tensor] = {}
    with _at_outputs(blocks, clean.setdefault), watch(model.module, layers) as seen:
        model.run(batch)
    weights = reading.layers[0].seen_by(seen).weights
    assert weights is not None
    if any(states.shape[1] != weights.shape[2] for states in clean.values()):
        raise InputError(
            f"{type(model.module).__name__} attends step by step, where a value also counts for all later steps: "
            "use erasure or a gradient method."
        )
    distances = [torch.zeros_like(weights[:, 0]) for _ in layers]
    for column in range(weights.shape[-1]):
        changed: dict[Output, Tensor] = {}

        def keep(output: Output, states: Tensor, changed: dict[Output, Tensor] = changed) -> Tensor:
            changed[output] = states
            return clean[output]

        def zeroed(call: Call, column: int = column) -> Tensor:
            values = call.values.clone()
            values[:, :, column] = 0
            return values

        with _at_outputs(blocks, keep), watch(model.module, layers, record=(), change=Change(values=zeroed)):
            model.run(batch)
        for number, output in enumerate(outputs):
            similarity = F.cosine_similarity(precise(changed[output]), precise(clean[output]), dim=-1)
            distances[number][..., column] = 1 - similarity
    per_layer = [reading.rows_of(model, batch, distance) for distance in distances]
    return reading.scored(model, batch, per_layer, head_axis=False)


def _block_of(model: nn.Module, layer: nn.Module) -> nn.Module:
    """Find the block of a stack that an attention layer belongs to: the outermost element of a list of modules."""
    for module in model.modules():
        if isinstance(module, nn.ModuleList):
            for block in module:
                if any(part is layer for part in block.modules()):
                    return block
    return layer


@contextmanager
def _at_outputs(blocks: list[nn.Module], change: Callable[[Output, Tensor], Tensor]) -> Iterator[None]:
    """Show the states that each block gives in each of its calls, and let them be replaced."""
    calls = dict.fromkeys(blocks, 0)

    def hook(block: nn.Module, _args: object, output: Any) -> Any:
        states = output[0] if isinstance(output, tuple) else output
        states = change((block, calls[block]), states)
        calls[block] += 1
        return (states, *output[1:]) if isinstance(output, tuple) else states

    with hooks(after=[(block, hook) for block in blocks]):
        yield
