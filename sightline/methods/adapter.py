"""What an alignment adapter has learned about a model: which source position each target position came from.

The adapter (`sightline.attend.alignment`) is made by `sightline adapt` and saved next to the model.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sightline.attend.alignment import AlignmentAdapter, Posteriors
from sightline.attribution import Attribution, Tokens
from sightline.errors import InputError
from sightline.methods.scored import Scored
from sightline.methods.settings import NoSettings
from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel

ADAPTER = "adapter"


@torch.no_grad()
def adapter(model: LoadedModel, batch: Batch, settings: NoSettings) -> Scored:
    """Return the probability that a target position came from a source position, as an alignment adapter has learned.

    The probability of NULL, that it came from none, stands at the end of the source.
    """
    return Scored(_with_null_at_the_end(posteriors(model, batch).forward, [e.source for e in batch.examples]))


class BothWays(NamedTuple):
    """What one pass says of a pair: target positions over the source, and source positions over the target."""

    forward: Attribution
    backward: Attribution


@torch.no_grad()
def read_both_ways(model: LoadedModel, batch: Batch) -> list[BothWays]:
    """Read the adapter over the source and over the target, from one pass."""
    both = posteriors(model, batch)
    sides = [example.source for example in batch.examples], [example.target for example in batch.examples]
    ahead = _with_null_at_the_end(both.forward, sides[0]).cpu().numpy()
    back = _with_null_at_the_end(both.backward, sides[1]).cpu().numpy()
    return [
        BothWays(
            Attribution(ahead[i, : len(target), : len(source)], source=source, target=target, method=ADAPTER),
            Attribution(back[i, : len(source), : len(target)], source=target, target=source, method=ADAPTER),
        )
        for i, (source, target) in enumerate(zip(*sides, strict=True))
    ]


def posteriors(model: LoadedModel, batch: Batch, adapter: AlignmentAdapter | None = None) -> Posteriors:
    """Run the model and an adapter, by default its own; gradients reach the adapter alone."""
    if adapter is None:
        adapter = model.adapter
    if adapter is None:
        raise InputError(f"This model has no alignment adapter for {model.direction}: `sightline adapt` trains one.")
    with torch.no_grad():
        states = model.states_of_all_layers(batch)
    widths = [tuple(layer.shape[-1] for layer in layers) for layers in (states.encoder, states.decoder)]
    if widths != [adapter.shape.encoder, adapter.shape.decoder]:
        raise InputError(
            f"This alignment adapter is another model's: it reads states of the widths {adapter.shape.encoder} and "
            f"{adapter.shape.decoder}, and here they are {widths[0]} and {widths[1]}. `sightline adapt` trains one."
        )
    return adapter(
        states.encoder,
        states.decoder,
        batch.rows,
        _in_words([example.source for example in batch.examples], batch.ids.shape[1], batch.device),
        _in_words([example.target for example in batch.examples], batch.rows.shape[1], batch.device),
    )


def _in_words(sides: list[Tokens], length: int, device: torch.device) -> Bool[Tensor, "batch position"]:
    """Mark the positions that belong to words."""
    marked = torch.zeros(len(sides), length, dtype=torch.bool)
    for row, tokens in zip(marked, sides, strict=True):
        row[: len(tokens)] = torch.from_numpy(~tokens.special)
    return marked.to(device)


def _with_null_at_the_end(
    posterior: Float[Tensor, "batch row column_or_null"], columns: list[Tokens]
) -> Float[Tensor, "batch row column"]:
    """Put the probability of NULL at the last special position of the columns; where there is none it is left out."""
    scores = posterior[..., :-1].clone()
    for i, tokens in enumerate(columns):
        special = tokens.special.nonzero()[0]
        if len(special):
            scores[i, :, int(special[-1])] += posterior[i, :, -1]
    return scores
