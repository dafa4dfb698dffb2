"""What a method gives for a batch, and how it becomes one Attribution per example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sightline.attribution import NO_TOKENS, Attribution, Tokens
from sightline.errors import InputError
from sightline.methods.outputs import Odds
from sightline.models.examples import Batch, Example
from sightline.models.loaded import LoadedModel

Columns = Literal["source", "prefix", "both"]


@dataclass(frozen=True)
class Scored:
    """Scores of a batch, padding included, with the names of what they are about.

    `rows` are the outputs or, in an encoder, the source positions themselves. Columns are the source, the target
    prefix, or both; in a decoder-only model, where they are one sequence, the positions of that sequence.
    """

    scores: Float[Tensor, "batch *axes row column"]
    axes: tuple[str, ...] = ()
    rows: Literal["target", "source"] = "target"
    columns: Columns = "source"
    row_mask: Bool[Tensor, "batch row"] | None = None


def to_attributions(
    model: LoadedModel,
    batch: Batch,
    scored: Scored,
    method: str,
    settings: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
    odds: Odds | None = None,
) -> list[Attribution]:
    """Cut the padding off and name every position; `odds` are those of the outputs where they are known."""
    if scored.rows == "source" or scored.row_mask is not None:
        odds = None  # the rows are not the outputs
    scores = scored.scores.detach().to("cpu", torch.float32).numpy()
    if np.isnan(scores).any():
        dtype = model.module.dtype
        cause = "its weights are damaged" if dtype == torch.float32 else f"{dtype} is too small: load it in float32"
        raise InputError(f"The scores of {method} are no numbers (NaN), as the model's own are not: {cause}.")
    row_mask = batch.row_mask if scored.row_mask is None else scored.row_mask
    results = []
    for number, example in enumerate(batch.examples):
        rows = (
            np.arange(len(example.source))
            if scored.rows == "source"
            else np.flatnonzero(row_mask[number].cpu().numpy())
        )
        source, prefix, columns = _columns(example, scored.columns, model.continues, batch.ids.shape[1])
        tokens = example.source if scored.rows == "source" else example.target
        results.append(
            Attribution(
                scores[number][..., rows, :][..., columns],
                source=source,
                target=tokens.take(rows),
                prefix=prefix,
                axes=scored.axes,
                method=method,
                probabilities=() if odds is None else tuple(odds.probabilities[number, rows].tolist()),
                ranks=() if odds is None else tuple(odds.ranks[number, rows].tolist()),
                defaults=defaults or {},
                settings=settings,
            )
        )
    return results


def _columns(
    example: Example, columns: Columns, one_sequence: bool, padded_source: int
) -> tuple[Tokens, Tokens, np.ndarray]:
    """Find the columns of an example's source and prefix among the padded ones."""
    source_columns = np.arange(len(example.source))
    start = len(example.source) if one_sequence else padded_source if columns == "both" else 0
    prefix_columns = start + np.arange(len(example.prefix))
    if columns == "source":
        return example.source, NO_TOKENS, source_columns
    if columns == "prefix":
        return NO_TOKENS, example.prefix, prefix_columns
    return example.source, example.prefix, np.concatenate([source_columns, prefix_columns])
