"""Attention weights as they are: the baseline of every paper here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sightline.attend.watch import Record, watch
from sightline.errors import InputError
from sightline.methods.paths import smooth_path
from sightline.methods.scored import Columns, Scored
from sightline.methods.settings import AttentionSettings, LayerSettings
from sightline.models.examples import Batch
from sightline.models.inspection import AttentionLayer
from sightline.models.loaded import LoadedModel


@torch.no_grad()
def attention(model: LoadedModel, batch: Batch, settings: AttentionSettings) -> Scored:
    """Return the attention weights alpha of each layer, averaged over heads or head by head."""
    reading = read_layers(model, settings)
    path = smooth_path(batch, settings)
    parts = ("original",) if settings.original else ("weights",)

    def chosen(_layer: nn.Module, record: Record) -> Tensor:
        weights = record.original if settings.original else record.weights
        assert weights is not None
        return reading.rows_of(model, batch, choose_head(weights, settings.head))

    per_layer: list[Tensor] = []
    for point, share in enumerate(path.weights):
        with (
            model.changed_embeddings(source=partial(path.place, point=point, side="source")),
            watch(model.module, [layer.module for layer in reading.layers], parts, keep=chosen) as seen,
        ):
            model.run(batch)
        here = [share * layer.seen_by(seen) for layer in reading.layers]
        per_layer = here if point == 0 else [one + other for one, other in zip(per_layer, here, strict=True)]
    return reading.scored(model, batch, per_layer, head_axis=settings.head == "all")


@dataclass(frozen=True)
class Reading:
    """The layers that were asked for, and how their rows become rows of outputs."""

    layers: list[AttentionLayer]
    kind: str
    whole_map: bool
    settings: LayerSettings

    def rows_of(
        self, model: LoadedModel, batch: Batch, scores: Float[Tensor, "batch *head query key"]
    ) -> Float[Tensor, "batch *head row key"]:
        """Pick the query positions that belong to the outputs."""
        if self.whole_map:
            return scores
        if model.classifies and getattr(model.module.config, "classifier_pooling", "cls") == "mean":
            real = batch.mask.view(len(batch), *[1] * (scores.ndim - 3), -1, 1)
            return (scores * real).sum(-2, keepdim=True) / real.sum(-2, keepdim=True)
        rows = self._query_positions(model, batch)
        index = rows.view(len(batch), *[1] * (scores.ndim - 3), -1, 1).expand(*scores.shape[:-2], -1, scores.shape[-1])
        return scores.gather(-2, index)

    def _query_positions(self, model: LoadedModel, batch: Batch) -> Tensor:
        if model.classifies and self.kind == "decoder":  # a causal classifier reads the last token
            return batch.mask.sum(1, keepdim=True) - 1
        return (batch.rows + (self.settings.reading == "input")).clamp(max=self._last_step(batch))

    def _last_step(self, batch: Batch) -> int:
        return (batch.ids if batch.decoder_ids is None else batch.decoder_ids).shape[1] - 1

    def scored(self, model: LoadedModel, batch: Batch, per_layer: list[Tensor], *, head_axis: bool) -> Scored:
        """Stack layers, or choose or average them, and say what rows and columns are."""
        axes: tuple[str, ...] = ("head",) if head_axis else ()
        if self.settings.layer == "all":
            scores, axes = torch.stack(per_layer, 1), ("layer", *axes)
        else:  # one layer, or the mean of all
            scores = torch.stack(per_layer).mean(0)
        columns: Columns = "source"
        if self.kind == "decoder" and not model.classifies:
            columns = "both" if model.continues else "prefix"
        row_mask = None
        if self.settings.reading == "input" and not self.whole_map:
            row_mask = batch.row_mask & (batch.rows < self._steps(batch)[:, None] - 1)
        return Scored(scores, axes, "source" if self.whole_map else "target", columns, row_mask)

    def real_columns(self, batch: Batch) -> Bool[Tensor, "batch key"]:
        """Return which key positions are real: those of the source, or of a decoder that has its own."""
        if self.kind != "decoder" or batch.decoder_ids is None:
            return batch.mask
        positions = torch.arange(batch.decoder_ids.shape[1], device=batch.device)
        return positions < self._steps(batch)[:, None]

    def _steps(self, batch: Batch) -> Tensor:
        """Count each example's real decoder steps."""
        lengths = [len(example.decoder_ids or example.ids) for example in batch.examples]
        return torch.tensor(lengths, device=batch.device)


def read_layers(model: LoadedModel, settings: LayerSettings) -> Reading:
    """Find the layers that the settings ask for."""
    kind = settings.kind or _default_kind(model)
    layers = model.layers(kind)
    if isinstance(settings.layer, int):
        if not -len(layers) <= settings.layer < len(layers):
            raise InputError(
                f"There is no layer {settings.layer}: the model has {len(layers)} layers of {kind} attention, "
                f"numbered 0 to {len(layers) - 1}."
            )
        layers = [layers[settings.layer]]
    asked_for_map = settings.kind == "encoder" or not model.has_output
    if settings.reading == "input" and (kind == "encoder" or model.classifies):
        raise InputError("The reading 'input' is for decoders: an encoder's rows have no step of their own.")
    return Reading(layers, kind, asked_for_map, settings)


def _default_kind(model: LoadedModel) -> str:
    if model.translates:
        return "cross"
    kinds = {layer.kind for layer in model.attention_layers}
    return next(kind for kind in ("cross", "decoder", "encoder") if kind in kinds)


def choose_head(
    scores: Float[Tensor, "batch head query key"], head: int | str
) -> Float[Tensor, "batch *head query key"]:
    """Average over heads, keep them, or choose one."""
    if head == "mean":
        return scores.mean(1)
    if head == "all":
        return scores
    assert isinstance(head, int)
    count = scores.shape[1]
    if not -count <= head < count:
        raise InputError(f"There is no head {head}: this layer has {count}, numbered 0 to {count - 1}.")
    return scores[:, head]
