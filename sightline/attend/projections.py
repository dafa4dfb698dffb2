"""From scores to attention weights: softmax and its sparse kin, over the real positions only.

    softmax    argmax_p <p, z> + H(p)
    sparsemax  argmin_p ||p - z||^2             Martins and Astudillo 2016
    sparsegen  sparsemax(z / (1 - sparsity))    Laha et al. 2018; Meister et al. 2021 call the sparsity lambda
    entmax     argmax_p <p, z> + H_alpha(p)     Peters et al. 2019; H_alpha is Tsallis' entropy

A mask is True where a position is real. Others get no weight, exactly as if they were not there; a row
without any real position gets zeros. Weights have at least single precision. First derivatives are exact;
second derivatives of entmax are not (the package that computes it has none).
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from math import inf
from types import ModuleType

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sightline.attend.settings import read_projection
from sightline.errors import InputError, missing_package

Scores = Float[Tensor, "*shape"]
Mask = Bool[Tensor, "*#shape"]
Weights = Float[Tensor, "*shape"]


def softmax(scores: Scores, mask: Mask | None = None, axis: int = -1) -> Weights:
    """Weigh every real position: p_i = exp(z_i) / sum_j exp(z_j)."""
    return _project(partial(torch.softmax, dim=-1), scores, mask, axis)


def sparsemax(scores: Scores, mask: Mask | None = None, axis: int = -1) -> Weights:
    """Project onto the simplex: p_i = max(z_i - tau, 0), with tau such that they sum to 1."""
    return _project(_entmax_package().sparsemax, scores, mask, axis)


def sparsegen(scores: Scores, mask: Mask | None = None, axis: int = -1, *, sparsity: float) -> Weights:
    """Project with adjustable sparsity (the papers' lambda) below 1: sparsemax(z / (1 - sparsity)).

    0 is sparsemax; the more negative it is, the denser; towards 1 all weight goes to the highest score.
    """
    if not -inf < sparsity < 1:
        raise InputError(f"The sparsity of sparsegen is {sparsity}: it must be a number less than 1.")
    return sparsemax(scores / (1 - sparsity), mask, axis)


def entmax(scores: Scores, mask: Mask | None = None, axis: int = -1, *, alpha: float) -> Weights:
    """Project more sparsely the higher alpha is: p_i = max((alpha - 1) z_i - tau, 0)^(1 / (alpha - 1)).

    1 is softmax, 2 is sparsemax.
    """
    if not 1 <= alpha < inf:
        raise InputError(f"The alpha of entmax is {alpha}: it must be a number of at least 1.")
    if alpha == 1:
        return softmax(scores, mask, axis)
    package = _entmax_package()
    # Two values have an exact algorithm; the others are found by bisection, to machine precision.
    exact = {1.5: package.entmax15, 2.0: package.sparsemax}
    return _project(exact.get(alpha, partial(package.entmax_bisect, alpha=alpha)), scores, mask, axis)


PROJECTIONS: dict[str, Callable[..., Tensor]] = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "sparsegen": sparsegen,
    "entmax": entmax,
}


def build_projection(name: str) -> Callable[..., Tensor]:
    """Build the projection that a recipe or a command names, such as `softmax`, `sparsegen:0.5`, `entmax:1.5`.

    It is called as `projection(scores, mask)`, with `axis` if that is not the last.
    """
    kind, parameters = read_projection(name)
    projection = partial(PROJECTIONS[kind], **parameters)
    projection(torch.zeros(1))  # a wrong parameter or a missing package is found now, not in the middle of a run
    return projection


def _project(project: Callable[[Tensor], Tensor], scores: Tensor, mask: Tensor | None, axis: int) -> Tensor:
    """Project along an axis over what neither the mask nor a score of minus infinity hides."""
    hidden = scores.isneginf() if mask is None else scores.isneginf() | ~mask
    scores, hidden = scores.movedim(axis, -1), hidden.movedim(axis, -1)
    scores = precise(scores)
    # A row that is wholly hidden is projected as zeros, since minus infinity alone would give NaN.
    nothing_left = hidden.all(-1, keepdim=True)
    visible = scores.masked_fill(hidden, -inf).masked_fill(nothing_left, 0.0)
    return project(visible).masked_fill(hidden, 0.0).movedim(-1, axis)


def precise(numbers: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return numbers in at least single precision: half precision is too coarse to add many of them."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def _entmax_package() -> ModuleType:
    """Import entmax, which only sparse projections need."""
    try:
        return import_module("entmax")
    except ImportError as error:
        raise missing_package("A sparse projection", error) from None
