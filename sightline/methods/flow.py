"""How inputs flow through all layers to the outputs: attention rollout and ALTI.

Each layer mixes positions: row t of its matrix says which positions of the layer below are in state t, the state's
own residual included. Products of these matrices lead from the outputs down to the inputs. In an encoder-decoder model
the decoder's cross-attention joins in what the encoder's flow brings (ALTI+, Ferrando et al. 2022b), so that the
columns are the source and the target prefix, and every row sums to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from sightline.attend.hooks import After, Before, hooks
from sightline.attend.projections import precise
from sightline.attend.watch import Record, watch
from sightline.errors import InputError
from sightline.methods.attention import read_layers
from sightline.methods.norms import transformed_vectors
from sightline.methods.scored import Scored
from sightline.methods.settings import LayerSettings, NoSettings, RolloutSettings
from sightline.models.examples import Batch
from sightline.models.inspection import AttentionLayer
from sightline.models.loaded import LoadedModel
from sightline.models.names import ATTENTION_KINDS

# The largest (target, source, model) block that is built at a time, in numbers.
BLOCK = 2**24


@dataclass(frozen=True)
class Mixture:
    """What is in each state after an attention layer: shares of the layer's sources, and of the state's residual."""

    sources: Float[Tensor, "batch target source"]
    residual: Float[Tensor, "batch target"]


@torch.no_grad()
def rollout(model: LoadedModel, batch: Batch, settings: RolloutSettings) -> Scored:
    """Return attention rollout (Abnar and Zuidema 2020): the product of all layers' attention, residuals included.

    A_l = r I + (1 - r) mean over heads of alpha_l;    rollout = A_L ... A_1
    """
    layers = _mixing_layers(model)
    with watch(model.module, [layer.module for layer in layers]) as seen:
        model.run(batch)

    def mixture(layer: AttentionLayer) -> Mixture:
        weights = layer.seen_by(seen).weights
        assert weights is not None
        mean = weights.mean(1)
        return Mixture((1 - settings.residual) * mean, torch.full_like(mean[..., 0], settings.residual))

    return _flow(model, batch, mixture)


@torch.no_grad()
def alti(model: LoadedModel, batch: Batch, settings: NoSettings) -> Scored:
    """Return ALTI: how much of each input is in each state, by how near its vector comes to the whole.

    y_t = sum_j T_t(x_j), residual and layer norm included; c_tj = max(0, ||y_t||_1 - ||y_t - T_t(x_j)||_1), rows
    normalised to 1, multiplied over layers (Ferrando et al. 2022a; with a decoder, ALTI+, 2022b)
    """
    layers = _mixing_layers(model)
    parts = ("weights", "values")
    watched = watch(model.module, [layer.module for layer in layers], record=parts)
    with _Additions(model, layers).watched() as additions, watched as seen:
        model.run(batch)

    def mixture(layer: AttentionLayer) -> Mixture:
        return _alti_mixture(layer, layer.seen_by(seen), additions[layer.module][layer.call])

    return _flow(model, batch, mixture)


def _mixing_layers(model: LoadedModel) -> list[AttentionLayer]:
    """List the layers of a model in which positions mix by nothing but attention with a residual."""
    kinds = {layer.kind for layer in model.attention_layers}
    if kinds not in ([set(ATTENTION_KINDS)] if model.has_encoder_and_decoder else [{"encoder"}, {"decoder"}]):
        raise InputError(
            f"{type(model.module).__name__} does not mix its positions by self-attention alone, so the flow cannot be "
            "followed: use attention, a gradient method or erasure."
        )
    return model.attention_layers


def _flow(model: LoadedModel, batch: Batch, mixture: Callable[[AttentionLayer], Mixture]) -> Scored:
    """Multiply the mixtures of all layers, from the inputs to the last states, and read the outputs' rows."""
    reading = read_layers(model, LayerSettings(layer=-1))
    length = batch.ids.shape[1]
    number = torch.promote_types(model.module.dtype, torch.float32)
    states = torch.eye(length, device=batch.device, dtype=number).expand(len(batch), -1, -1)
    if batch.decoder_ids is None:
        for layer in model.attention_layers:
            states = _mixed(mixture(layer), states, states)
        return reading.scored(model, batch, [reading.rows_of(model, batch, states)], head_axis=False)
    for layer in model.layers("encoder"):
        states = _mixed(mixture(layer), states, states)
    steps = batch.decoder_ids.shape[1]
    encoded = F.pad(states, (0, steps))  # (batch, source, source + prefix)
    states = F.pad(torch.eye(steps, device=batch.device, dtype=number), (length, 0)).expand(len(batch), -1, -1)
    for layer in model.attention_layers:
        if layer.kind != "encoder":
            states = _mixed(mixture(layer), encoded if layer.kind == "cross" else states, states)
    return Scored(reading.rows_of(model, batch, states), columns="both")


def _mixed(mixture: Mixture, below: Tensor, own: Tensor) -> Tensor:
    return mixture.sources @ below + mixture.residual[..., None] * own


@dataclass
class Addition:
    """What was added after an attention layer: its output and the residual; and the layer norm, if one follows."""

    given: Tensor
    stream: Tensor
    output: Tensor
    total: Tensor | None = None
    norm: nn.Module | None = None

    @property
    def residual(self) -> Tensor:
        assert self.total is not None
        return self.total - self.output


class _Additions:
    """Watch what happens after each attention layer: its output is added to the residual, normed at once or later.

    The first layer norm after the output projection is given the sum, in post-norm and pre-norm models alike. The
    residual is what the attention layer was given (post-norm), or what the norm before it was given (pre-norm); a sum
    that is neither is left open.
    """

    def __init__(self, model: LoadedModel, layers: list[AttentionLayer]) -> None:
        self.model = model
        self.layers = layers
        self.found: dict[nn.Module, list[Addition]] = {}  # one for each call of a layer
        self.latest: Addition | None = None
        self.given: dict[nn.Module, tuple[Tensor, Tensor]] = {}
        self.last_norm: tuple[Tensor, Tensor] | None = None

    @contextmanager
    def watched(self) -> Iterator[dict[nn.Module, list[Addition]]]:
        """Yield what is found, as long as the context lasts."""
        before: list[tuple[nn.Module, Before]] = []
        after: list[tuple[nn.Module, After]] = []
        for layer in {layer.module: layer for layer in self.layers}.values():
            if layer.output is None:
                layer.output_map(1)  # says in one sentence why this model cannot be asked
            assert layer.output is not None
            before.append((layer.module, self._before(layer)))
            after.append((layer.output, self._behind(layer)))
        norms = [m for m in self.model.module.modules() if type(m).__name__.endswith(("LayerNorm", "RMSNorm"))]
        with hooks(before=before, after=[*after, *((norm, self._at_norm) for norm in norms)]):
            yield self.found

    def _before(self, layer: AttentionLayer) -> Before:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            given = args[0] if args else kwargs["hidden_states"]
            normed_before = self.last_norm is not None and self.last_norm[1] is given
            self.given[layer.module] = (given, self.last_norm[0] if normed_before and self.last_norm else given)

        return hook

    def _behind(self, layer: AttentionLayer) -> After:
        def hook(_module: nn.Module, _args: object, output: Tensor) -> None:
            given, stream = self.given[layer.module]
            self.latest = Addition(given, stream, output.reshape(given.shape))
            self.found.setdefault(layer.module, []).append(self.latest)

        return hook

    def _at_norm(self, norm: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        self.last_norm = (args[0], output)
        addition, self.latest = self.latest, None
        if addition is None:
            return
        residual = args[0].reshape(addition.output.shape) - addition.output
        after = _close(residual, addition.given)
        if after or _close(residual, addition.stream):
            addition.total = args[0].reshape(addition.output.shape)
            addition.norm = norm if after else None


def _close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, atol=1e-3, rtol=1e-3)


def _alti_mixture(layer: AttentionLayer, record: Record, addition: Addition) -> Mixture:
    """Compare each summand with the sum, block by block of rows: the L1 norm has no shortcut."""
    if addition.total is None:
        raise InputError(
            f"Sightline does not see what follows {type(layer.module).__name__}, which ALTI needs: use rollout."
        )
    assert record.weights is not None
    assert record.values is not None
    vectors = transformed_vectors(layer, precise(record.values))  # (batch, source, head, model)
    weights = record.weights  # (batch, head, target, source)
    total, residual = precise(addition.total), precise(addition.residual)
    linear = _linear_norm(addition.norm, total)
    whole = linear(total)
    count, width = weights.shape[-1], vectors.shape[-1]
    rows = max(1, BLOCK // (len(weights) * count * width))
    sources, own = [], []
    for start in range(0, weights.shape[2], rows):
        part = slice(start, start + rows)
        summands = torch.einsum("bhts,bshm->btsm", weights[:, :, part], vectors)
        rest = residual[:, part]
        if layer.kind != "cross":  # the state's own position is among the sources: its residual goes there
            position = torch.arange(start, start + summands.shape[1], device=summands.device)
            summands[:, position - start, position] += rest
            rest = torch.zeros_like(rest)
        pieces = torch.cat([summands, rest[:, :, None]], 2)
        near = _proximity(whole[:, part], _linear_norm(addition.norm, total[:, part], more=1)(pieces))
        sources.append(near[..., :-1])
        own.append(near[..., -1] * (layer.kind == "cross"))
    shares, residuals = torch.cat(sources, 1), torch.cat(own, 1)
    mass = (shares.sum(-1) + residuals).clamp(min=1e-12)
    return Mixture(shares / mass[..., None], residuals / mass)


def _proximity(whole: Float[Tensor, "batch target model"], pieces: Float[Tensor, "batch target piece model"]) -> Tensor:
    """Return max(0, ||y||_1 - ||y - piece||_1)."""
    distance = (whole[:, :, None] - pieces).abs().sum(-1)
    return (whole.abs().sum(-1, keepdim=True) - distance).clamp(min=0)


def _linear_norm(norm: nn.Module | None, total: Tensor, more: int = 0) -> Callable[[Tensor], Tensor]:
    """Return a layer norm's linear part at a sum: the statistics are the sum's, the bias is left out."""
    if norm is None:
        return lambda pieces: pieces
    weight: Any = norm.weight
    eps = getattr(norm, "eps", getattr(norm, "variance_epsilon", 1e-6))
    centred = isinstance(norm, nn.LayerNorm)
    spread = total.var(-1, unbiased=False, keepdim=True) if centred else total.square().mean(-1, keepdim=True)
    scale = weight / (spread + eps).sqrt()
    for _ in range(more):
        scale = scale[:, :, None]
    return lambda pieces: (pieces - pieces.mean(-1, keepdim=True) if centred else pieces) * scale
