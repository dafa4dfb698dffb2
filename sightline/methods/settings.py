"""The settings of every method: what can be asked of it, and what is taken where nothing is said.

They stand apart from the methods because they are checked, and listed by `sightline methods`, without torch. The string
below a field describes it to users.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from sightline.errors import InputError, unknown_name
from sightline.limits import MOST_POINTS
from sightline.models.names import ATTENTION_KINDS

READINGS = ("output", "input")
QUANTITIES = ("log_probability", "probability")
AVERAGES = ("clamped", "raw")
NORM_NAMES = ("l1", "l2")
BASELINES = ("pad", "zero", "mask")
ERASURES = ("delete", "zero", "mask", "unknown")
VECTORS = ("weighted", "vectors")
OBJECTS = ("output", "state", "jacobian")
PROBED = ("probability", "logit")


def _check_name(what: str, name: str | None, valid: Collection[str]) -> None:
    if name not in valid:
        raise unknown_name(what, str(name), valid)


def _check_steps(steps: int) -> None:
    if steps < 1:
        raise InputError(f"The number of steps is {steps}: it should be 1 or more.")


@dataclass(frozen=True)
class LayerSettings:
    """Which attention is read, and how."""

    HEADS: ClassVar[tuple[str, ...]] = ("all", "mean")

    kind: str | None = None
    """The attention to read: cross, encoder or decoder; by default the one that the outputs are read from."""
    layer: int | str = "all"
    """A layer's number (negative from the last), `all` (kept as an axis) or `mean`."""
    head: int | str = "mean"
    """A head's number, `all` (kept as an axis) or `mean`."""
    reading: str = "output"
    """The decoder step that belongs to an output: the one that produces it (`output`), or the next one, which is given
    it (`input`; Kobayashi et al.'s AWI)."""

    def __post_init__(self) -> None:
        if self.kind is not None:
            _check_name("kind of attention", self.kind, ATTENTION_KINDS)
        _check_name("reading", self.reading, READINGS)
        for name, choice, words in (("layer", self.layer, ("all", "mean")), ("head", self.head, self.HEADS)):
            if not isinstance(choice, int) and choice not in words:
                others = " or ".join(map(repr, words))
                raise InputError(f"The {name} is {choice!r}: it should be a number, {others}.")


@dataclass(frozen=True)
class SmoothSettings:
    """SmoothGrad: the mean over noisy copies of the source.

    The noise depends on the seed and the sentence alone, never on the batch.
    """

    smoothgrad: int = 0
    """Number of SmoothGrad samples; 0 for none."""
    sigma: float = 0.15
    """Standard deviation of the noise on the source embeddings."""
    relative: bool = True
    """Measure sigma in the range (max - min) of the sentence's embeddings."""
    average: str = "clamped"
    """`clamped` sets negative scores of each sample to zero and normalises its rows before averaging (Ding et al.'s
    released code); `raw` averages the samples as they are (their paper)."""
    seed: int = 0
    """Seed of the noise."""

    def __post_init__(self) -> None:
        if not 0 <= self.smoothgrad <= MOST_POINTS:
            raise InputError(
                f"The number of SmoothGrad samples is {self.smoothgrad}: it should be from 0 to {MOST_POINTS:,}."
            )
        if self.sigma < 0:
            raise InputError(f"The sigma of SmoothGrad is {self.sigma}: it should be 0 or more.")
        _check_name("average", self.average, AVERAGES)


@dataclass(frozen=True)
class OutputSettings:
    """Which number of an output is looked at."""

    of: str = "log_probability"
    """The quantity that is explained: log_probability or probability."""
    contrast: str | None = None
    """Another target, or one token for every position: explain the difference, "why this word and not that one"."""

    def __post_init__(self) -> None:
        _check_name("quantity", self.of, QUANTITIES)


@dataclass(frozen=True)
class AttentionSettings(LayerSettings, SmoothSettings):
    """The settings of `attention`; with `smoothgrad` it is Ding et al.'s smoothed attention."""

    original: bool = False
    """Read a calibrated model's weights before calibration, from the same pass."""

    def __post_init__(self) -> None:
        LayerSettings.__post_init__(self)
        SmoothSettings.__post_init__(self)


@dataclass(frozen=True)
class NormsSettings(LayerSettings):
    """The settings of `norms`."""

    HEADS: ClassVar[tuple[str, ...]] = ("sum", *LayerSettings.HEADS)

    head: int | str = "sum"
    """A head's number, `all`, `mean`, or `sum`: the norm of the sum over heads, which is the layer's own value."""
    of: str = "weighted"
    """`weighted` is the norm of alpha f(x); `vectors` leaves the weights out, and is the same in every row."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_name("quantity", self.of, VECTORS)


@dataclass(frozen=True)
class SaliencySettings(OutputSettings, SmoothSettings):
    """What the gradient methods share."""

    prefix: bool = False
    """Add the target prefix to the columns of an encoder-decoder model."""

    def __post_init__(self) -> None:
        OutputSettings.__post_init__(self)
        SmoothSettings.__post_init__(self)


@dataclass(frozen=True)
class GradientSettings(SaliencySettings):
    """The settings of `gradient`."""

    norm: str = "l1"
    """Over the embedding: l1, the mean absolute value (Li et al. 2016), or l2 (Meister et al. 2021, eq. 4)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_name("norm", self.norm, NORM_NAMES)


@dataclass(frozen=True)
class WordSaliencySettings(SaliencySettings):
    """The settings of `word_saliency`."""

    norm: str | None = None
    """Reduce gradient x embedding by a norm, l1 or l2, instead of summing it with its sign."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm is not None:
            _check_name("norm", self.norm, NORM_NAMES)


@dataclass(frozen=True)
class IntegratedGradientsSettings(OutputSettings):
    """The settings of `integrated_gradients`."""

    baseline: str = "pad"
    """Where the path starts: the embeddings of the `pad` or `mask` token, or `zero`."""
    steps: int = 20
    """Number of points on the path."""
    prefix: bool = False
    """Add the target prefix to the columns of an encoder-decoder model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_name("baseline", self.baseline, BASELINES)
        _check_steps(self.steps)
        if self.steps > MOST_POINTS:
            raise InputError(f"The number of steps is {self.steps}: it should be {MOST_POINTS:,} or less.")


@dataclass(frozen=True)
class ErasureSettings(OutputSettings):
    """The settings of `erasure`."""

    of: str = "probability"
    """The quantity that is explained: log_probability or probability."""
    how: str = "delete"
    """How an input is removed: `delete` the token (special tokens stay), `zero` its embedding, or replace it by the
    embedding of the `mask` or `unknown` token (the end token stays)."""
    signed: bool = False
    """Keep the sign of the difference: positive where the input helped."""
    prefix: bool = False
    """Add the target prefix to the columns of an encoder-decoder model."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_name("way to erase", self.how, ERASURES)


@dataclass(frozen=True)
class HiddenErasureSettings(OutputSettings):
    """The settings of `hidden_erasure`."""

    of: str = "probability"
    """The quantity that is explained: log_probability or probability."""
    signed: bool = False
    """Keep the sign of the difference: positive where the state helped."""


@dataclass(frozen=True)
class HiddenGradientSettings(OutputSettings):
    """The settings of `hidden_gradient`."""

    of: str = "probability"
    """The quantity that is explained: log_probability or probability."""
    toward: str = "output"
    """`output` scores encoder states for each output; `state` scores inputs for the length of each encoder state,
    `jacobian` for the state itself (the norm of its full Jacobian)."""
    norm: str = "l2"
    """Over the state's or embedding's width: l1, the mean absolute value, or l2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_name("object", self.toward, OBJECTS)
        _check_name("norm", self.norm, NORM_NAMES)


@dataclass(frozen=True)
class ValueZeroingSettings:
    """The settings of `value_zeroing`."""

    kind: str | None = None
    """The attention to change: cross, encoder or decoder; by default the one that the outputs are read from."""
    layer: int | str = "all"
    """A layer's number (negative from the last), `all` (kept as an axis) or `mean`."""

    def __post_init__(self) -> None:
        self.reading()

    def reading(self) -> LayerSettings:
        """Return the same choice in the form that all attention methods read."""
        return LayerSettings(kind=self.kind, layer=self.layer)


@dataclass(frozen=True)
class RolloutSettings:
    """The settings of `rollout`."""

    residual: float = 0.5
    """Weight of the residual connection; attention has the rest."""

    def __post_init__(self) -> None:
        if not 0 <= self.residual <= 1:
            raise InputError(f"The residual's weight is {self.residual}: it should be between 0 and 1.")


@dataclass(frozen=True)
class LexicalProbeSettings:
    """The settings of `lexical_probe`."""

    of: str = "probability"
    """The probability, or its logit log(beta / (1 - beta)) (as in the released code)."""

    def __post_init__(self) -> None:
        _check_name("quantity", self.of, PROBED)


@dataclass(frozen=True)
class PerturbationMaskSettings:
    """The settings of `perturbation_mask`. A calibrated model, whose mask is learned, needs none of them."""

    alpha: float = 1.0
    """Weight of the penalty on the size of the mask."""
    steps: int = 30
    """Number of steps of Adam that fit the mask."""
    rate: float = 0.3
    """Learning rate of Adam."""

    def __post_init__(self) -> None:
        _check_steps(self.steps)


@dataclass(frozen=True)
class NoSettings:
    """The settings of a method that has none."""
