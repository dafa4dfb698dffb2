"""The attribution methods: a plain table of functions.

To add a method, write a function `(model, batch, settings) -> Scored` with its frozen settings, and a line here.
An alias is a key with other defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from sightline.errors import unknown_name
from sightline.methods.adapter import AdapterSettings, adapter
from sightline.methods.attention import AttentionSettings, attention
from sightline.methods.erasure import ErasureSettings, HiddenErasureSettings, erasure, hidden_erasure
from sightline.methods.flow import AltiSettings, RolloutSettings, alti, rollout
from sightline.methods.gradients import (
    GradientSettings,
    IntegratedGradientsSettings,
    WordSaliencySettings,
    gradient,
    integrated_gradients,
    word_saliency,
)
from sightline.methods.hidden import HiddenGradientSettings, hidden_gradient
from sightline.methods.masks import PerturbationMaskSettings, perturbation_mask
from sightline.methods.norms import NormsSettings, norms
from sightline.methods.probes import BestAttentionSettings, LexicalProbeSettings, best_attention, lexical_probe
from sightline.methods.scored import Scored
from sightline.methods.value_zeroing import ValueZeroingSettings, value_zeroing
from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel
from sightline.values import checked_values


class Method(NamedTuple):
    """A method: its function and its default settings, an instance of a frozen dataclass."""

    run: Callable[[LoadedModel, Batch, Any], Scored]
    defaults: Any

    @property
    def summary(self) -> str:
        """Give the first line of the function's docstring."""
        return (self.run.__doc__ or "").strip().splitlines()[0]

    def settings(self, name: str, changes: Mapping[str, Any]) -> Any:
        """Change some defaults; an unknown setting or a value of another type is an error that says what is valid."""
        return replace(self.defaults, **checked_values(type(self.defaults), changes, name))


METHODS: dict[str, Method] = {
    "attention": Method(attention, AttentionSettings()),
    "norms": Method(norms, NormsSettings()),
    "gradient": Method(gradient, GradientSettings()),
    "saliency": Method(gradient, GradientSettings(norm="l2", of="probability")),
    "word_saliency": Method(word_saliency, WordSaliencySettings()),
    "input_x_gradient": Method(word_saliency, WordSaliencySettings(norm="l2", of="probability")),
    "integrated_gradients": Method(integrated_gradients, IntegratedGradientsSettings()),
    "erasure": Method(erasure, ErasureSettings()),
    "occlusion": Method(erasure, ErasureSettings(how="unknown")),
    "value_zeroing": Method(value_zeroing, ValueZeroingSettings()),
    "rollout": Method(rollout, RolloutSettings()),
    "alti": Method(alti, AltiSettings()),
    "hidden_gradient": Method(hidden_gradient, HiddenGradientSettings()),
    "hidden_erasure": Method(hidden_erasure, HiddenErasureSettings()),
    "lexical_probe": Method(lexical_probe, LexicalProbeSettings()),
    "best_attention": Method(best_attention, BestAttentionSettings()),
    "perturbation_mask": Method(perturbation_mask, PerturbationMaskSettings()),
    "adapter": Method(adapter, AdapterSettings()),
}


def find_method(name: str) -> Method:
    """Find a method by its name."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def resolved(settings: Any) -> dict[str, Any]:
    """Give settings as plain data, to be kept with the result."""
    return asdict(settings)
