"""What a model would say of each input alone: the lexical probe (Snell et al. 2021), and what it should attend to.

Both ask for a reading that only some models have: everything after the attention sees nothing of the source but the
context vector, so that one encoder state can stand in its place.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from sightline.attend.optimal import optimal_attention
from sightline.errors import InputError
from sightline.methods.scored import Scored
from sightline.methods.settings import LexicalProbeSettings, NoSettings
from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel
from sightline.models.states import take_rows


@torch.no_grad()
def lexical_probe(model: LoadedModel, batch: Batch, settings: LexicalProbeSettings) -> Scored:
    """Return the probability of each output if the model attended to one input alone.

    beta_tl = N([h_l, s_t])_{y_t} (Snell et al. 2021, eq. 4), with the real decoder state s_t; for two labels
    beta_l = sigmoid((2y - 1) W' h_l) (eq. 9), whose logit is (2y - 1) W' h_l
    """
    columns = [_numbers(logits, batch.outputs, settings.of) for logits in _logits_by_position(model, batch)]
    return Scored(torch.stack(columns, -1) * batch.mask[:, None])


@torch.no_grad()
def best_attention(model: LoadedModel, batch: Batch, settings: NoSettings) -> Scored:
    """Return the attention weights that would make each output most probable, found by convex optimisation.

    alpha^opt_t = argmin over the simplex of -log softmax(sum_l alpha_l W (h_l + s_t))_{y_t} (Snell et al. 2021, A.1)
    """
    if getattr(model.module.config, "combination", "linear") != "linear":
        raise InputError(
            f"This {type(model.module).__name__} has a hidden layer after its attention, so the best attention cannot "
            "be computed: it is for recurrent translation models with combination: linear, and for classifiers."
        )
    logits = torch.stack(list(_logits_by_position(model, batch)), 2)  # (batch, target, source, vocabulary)
    mask = batch.mask[:, None].expand(logits.shape[:3])
    weights, _ = optimal_attention(logits.flatten(0, 1), batch.outputs.flatten(), mask.flatten(0, 1))
    return Scored(weights.view(mask.shape))


def _logits_by_position(model: LoadedModel, batch: Batch) -> Iterator[Float[Tensor, "batch target vocabulary"]]:
    if not hasattr(model.module, "logits_by_position"):
        raise InputError(
            f"{type(model.module).__name__} has no lexical probe: it is for recurrent translation models and for "
            "classifiers, in which one encoder state can stand in place of the context."
        )
    return (take_rows(logits, batch.rows) for logits in model.module.logits_by_position(**model.inputs(batch)))


def _numbers(
    logits: Float[Tensor, "batch target vocabulary"], outputs: Tensor, quantity: str
) -> Float[Tensor, "batch target"]:
    """Return the probabilities of outputs, or their logits: z_y - log of the sum of all other exp z."""
    index = outputs[..., None]
    if quantity == "probability":
        return logits.softmax(-1).gather(-1, index)[..., 0]
    others = logits.scatter(-1, index, -torch.inf).logsumexp(-1)
    return logits.gather(-1, index)[..., 0] - others
