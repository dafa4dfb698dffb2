"""Attention calibration (Lu et al. 2021): a mask that learns which inputs are decisive, and attention that heeds it.

A mask perturbation model with projections of its own says, for every step t, layer and head, what can be taken away:

    m_t = sigmoid(bounded(s_t W^Q (h W^K)' / sqrt(d_k)))  (eq. 4; s_t is the layer's input, h the encoder's output)
    a^p = m a + (1 - m) uniform                           (eq. 3, the perturbed attention that the mask is trained on)

where bounded(x) = b tanh(x / b), so that a mask which has come near 0 or 1 can still turn back; without a bound b it is
eq. 4 as printed.

An attention calibration network gives what hurts when it is taken away more weight:

    a^c = a exp(1 - m)                                    (eq. 7)
    fixed:   a + ratio a^c                                (eq. 8)
    anneal:  gamma a + (1 - gamma) a^c                    (eq. 9)
    gate:    g a + (1 - g) a^c,  g = sigmoid(q W^g + b^g) (eq. 10; q is a head's scaled query)

A `Calibration` is attached to a model and is part of it from then on: whoever runs the decoder, be it a training loop,
`generate` or a method, runs it calibrated. Its two sides are trained on losses of their own: in a calibrated pass the
mask's weights are constants, though gradients pass through its value into the model's states.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from sightline.attend.projections import softmax
from sightline.attend.settings import LAST_GAMMA, CalibrationSettings
from sightline.attend.watch import Call, Change, watch
from sightline.errors import InputError

NAME = "calibration"
"""The name of the sub-module that a calibrated model has."""
GAMMA = f"{NAME}.gamma"
"""The name of the annealing share among a calibrated model's weights."""
Mask = Float[Tensor, "batch head target source"]
Weights = Float[Tensor, "batch head target source"]
CalibrationMode = Literal["calibrated", "perturbed", "original"]


@dataclass(frozen=True)
class LayerShape:
    """A cross-attention layer that is calibrated: its name in the model, and the sizes of what it is given."""

    name: str
    heads: int
    head_width: int
    state_width: int
    encoder_width: int


class LayerCalibration(nn.Module):
    """The mask model of one cross-attention layer and, where attention is fused by a gate, the gate."""

    def __init__(self, shape: LayerShape, settings: CalibrationSettings) -> None:
        super().__init__()
        self.heads, self.scale, self.bound = shape.heads, shape.head_width**-0.5, settings.bound
        self.query = nn.Linear(shape.state_width, shape.heads * shape.head_width)
        self.key = nn.Linear(shape.encoder_width, shape.heads * shape.head_width)
        for projection in (self.query, self.key):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)
        if settings.fusion == "gate":
            gates = shape.heads if settings.gate == "head" else 1
            self.gate_weight = nn.Parameter(torch.zeros(gates, shape.head_width))
            self.gate_bias = nn.Parameter(torch.zeros(gates))

    def mask(
        self,
        states: Float[Tensor, "batch target state_width"],
        encoded: Float[Tensor, "batch source encoder_width"],
        real: Bool[Tensor, "#batch #head #target source"] | None,
        trained: bool,
    ) -> Mask:
        """Return how much of each weight stays: m_t = sigmoid(bounded(s_t W^Q (h W^K)' / sqrt(d_k))), 1 at padding."""
        queries = self._project(self.query, states, trained)
        logits = _wide(queries @ self._keys(encoded, trained).transpose(2, 3) * self.scale)
        if self.bound is not None:
            logits = self.bound * (logits / self.bound).tanh()
        mask = logits.sigmoid()
        return mask if real is None else mask.masked_fill(~real, 1.0)

    def share_of_original(self, queries: Float[Tensor, "batch head target width"] | None) -> Tensor:
        """Compute the gate g_t = sigmoid(q_t W^g + b^g) of every head."""
        if queries is None:
            raise InputError("This attention has no queries to open a gate with: choose the fusion fixed or anneal.")
        scores = (_wide(queries) * self.scale * self.gate_weight[:, None]).sum(-1) + self.gate_bias[:, None]
        return scores.sigmoid()[..., None]  # (batch, head, target, 1)

    def _keys(self, encoded: Tensor, trained: bool) -> Tensor:
        """Project the encoder's output; while a model generates it stays the same, and is projected once."""
        if torch.is_grad_enabled() or encoded.is_inference():
            return self._project(self.key, encoded, trained)
        version = (encoded._version, self.key.weight._version, self.key.bias._version)
        known = _projected.setdefault(encoded, {})
        if self not in known or known[self][0] != version:
            known[self] = (version, self._project(self.key, encoded, trained))
        return known[self][1]

    def _project(self, projection: nn.Linear, inputs: Tensor, trained: bool) -> Float[Tensor, "batch head place width"]:
        weight, bias = (p if trained else p.detach() for p in (projection.weight, projection.bias))
        return F.linear(inputs, weight, bias).unflatten(2, (self.heads, -1)).transpose(1, 2)


def _wide(numbers: Tensor) -> Tensor:
    """Return 16-bit numbers as float32: too few bits for a sigmoid."""
    return numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers


_projected: Any = WeakTensorKeyDictionary()
"""The keys of encoder outputs that are still in use, by the layer that projected them."""


@dataclass
class Masks:
    """The masks of the last decoder pass, layer by layer; a layer that attends step by step gives many parts."""

    parts: dict[nn.Module, list[Mask]] = field(default_factory=dict)

    def add(self, call: Call, mask: Mask) -> None:
        if call.first == 0:
            self.parts[call.layer] = []
        self.parts[call.layer].append(mask)

    def by_layer(self) -> list[Mask]:
        return [torch.cat(parts, 2) if len(parts) > 1 else parts[0] for parts in self.parts.values()]


@dataclass(frozen=True)
class _Running:
    """How a calibration runs in a context."""

    calibration: Calibration
    mode: CalibrationMode
    masks: Masks
    change: Callable[[Mask], Mask] | None
    penalized: bool


@dataclass
class _DecoderPass:
    """What is known while a decoder runs: the encoder's output, and what the next attention layer was given."""

    decoder: nn.Module
    encoded: Tensor
    ending: ExitStack
    states: Tensor | None = None


_running: ContextVar[_Running | None] = ContextVar("sightline_calibration", default=None)
_decoder_pass: ContextVar[_DecoderPass | None] = ContextVar("sightline_decoder_pass", default=None)


class Calibration(nn.Module):
    """The mask model and the fusion of all cross-attention layers of a model, once attached a part of it."""

    gamma: Tensor
    """The original attention's share under the fusion `anneal`."""

    def __init__(self, settings: CalibrationSettings, shapes: Sequence[LayerShape]) -> None:
        super().__init__()
        self.settings = settings
        self.shapes = tuple(shapes)
        self.layers = nn.ModuleList(LayerCalibration(shape, settings) for shape in shapes)
        self._attached: tuple[Any, tuple[nn.Module, ...]] = (None, ())
        self.alpha = settings.alpha
        """The weight of the penalty at this step of a training run."""
        if settings.fusion == "anneal":
            self.register_buffer("gamma", torch.tensor(LAST_GAMMA))

    def attach(self, model: Any) -> None:
        """Become a part of a Hugging Face model, which then runs calibrated; `save_pretrained` saves it without."""
        assert not hasattr(model, NAME)
        attention = tuple(model.get_submodule(shape.name) for shape in self.shapes)
        decoder = model.get_decoder()
        # In a tuple, where torch does not take them for parts of this module.
        self._attached = (model, attention)
        model.add_module(NAME, self.to(model.device, model.dtype).train(model.training))
        model._keys_to_ignore_on_save = {
            *(model._keys_to_ignore_on_save or ()),
            *(f"{NAME}.{key}" for key in self.state_dict()),
        }
        decoder.register_forward_pre_hook(self._begin_pass, with_kwargs=True)
        decoder.register_forward_hook(self._end_pass, always_call=True)
        for layer in attention:
            layer.register_forward_pre_hook(self._keep_states, with_kwargs=True)

    @property
    def mask_parameters(self) -> list[nn.Parameter]:
        """List the parameters that only the mask's own loss trains: W^Q and W^K."""
        return [parameter for name, parameter in self.named_parameters() if ".gate_" not in name]

    def set_progress(self, share: float, since_formed: float | None = None) -> None:
        """Set what depends on the fraction of all steps that are done, and of those since attention has formed."""
        self.alpha = self.settings.alpha_at(since_formed)
        if self.settings.fusion == "anneal":
            self.gamma.fill_(self.settings.gamma_at(share))

    @contextmanager
    def running(
        self, mode: CalibrationMode, change: Callable[[Mask], Mask] | None = None, *, penalized: bool = False
    ) -> Iterator[Masks]:
        """Run calibrated, perturbed, or with the original attention, and yield the masks of the pass.

        `change` replaces the model's own mask. Masks of a calibrated pass have constant weights; those to be
        `penalized` are given as functions of the mask's weights, and of nothing else.
        """
        running = _Running(self, mode, Masks(), change, penalized)
        token = _running.set(running)
        try:
            yield running.masks
        finally:
            _running.reset(token)

    def fuse(self, number: int, weights: Weights, mask: Mask, call: Call) -> Weights:
        """Join a layer's original and calibrated weights (eq. 7-10)."""
        settings = self.settings
        calibrated = weights * (1 - mask).exp()
        if settings.fusion == "fixed":
            joined = weights + settings.ratio * calibrated
        else:
            gate = self._layer(number).share_of_original
            share = self.gamma if settings.fusion == "anneal" else gate(call.queries)
            joined = share * weights + (1 - share) * calibrated
        if settings.renormalize == "sum":
            return joined / joined.sum(-1, keepdim=True).clamp(min=torch.finfo(joined.dtype).tiny)
        return softmax(joined, call.mask) if settings.renormalize == "softmax" else joined

    def _layer(self, number: int) -> LayerCalibration:
        return cast(LayerCalibration, self.layers[number])

    # Hooks

    def _begin_pass(self, decoder: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        running = self._how()
        if running is not None and running.mode == "original":
            return
        if decoder.training and getattr(decoder, "gradient_checkpointing", False):  # layers would run outside of here
            raise InputError("Calibrated attention cannot be computed twice: switch gradient checkpointing off.")
        model, layers = self._attached
        encoded = kwargs.get("encoder_hidden_states")
        if encoded is None:
            encoded = inspect.signature(decoder.forward).bind(*args, **kwargs).arguments["encoder_hidden_states"]
        ending = ExitStack()
        ending.enter_context(watch(model, layers, record=(), change=Change(weights=self._change), built_in=True))
        token = _decoder_pass.set(_DecoderPass(decoder, encoded, ending))
        ending.callback(_decoder_pass.reset, token)

    def _keep_states(self, _layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        current = _decoder_pass.get()
        if current is not None:
            current.states = layer_input(args, kwargs)

    def _end_pass(self, decoder: nn.Module, *_: Any) -> None:
        current = _decoder_pass.get()
        if current is not None and current.decoder is decoder:
            current.ending.close()

    def _how(self) -> _Running | None:
        running = _running.get()
        return running if running is not None and running.calibration is self else None

    def _change(self, call: Call, weights: Weights) -> Weights:
        """Change a layer's weights in the way that is asked for."""
        current, running = _decoder_pass.get(), self._how()
        assert current is not None
        assert current.states is not None
        number = next(i for i, layer in enumerate(self._attached[1]) if layer is call.layer)
        perturbed = running is not None and running.mode == "perturbed"
        layer = self._layer(number)
        mask = layer.mask(current.states, current.encoded, call.mask, trained=perturbed)
        if running is not None:
            mask = running.change(mask) if running.change is not None else mask
            kept = mask
            if running.penalized:
                kept = layer.mask(current.states.detach(), current.encoded.detach(), call.mask, trained=True)
            running.masks.add(call, kept)
        return perturb(weights, mask, call.mask) if perturbed else self.fuse(number, weights, mask, call)


def layer_input(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Float[Tensor, "batch target state_width"]:
    """Find the decoder's states among what an attention layer is called with: they come first."""
    return args[0] if args else kwargs["hidden_states"]


def perturb(weights: Weights, mask: Mask, real: Bool[Tensor, "#batch #head #target source"] | None) -> Weights:
    """Replace what a mask takes away by a uniform distribution over real positions: a^p = m a + (1 - m) uniform."""
    present = torch.ones_like(weights[:1, :1, :1]) if real is None else real.to(weights.dtype)
    return mask * weights + (1 - mask) * present / present.sum(-1, keepdim=True).clamp(min=1)
