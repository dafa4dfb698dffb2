"""How attention is projected and calibrated, as recipes say it; nothing here needs torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sightline.errors import InputError, unknown_name

PARAMETERS: dict[str, str | None] = {"softmax": None, "sparsemax": None, "sparsegen": "sparsity", "entmax": "alpha"}
"""The projections of attention scores, and the one parameter of those that have one."""

FUSIONS = ("fixed", "anneal", "gate")
RENORMALIZATIONS = ("none", "sum", "softmax")
GATES = ("head", "layer")
PENALTIES = ("mean", "squared", "released")
CALIBRATED_LAYERS = ("all", "last")
LAST_GAMMA = math.exp(-1.5)
"""The original attention's share at the end of annealing."""
RELEASED: dict[str, Any] = {
    "alpha": 0.03,
    "alpha_warmup": 0.0,
    "bound": None,
    "penalty": "released",
    "gate": "layer",
    "renormalize": "none",
}
"""The settings under which a calibration behaves as the code does that Lu et al. released; it also clips no gradients
(`training.clip: null`)."""


def read_projection(name: str) -> tuple[str, dict[str, float]]:
    """Read the name of a projection, such as `softmax`, `sparsegen:0.5` or `entmax:1.5`; return its parameter apart."""
    kind, colon, value = name.partition(":")
    if kind not in PARAMETERS:
        raise unknown_name("projection", kind, PARAMETERS)
    parameter = PARAMETERS[kind]
    if parameter is None:
        if colon:
            raise InputError(f"The projection {name!r} has a parameter, but {kind} takes none.")
        return kind, {}
    try:
        return kind, {parameter: float(value)}
    except ValueError:
        raise InputError(f"The projection {name!r} needs its {parameter}: write {kind}:<{parameter}>.") from None


@dataclass(frozen=True)
class CalibrationSettings:
    """How attention is calibrated, and how its mask is trained.

    Defaults are the paper's equations, but for `alpha_warmup` and `bound`, without which the mask dies on small data;
    `RELEASED` has the released code's settings.
    """

    fusion: str = "gate"
    """How calibrated and original weights are joined: fixed, anneal or gate."""
    alpha: float = 0.1
    """The weight of the penalty on the mask's size; the greater, the less is perturbed. The released script's 0.03 is
    about 0.0004 in the unit of the penalty `mean`, so little that the penalty hardly acts."""
    # Deviation: the paper's alpha is constant. Before attention has formed, perturbing it changes nothing, so that the
    # penalty alone moves the mask, to 1, where it stays.
    alpha_warmup: float = 0.2
    """The fraction of all steps over which alpha rises from 0, linearly, once attention has formed; 0 for a constant
    alpha."""
    # Deviation: eq. 4 has no bound.
    bound: float | None = 5.0
    """The greatest size of the mask's logits, approached smoothly; None for no bound."""
    ratio: float = 0.1
    """The share that is added by the fusion `fixed` (the paper's lambda)."""
    renormalize: str = "none"
    """What follows: `none`, as in eq. 9 and 10; division by the `sum`; the `softmax` of eq. 8, which flattens."""
    gate: str = "head"
    """Whose weights a gate has: the `head`'s own (eq. 10), or those of all heads of its `layer` (as released)."""
    penalty: str = "mean"
    """The mask's size: the `mean` over steps, layers and heads of ||1 - m_t|| / sqrt(n) (eq. 6, so that alpha means the
    same at every size), the same `squared`, or as `released`: one norm over a whole batch, divided by the source's
    length, of the calibrated pass's mask."""
    layers: str = "all"
    """Which cross-attention layers are calibrated: `all`, as in the paper, or the `last` alone."""

    def __post_init__(self) -> None:
        for name, valid in (
            ("fusion", FUSIONS),
            ("renormalize", RENORMALIZATIONS),
            ("gate", GATES),
            ("penalty", PENALTIES),
            ("layers", CALIBRATED_LAYERS),
        ):
            if getattr(self, name) not in valid:
                raise unknown_name(name, str(getattr(self, name)), valid)
        for name in ("alpha", "ratio"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}: it should be a number of at least 0.")
        if not 0 <= self.alpha_warmup <= 1:
            raise InputError(f"alpha_warmup is {self.alpha_warmup}: it should be a fraction from 0 to 1.")
        if self.bound is not None and not 0 < self.bound < math.inf:
            raise InputError(f"bound is {self.bound}: it should be a number above 0, or null for no bound.")

    def alpha_at(self, since: float | None) -> float:
        """Return alpha when attention formed this fraction of all steps ago, or (None) has not formed yet.

        alpha min(1, since / alpha_warmup)
        """
        if not self.alpha_warmup:
            return self.alpha
        return 0.0 if since is None else self.alpha * min(since / self.alpha_warmup, 1.0)

    def gamma_at(self, share: float) -> float:
        """Return the original attention's share under the fusion `anneal`: exp(-1.5 share)."""
        # Deviation: the paper's exp(-s / 100,000) ends at the same value after its 150,000 steps.
        return LAST_GAMMA**share

    @property
    def greatest_mask(self) -> float:
        """Return the value that no mask exceeds: the sigmoid of the bound."""
        return 1.0 if self.bound is None else 1 / (1 + math.exp(-self.bound))
