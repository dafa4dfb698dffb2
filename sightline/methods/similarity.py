"""How alike the encoder's states of source and target are: alignment by any encoder, without a decoder.

Both sentences are encoded apart from each other with the same encoder, and each target position is compared with each
source position (Jalili Sabet et al. 2020, SimAlign: the cosine; Dou and Neubig 2021, awesome-align: the dot product).
It is no row of METHODS, since it explains no output: it compares two inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from sightline.attend.hooks import hooks
from sightline.attribution import Attribution
from sightline.errors import InputError, unknown_name
from sightline.models.examples import Batch, Example
from sightline.models.loaded import LoadedModel
from sightline.values import checked_values

SIMILARITY = "similarity"
MEASURES = ("cosine", "dot")
USUAL_DEPTH = 2 / 3  # layer 8 of 12, which both papers found best for multilingual BERT


@dataclass(frozen=True)
class SimilaritySettings:
    """The settings of `similarity`.

    `layer` counts the encoder's states: 0 are the embeddings, 1 what the first layer gives, -1 the last; by default two
    thirds of the way up.
    """

    layer: int | None = None
    measure: str = "cosine"

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise unknown_name("measure of similarity", self.measure, MEASURES)

    @classmethod
    def of(cls, changes: Mapping[str, Any]) -> SimilaritySettings:
        """Change some defaults; an unknown setting is an error that lists the valid ones."""
        return cls(**checked_values(cls, changes, SIMILARITY))


@torch.no_grad()
def similarity(
    model: LoadedModel,
    sources: Sequence[Example],
    targets: Sequence[Example],
    settings: SimilaritySettings,
) -> list[Attribution]:
    """Compare the states of each source with those of its target.

    cosine: x_j . y_t / (||x_j|| ||y_t||)    dot: x_j . y_t
    """
    with model.evaluating():
        source_states = encoder_states(model, model.batch(sources), settings)
        target_states = encoder_states(model, model.batch(targets), settings)
    scores = (target_states @ source_states.transpose(1, 2)).float().cpu().numpy()  # (batch, target, source)
    return [
        Attribution(
            scores[number, : len(target.source), : len(source.source)],
            source=source.source,
            target=target.source,
            method=SIMILARITY,
            settings=asdict(settings),
        )
        for number, (source, target) in enumerate(zip(sources, targets, strict=True))
    ]


def encoder_states(
    model: LoadedModel, batch: Batch, settings: SimilaritySettings
) -> Float[Tensor, "batch position width"]:
    """Return the states of one layer of the encoder, of length 1 where their cosine is wanted."""
    encoder = model.module.get_encoder() if model.has_encoder_and_decoder else model.module.base_model
    inputs = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
    layers = _find_layers(encoder)
    if layers:
        layer = _number_layer(settings.layer, len(layers) + 1)
        states = _run_below(encoder, layers[layer], inputs) if layer < len(layers) else encoder(**inputs)[0]
    else:
        output = encoder(**inputs, output_hidden_states=True)
        every = getattr(output, "hidden_states", None) or (output[0],)
        states = every[_number_layer(settings.layer, len(every))]
    return F.normalize(states, dim=-1) if settings.measure == "cosine" else states


def _number_layer(layer: int | None, count: int) -> int:
    """Return the number from 0 of a layer's states."""
    if layer is None:
        return round((count - 1) * USUAL_DEPTH)
    if not -count <= layer < count:
        raise InputError(f"There is no layer {layer}: the encoder's states are numbered 0 to {count - 1}.")
    return layer % count


def _find_layers(encoder: nn.Module) -> nn.ModuleList | None:
    """Find the layers of an encoder that runs each of its own once, one after the other."""
    count = getattr(encoder.config, "num_hidden_layers", None)
    lists = (module for module in encoder.modules() if isinstance(module, nn.ModuleList) and len(module) == count)
    return next(lists, None)


class _ReachedError(Exception):
    """Ends a pass where it has come far enough."""


def _run_below(
    encoder: nn.Module, layer: nn.Module, inputs: dict[str, Tensor]
) -> Float[Tensor, "batch position width"]:
    """Run an encoder up to a layer, and return what the layer would have been given."""
    given: list[Tensor] = []

    def stop(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given.append(args[0] if args else kwargs["hidden_states"])
        raise _ReachedError

    with hooks(before=[(layer, stop)]), suppress(_ReachedError):
        encoder(**inputs)
    [states] = given
    return states
