"""Shapes in signatures are checked while tests run: a wrong one fails where it is given."""

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

from sightline.attend.watch import attend
from sightline.attribution import Attribution, Tokens


def test_a_wrong_shape_fails() -> None:
    layer = torch.nn.Identity()
    scores, values = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 4, 5)
    assert attend(layer, scores, values)[0].shape == (1, 2, 3, 5)
    with pytest.raises(TypeCheckError, match="source"):
        attend(layer, scores, torch.zeros(1, 2, 3, 5))


def test_a_wrong_kind_of_array_fails() -> None:
    token = Tokens(("a",), (0,), ("a",))
    Attribution(np.zeros((1, 1), np.float32), token, token)
    with pytest.raises(TypeCheckError, match="scores"):
        Attribution(np.zeros((1, 1), bool), token, token)
