"""What a model would say of each input alone: the lexical probe (Snell et al. 2021).

It asks for a reading that only some models have: everything behind the attention sees nothing of the source but the
context vector, so that one encoder state can stand in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sightline.errors import InputError, unknown_name
from sightline.methods.scored import Scored
from sightline.models.examples import Batch
from sightline.models.loaded import LoadedModel, take_rows

QUANTITIES = ("probability", "logit")


@dataclass(frozen=True)
class LexicalProbeSettings:
    """The settings of `lexical_probe`: `of` is the probability, or its logit log(beta / (1 - beta)) (as released)."""

    of: str = "probability"

    def __post_init__(self) -> None:
        if self.of not in QUANTITIES:
            raise unknown_name("quantity", self.of, QUANTITIES)


@torch.no_grad()
def lexical_probe(model: LoadedModel, batch: Batch, settings: LexicalProbeSettings) -> Scored:
    """Give the probability of each output if the model attended to one input alone.

    beta_tl = N([h_l, s_t])_{y_t} (Snell et al. 2021, eq. 4), with the real decoder state s_t; for two labels
    beta_l = sigmoid((2y - 1) W' h_l) (eq. 9), whose logit is (2y - 1) W' h_l
    """
    if not hasattr(model.module, "logits_by_position"):
        raise InputError(
            f"{type(model.module).__name__} has no lexical probe: it is for recurrent translation models and for "
            "classifiers, in which one encoder state can stand in place of the context."
        )
    columns = [
        _numbers(take_rows(logits, batch.rows), batch.outputs, settings.of)
        for logits in model.module.logits_by_position(**model.inputs(batch))
    ]
    return Scored(torch.stack(columns, -1) * batch.mask[:, None])


def _numbers(
    logits: Float[Tensor, "batch target vocabulary"], outputs: Tensor, quantity: str
) -> Float[Tensor, "batch target"]:
    """Give the probabilities of outputs, or their logits: z_y - log of the sum of all other exp z."""
    index = outputs[..., None]
    if quantity == "probability":
        return logits.softmax(-1).gather(-1, index)[..., 0]
    others = logits.scatter(-1, index, -torch.inf).logsumexp(-1)
    return logits.gather(-1, index)[..., 0] - others
