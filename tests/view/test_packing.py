import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from view.attributions import unpack

from sightline.view import packing
from sightline.view.packing import pack


@given(
    arrays(np.float32, array_shapes(min_dims=2, max_dims=4, max_side=4), elements=st.floats(-1e6, 1e6, width=32)),
    st.sampled_from([0, packing.WIDE_CELLS]),
)
def test_scores_come_back_within_the_stated_error(scores, wide_cells):
    before = packing.WIDE_CELLS
    packing.WIDE_CELLS = wide_cells
    try:
        packed = pack(scores)
    finally:
        packing.WIDE_CELLS = before
    assert packed.limit == (32767 if wide_cells else 127)
    found, tops = unpack(packed, scores.shape)
    assert (np.abs(found - scores) <= tops * (0.5 / packed.limit + 1e-6)).all()


def test_a_row_without_mass_comes_back_as_zeros():
    found, _ = unpack(pack(np.zeros((2, 3), np.float32)), (2, 3))
    assert not found.any()


def test_nothing_can_be_packed():
    found, _ = unpack(pack(np.zeros((2, 0), np.float32)), (2, 0))
    assert found.shape == (2, 0)
