"""Watching, and changing, attention while a model runs.

Every attention of ours and of Hugging Face meets in one seam, `attend(module, scores, values, mask)`. Our own
models call it directly. Hugging Face models reach it through transformers' attention interface: within
`with watch(model, layers)` the model's attention function is ours, which sends the layers asked for through the
seam and all others to the model's own kernel. Nothing is patched; on exit every configuration is as it was.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from sightline.attend.hooks import registering
from sightline.attend.projections import precise

# Some models refuse a name that contains "sdpa".
WATCHED = "sightline"
WATCHED_EAGER = "sightline_eager"
PARTS = ("weights", "original", "queries", "keys", "values")


@dataclass(frozen=True)
class Call:
    """One call of an attention layer, as the seam sees it."""

    layer: nn.Module
    scores: Float[Tensor, "batch head target source"]
    values: Float[Tensor, "batch head source width"]
    mask: Bool[Tensor, "#batch #head #target source"] | None
    queries: Float[Tensor, "batch head target key_width"] | None = None
    keys: Float[Tensor, "batch head source key_width"] | None = None
    first: int = 0
    """The target position of the first row; a layer that attends step by step in one pass counts it up."""


Projection = Callable[[Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class Change:
    """What to do differently in a watched layer; each part is optional.

    `mask(call)` gives another mask; `projection(scores, mask)` gives the weights instead of the layer's own projection;
    `values(call)` gives other values; `weights(call, weights)` gives other weights, after the projection.
    """

    mask: Callable[[Call], Tensor] | None = None
    projection: Projection | None = None
    values: Callable[[Call], Tensor] | None = None
    weights: Callable[[Call, Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Record:
    """What was seen in one call of a layer: the parts asked for.

    Weights have at least single precision, and are those before dropout. `original` are the weights as the layer's own
    projection gave them, before anything changed them.
    """

    weights: Float[Tensor, "batch head target source"] | None = None
    original: Float[Tensor, "batch head target source"] | None = None
    queries: Float[Tensor, "batch head target key_width"] | None = None
    keys: Float[Tensor, "batch head source key_width"] | None = None
    values: Float[Tensor, "batch head source width"] | None = None

    def followed_by(self, step: Record) -> Record:
        """Add the rows of the next step of the same pass; its keys and values are the same."""
        rows = {name: [getattr(self, name), getattr(step, name)] for name in ("weights", "original", "queries")}
        return replace(self, **{name: torch.cat(pair, 2) for name, pair in rows.items() if pair[0] is not None})


@dataclass
class Watch:
    """The layers under watch, what to record and change there, and what has been recorded so far."""

    layers: list[nn.Module] | None
    parts: frozenset[str]
    change: Change | None = None
    keep: Callable[[nn.Module, Record], Any] | None = None
    calls: dict[nn.Module, list[Any]] = field(default_factory=dict)
    order: list[nn.Module] = field(default_factory=list)
    """The layers in the order of their calls; one that serves several depths of a stack is there several times."""

    def covers(self, layer: nn.Module) -> bool:
        return self.layers is None or any(layer is watched for watched in self.layers)

    def add(self, layer: nn.Module, record: Record, first: int | None) -> None:
        """Keep a record, or what is to be kept of it; the steps of a pass that attends step by step make one record."""
        calls = self.calls.setdefault(layer, [])
        if not first:
            self.order.append(layer)
        if first is None:
            calls.append(self._kept(layer, record))
        elif first == 0:
            calls.append(record)
        else:
            calls[-1] = calls[-1].followed_by(record)

    def __getitem__(self, layer: nn.Module) -> Any:
        """Return what was recorded in the last call of a layer."""
        return self.call(layer, -1)

    def call(self, layer: nn.Module, number: int) -> Any:
        """Return what was recorded in one call of a layer, by its number."""
        return self._kept(layer, self.calls[layer][number])

    def _kept(self, layer: nn.Module, record: Any) -> Any:
        # A record made of steps is still whole when it is asked for: nobody knew which step would be the last.
        return self.keep(layer, record) if self.keep is not None and isinstance(record, Record) else record


_active: ContextVar[tuple[Watch, ...]] = ContextVar("sightline_watches", default=())
_switches: WeakKeyDictionary[nn.Module, _Switch] = WeakKeyDictionary()
_switches_lock = threading.Lock()


@contextmanager
def watch(
    model: nn.Module,
    layers: Iterable[nn.Module] | None = None,
    record: Iterable[str] = ("weights",),
    change: Change | None = None,
    keep: Callable[[nn.Module, Record], Any] | None = None,
    built_in: bool = False,
) -> Iterator[Watch]:
    """Record, and perhaps change, what happens in some attention layers of a model, or in all of them.

    `keep(layer, record)` says what to keep of a record, where holding all of it would take too much memory. A change
    that is `built_in` is part of the model: it acts before all other watches, which see what it leaves. Works in
    training and evaluation, under `generate` (one record per step), nested, and in several threads.
    """
    parts = frozenset(record)
    assert parts <= set(PARTS), f"parts are {PARTS}"
    one = Watch(None if layers is None else list(layers), parts, change, keep)
    with _switched(model):
        others = _active.get()
        token = _active.set((one, *others) if built_in else (*others, one))
        try:
            yield one
        finally:
            _active.reset(token)


def attend(
    layer: nn.Module,
    scores: Float[Tensor, "batch head target source"],
    values: Float[Tensor, "batch head source width"],
    mask: Bool[Tensor, "#batch #head #target source"] | None = None,
    *,
    queries: Float[Tensor, "batch head target key_width"] | None = None,
    keys: Float[Tensor, "batch head source key_width"] | None = None,
    sinks: Float[Tensor, " head"] | None = None,
    projection: Projection | None = None,
    dropout: float = 0.0,
    first: int | None = None,
) -> tuple[Float[Tensor, "batch head target width"], Float[Tensor, "batch head target source"]]:
    """Turn scores into weights and weights into a weighted sum of values: the one seam of all attention.

    weights = projection(scores); output = weights . values. `mask` is True where a source position is real. A layer
    that attends step by step in one pass says at which target position its rows begin (`first`): they make one record.
    """
    watches = [one for one in _active.get() if one.covers(layer)]
    call = Call(layer, scores, values, mask, queries, keys, first or 0)
    for one in watches:
        if one.change and one.change.mask:
            mask = one.change.mask(call)
            call = replace(call, mask=mask)
        if one.change and one.change.values:
            values = one.change.values(call)
        if one.change and one.change.projection:
            projection = one.change.projection
    weights = original = projection(scores, mask) if projection else _softmax(scores, mask, sinks)
    for one in watches:
        if one.change and one.change.weights:
            weights = one.change.weights(call, weights)
        seen = {"weights": weights, "original": original, "queries": queries, "keys": keys, "values": values}
        one.add(layer, Record(**{part: seen[part] for part in one.parts}), first)
    dropped = F.dropout(weights.to(values.dtype), dropout, training=layer.training)
    return dropped @ values, weights


def _softmax(scores: Tensor, mask: Tensor | None, sinks: Tensor | None) -> Tensor:
    """Softmax in at least single precision over real positions; a sink takes weight and gives nothing (GPT-OSS)."""
    if mask is not None:
        # The lowest finite number, not -inf: a row without any real position must not become NaN.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    if sinks is None:
        return precise(scores).softmax(-1)
    column = sinks.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
    return precise(torch.cat([scores, column], -1)).softmax(-1)[..., :-1]


def _hugging_face_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Compute a Hugging Face layer's scores and send them through the seam."""
    groups = query.shape[1] // key.shape[1]  # grouped queries: several heads share one key and value
    key, value = (t.repeat_interleave(groups, 1) if groups > 1 else t for t in (key, value))
    scores = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if position_bias is not None:
        scores = scores + position_bias
    mask = None if attention_mask is None else attention_mask[..., : key.shape[2]]
    if mask is None:
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        if causal and query.shape[2] > 1:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()[None, None]
    elif mask.dtype != torch.bool:
        real = mask > torch.finfo(mask.dtype).min / 2
        scores = scores + mask.masked_fill(~real, 0)  # a float mask may carry a bias in addition to the padding
        mask = real
    output, weights = attend(
        module,
        scores,
        value,
        mask,
        queries=query,
        keys=key,
        sinks=getattr(module, "sinks", None) if s_aux is None else s_aux,
        dropout=dropout,
    )
    return output.transpose(1, 2).contiguous(), weights.to(query.dtype)


def _watched_attention(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    """Send watched layers through the seam, all others to the fast kernel."""
    beyond_kernel = kwargs.get("softcap") is not None or kwargs.get("s_aux") is not None
    if beyond_kernel or any(one.covers(module) for one in _active.get()):
        return _hugging_face_attention(module, *args, **kwargs)
    return ALL_ATTENTION_FUNCTIONS["sdpa"](module, *args, **kwargs)


AttentionInterface.register(WATCHED, _watched_attention)
AttentionMaskInterface.register(WATCHED, sdpa_mask)
AttentionInterface.register(WATCHED_EAGER, _hugging_face_attention)
AttentionMaskInterface.register(WATCHED_EAGER, eager_mask)


@dataclass
class _Switch:
    """How many watches a model is under, and the implementations to restore after the last."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    watches: int = 0
    before: list[tuple[Any, str | None]] = field(default_factory=list)


@contextmanager
def _switched(model: nn.Module) -> Iterator[None]:
    """Let a Hugging Face model use our attention function; the outermost watch switches, the last restores."""
    with _switches_lock:
        switch = _switches.setdefault(model, _Switch())
    with switch.lock:
        switch.watches += 1
        if switch.watches == 1:
            switch.before = _implementations(model)
            for config, name in switch.before:
                config._attn_implementation_internal = WATCHED_EAGER if name == "eager" else WATCHED
    try:
        yield
    finally:
        with switch.lock:
            switch.watches -= 1
            if switch.watches == 0:
                _restore(switch.before)


def _implementations(model: nn.Module) -> list[tuple[Any, str | None]]:
    """List every distinct configuration in a model (T5 holds three) with its attention implementation."""
    found: dict[int, Any] = {}
    pending: list[Any] = [getattr(module, "config", None) for module in model.modules()]
    while pending:
        config = pending.pop()
        if config is None or id(config) in found or not hasattr(config, "_attn_implementation_internal"):
            continue
        found[id(config)] = config
        pending.extend(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))
    return [(config, config._attn_implementation_internal) for config in found.values()]


def _restore(implementations: list[tuple[Any, str | None]]) -> None:
    for config, name in implementations:
        config._attn_implementation_internal = name


@contextmanager
def eager_attention(model: nn.Module) -> Iterator[nn.Module]:
    """Return a model that runs on its own eager attention: the reference that a watch is compared with.

    It is a twin with the same weights, since other threads may be in the middle of a pass of the model itself; where
    there can be no twin, it is the model.
    """
    twin = _twin(model)
    before = _implementations(twin)
    try:
        for config, _ in before:
            config._attn_implementation_internal = "eager"
        yield twin
    finally:
        _restore(before)


def _twin(model: nn.Module) -> nn.Module:
    """Copy a model's modules and configurations, but no tensor; what cannot be copied is given as it is."""
    if any("forward" in vars(module) for module in model.modules()):
        return model  # a forward pass that was put in place of the class's own may hold on to the original
    shared = {id(parameter): parameter for parameter in model.parameters()}
    try:
        with registering, _SharedTensors():
            return copy.deepcopy(model, shared)
    except TypeError:
        return model


class _SharedTensors(TorchFunctionMode):
    """Let a deep copy hold the same tensors."""

    def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if function is Tensor.__deepcopy__ else function(*args, **kwargs or {})
