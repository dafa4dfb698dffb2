"""The settings of the models that are written here, which recipes fill in; nothing here needs torch.

The string below a field describes it to users.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sightline.attend.settings import read_projection
from sightline.errors import InputError, unknown_name

Tied = Literal["none", "inputs", "all"]
TIED = ("none", "inputs", "all")
ATTENTION = ("learned", "uniform")
MERGES = ("sum", "mean")
COMBINATIONS = ("relu", "tanh", "linear")
ENCODERS = ("lstm", "transformer")
NORMS = ("post", "pre")
ALIGNMENTS = ("additive", "dot", "mlp", "uniform", "last")
TRAINED = ("all", "attention")


@dataclass(frozen=True)
class TransformerSettings:
    """The size of a Transformer."""

    encoder_layers: int = 3
    """Number of encoder layers."""
    decoder_layers: int = 3
    """Number of decoder layers."""
    width: int = 256
    """Width of embeddings and states."""
    heads: int = 4
    """Number of attention heads in each layer; it divides the width."""
    feed_forward: int = 1024
    """Width inside the feed-forward blocks."""
    norm: Literal["post", "pre"] = "post"
    """Normalise after each block (Vaswani et al. 2017), or before it, which bears higher learning rates."""
    dropout: float = 0.1
    """Fraction of activations dropped while training."""
    attention_dropout: float = 0.0
    """Fraction of attention weights dropped while training."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Activation of the feed-forward blocks."""
    max_positions: int = 256
    """Maximum number of pieces on either side, end token included."""

    def __post_init__(self) -> None:
        check_counts(self, ("encoder_layers", "decoder_layers", "width", "heads", "feed_forward", "max_positions"))
        for name in ("dropout", "attention_dropout"):
            check_share(self, name)
        check_choice(self, "norm", NORMS)
        if self.width % self.heads:
            raise InputError(f"width is {self.width}, which {self.heads} heads do not divide: change one of them.")


@dataclass(frozen=True)
class LstmSettings:
    """The size and the form of a recurrent model."""

    layers: int = 2
    """Number of layers, in the encoder and in the decoder."""
    width: int = 256
    """Width of embeddings and states, in the encoder for each direction."""
    bidirectional: bool = True
    """Read the source in both directions."""
    input_feeding: bool = False
    """Feed the last context back into the decoder (Luong et al. 2015)."""
    heads: int = 1
    """Number of attention heads."""
    merge: Literal["sum", "mean"] = "sum"
    """How the heads' contexts become one."""
    attention: Literal["learned", "uniform"] = "learned"
    """`learned`, or fixed as `uniform`."""
    combination: Literal["relu", "tanh", "linear"] = "relu"
    """The hidden layer that joins context and state; `linear` adds them and has none."""
    dropout: float = 0.2
    """Fraction of activations dropped while training."""
    tied: Tied = "inputs"
    """Which embeddings are shared: `none`, source and target (`inputs`), or these and the output (`all`)."""
    max_positions: int = 256
    """Maximum number of pieces on either side that it is trained on, end token included."""

    def __post_init__(self) -> None:
        check_counts(self, ("layers", "width", "heads", "max_positions"))
        check_share(self, "dropout")
        for name, valid in (("merge", MERGES), ("attention", ATTENTION), ("combination", COMBINATIONS), ("tied", TIED)):
            check_choice(self, name, valid)


@dataclass(frozen=True)
class ConvSettings:
    """The size of a convolutional model."""

    encoder_layers: int = 4
    """Number of encoder layers."""
    decoder_layers: int = 3
    """Number of decoder layers."""
    width: int = 256
    """Width of embeddings and states."""
    kernel: int = 3
    """Number of positions that one convolution sees."""
    dropout: float = 0.2
    """Fraction of activations dropped while training."""
    tied: Tied = "none"
    """Which embeddings are shared: `none`, source and target (`inputs`), or these and the output (`all`)."""
    max_positions: int = 256
    """Maximum number of pieces on either side, end token included."""

    def __post_init__(self) -> None:
        check_counts(self, ("encoder_layers", "decoder_layers", "width", "kernel", "max_positions"))
        check_share(self, "dropout")
        check_choice(self, "tied", TIED)


@dataclass(frozen=True)
class ClassifierSettings:
    """The size and the form of a classifier; the defaults are those of Meister et al."""

    encoder: Literal["lstm", "transformer"] = "lstm"
    """The kind of encoder."""
    layers: int = 1
    """Number of layers; the papers have one of LSTM, two of the Transformer."""
    width: int = 128
    """The width of states, in an LSTM for each direction."""
    bidirectional: bool = True
    """Whether an LSTM reads both ways; else its last state alone knows of all words (Snell et al. 2021, eq. 25)."""
    embedding_width: int = 300
    """The width of an LSTM's embeddings; a Transformer's have that of its states."""
    alignment: Literal["additive", "dot", "mlp", "uniform", "last"] = "additive"
    """How attention scores are made."""
    projection: str = "softmax"
    """How scores become weights, as softmax, sparsemax, sparsegen:0.5 or entmax:1.5."""
    dropout: float = 0.1
    """Fraction of activations dropped while training."""
    trained: Literal["all", "attention"] = "all"
    """With `attention`, everything else stays as it was drawn at random (Snell et al. 2021, appendix A.6)."""
    max_positions: int = 512
    """Maximum number of pieces of a text, end token included."""

    def __post_init__(self) -> None:
        check_choice(self, "encoder", ENCODERS)
        check_choice(self, "alignment", ALIGNMENTS)
        check_choice(self, "trained", TRAINED)
        check_counts(self, ("layers", "width", "embedding_width", "max_positions"))
        check_share(self, "dropout")
        read_projection(self.projection)


def check_counts(settings: Any, names: Iterable[str]) -> None:
    """Refuse a number of layers, heads or the like that is less than 1."""
    for name in names:
        if getattr(settings, name) < 1:
            raise InputError(f"{name} is {getattr(settings, name)}: it must be at least 1.")


def check_share(settings: Any, name: str) -> None:
    """Refuse a share that is negative, or everything."""
    if not 0 <= getattr(settings, name) < 1:
        raise InputError(f"{name} is {getattr(settings, name)}: it must be at least 0 and less than 1.")


def check_choice(settings: Any, name: str, valid: Iterable[str]) -> None:
    """Refuse a name that is none of the valid ones."""
    if getattr(settings, name) not in valid:
        raise unknown_name(name, str(getattr(settings, name)), valid)
