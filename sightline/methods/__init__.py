"""The attribution methods: a plain table.

To add a method, write a function `(model, batch, settings) -> Scored`, its frozen settings in `settings.py`, and a line
here. An alias is a line with other defaults. A function is imported when it is first run, so that methods can be listed
and their settings checked without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sightline.errors import unknown_name
from sightline.methods.settings import (
    AttentionSettings,
    ErasureSettings,
    GradientSettings,
    HiddenErasureSettings,
    HiddenGradientSettings,
    IntegratedGradientsSettings,
    LexicalProbeSettings,
    NormsSettings,
    NoSettings,
    PerturbationMaskSettings,
    RolloutSettings,
    ValueZeroingSettings,
    WordSaliencySettings,
)
from sightline.values import checked_values

if TYPE_CHECKING:
    from sightline.methods.scored import Scored
    from sightline.models.examples import Batch
    from sightline.models.loaded import LoadedModel


@dataclass(frozen=True)
class Method:
    """A method: its function, its default settings (an instance of a frozen dataclass), and what it computes.

    The function may be named, as `file.function` of this package.
    """

    function: Callable[[LoadedModel, Batch, Any], Scored] | str
    defaults: Any
    summary: str

    def run(self, model: LoadedModel, batch: Batch, settings: Any) -> Scored:
        """Compute the scores of a batch."""
        function: Any = self.function
        if isinstance(function, str):
            file, _, name = function.partition(".")
            function = getattr(import_module(f"{__name__}.{file}"), name)
        return function(model, batch, settings)

    def settings(self, name: str, changes: Mapping[str, Any]) -> Any:
        """Change some defaults; an unknown setting or a value of another type is an error that says what is valid."""
        return replace(self.defaults, **checked_values(type(self.defaults), changes, name))


RANDOM = "random"
"""The name under which measures of faithfulness rank inputs by chance, to compare with."""

METHODS: dict[str, Method] = {
    "attention": Method("attention.attention", AttentionSettings(), "Attention weights, by layer and head."),
    "norms": Method(
        "norms.norms",
        NormsSettings(),
        "Norms of attention-weighted vectors, of the sum over heads or by head (Kobayashi et al. 2020).",
    ),
    "gradient": Method(
        "gradients.gradient",
        GradientSettings(),
        "Size of the gradient of each output with respect to each input's embedding (Li et al. 2016).",
    ),
    "saliency": Method(
        "gradients.gradient",
        GradientSettings(norm="l2", of="probability"),
        "Gradient as Inseq's `saliency`: the L2 norm, of the probability.",
    ),
    "word_saliency": Method(
        "gradients.word_saliency",
        WordSaliencySettings(),
        "Gradient . embedding, signed: what speaks for and against each output (Ding et al. 2019).",
    ),
    "input_x_gradient": Method(
        "gradients.word_saliency",
        WordSaliencySettings(norm="l2", of="probability"),
        "Gradient x embedding as Inseq's `input_x_gradient`: the L2 norm, of the probability.",
    ),
    "integrated_gradients": Method(
        "gradients.integrated_gradients",
        IntegratedGradientsSettings(),
        "Mean gradient along the path from a baseline, times the path; rows sum to the gain over the baseline.",
    ),
    "erasure": Method(
        "erasure.erasure",
        ErasureSettings(),
        "Leave-one-out: how much each output changes when an input is removed (Meister et al. 2021).",
    ),
    "occlusion": Method(
        "erasure.erasure",
        ErasureSettings(how="unknown"),
        "Leave-one-out as Inseq's `occlusion`: the input is replaced by the unknown token.",
    ),
    "value_zeroing": Method(
        "value_zeroing.value_zeroing",
        ValueZeroingSettings(),
        "How much a layer's output changes when an input's value is set to zero (Mohebbi et al. 2023).",
    ),
    "rollout": Method(
        "flow.rollout",
        RolloutSettings(),
        "Attention multiplied through all layers, residual connections included (Abnar and Zuidema 2020).",
    ),
    "alti": Method(
        "flow.alti",
        NoSettings(),
        "Contributions of whole layers, residual and layer norm included, through all layers (Ferrando et al. 2022).",
    ),
    "hidden_gradient": Method(
        "hidden.hidden_gradient",
        HiddenGradientSettings(),
        "Size of the gradient of each output with respect to each encoder state (Lu et al. 2021).",
    ),
    "hidden_erasure": Method(
        "erasure.hidden_erasure",
        HiddenErasureSettings(),
        "How much each output changes when an encoder state is removed (Meister et al. 2021).",
    ),
    "lexical_probe": Method(
        "probes.lexical_probe",
        LexicalProbeSettings(),
        "Probability of each output if the model attended to one input alone (Snell et al. 2021).",
    ),
    "best_attention": Method(
        "probes.best_attention",
        NoSettings(),
        "The attention weights that would make each output most probable (Snell et al. 2021).",
    ),
    "perturbation_mask": Method(
        "masks.perturbation_mask",
        PerturbationMaskSettings(),
        "1 - m of the mask that hurts each output most for its size, learned or fitted (Lu et al. 2021).",
    ),
    "adapter": Method(
        "adapter.adapter",
        NoSettings(),
        "Probability that each target position came from each source position, by an alignment adapter.",
    ),
}


def find_method(name: str) -> Method:
    """Find a method by its name."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def resolved(settings: Any) -> dict[str, Any]:
    """Return settings as plain data, to be kept with the result."""
    return asdict(settings)
