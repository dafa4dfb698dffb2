"""The states of a model's layers, as one pass gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class EncoderOutput:
    """What an encoder gave: its last states and, by name, what else its own decoder takes from it."""

    states: Float[Tensor, "batch source width"]
    beside: Mapping[str, Tensor]

    def taken(self, rows: Sequence[int]) -> EncoderOutput:
        """Take some rows of the batch, perhaps more than once."""
        index = torch.tensor(rows, device=self.states.device)
        return EncoderOutput(self.states[index], {name: tensor[index] for name, tensor in self.beside.items()})


class States(NamedTuple):
    """The states of an encoder and of its decoder, layer by layer."""

    encoder: tuple[Float[Tensor, "batch source _"], ...]
    decoder: tuple[Float[Tensor, "batch step _"], ...]


def take_rows(
    tensor: Float[Tensor, "batch position width"], rows: Int[Tensor, "batch target"]
) -> Float[Tensor, "batch target width"]:
    """Pick the positions where the outputs are predicted."""
    count = rows.shape[1]
    if count <= tensor.shape[1] and bool((rows == torch.arange(count, device=rows.device)).all()):
        return tensor[:, :count]
    return tensor.gather(1, rows[..., None].expand(-1, -1, tensor.shape[-1]))
