"""Running an LSTM over padded texts: the same as over each text alone, and as torch's packed sequences."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sightline.models.recurrence import new_lstm, run_between_padding, run_lstm

LENGTHS = (6, 1, 4)


def _inputs(lengths: tuple[int, ...], side: str, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = torch.randn(len(lengths), max(lengths), 5, dtype=dtype)
    real = torch.zeros(inputs.shape[:2], dtype=torch.long)
    for row, length in enumerate(lengths):
        real[row, :length] = 1
    return inputs, real if side == "right" else real.flip(1)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_text_is_read_as_if_alone(side: str, bidirectional: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    lstm = new_lstm(5, 7, 2, 0.3, bidirectional).to(dtype).eval()
    inputs, real = _inputs(LENGTHS, side, dtype)
    with torch.no_grad():
        states, memory = run_between_padding(lstm, inputs, real)
        for row, mask in enumerate(real.bool()):
            alone, alone_memory = run_lstm(lstm, inputs[row : row + 1, mask])
            torch.testing.assert_close(states[row, mask], alone[0])
            assert not states[row, ~mask].any()
            for part, alone_part in zip(memory, alone_memory, strict=True):
                torch.testing.assert_close(part[:, row], alone_part[:, 0])


def test_gradients_are_those_of_packed_sequences() -> None:
    torch.manual_seed(2)
    lstm = new_lstm(5, 7, 2, 0.0, bidirectional=True).double().train()
    inputs, real = _inputs(LENGTHS, "right", torch.float64)
    inputs.requires_grad_()
    wanted = [inputs, *lstm.parameters()]

    packed, packed_memory = lstm(pack_padded_sequence(inputs, real.sum(1), batch_first=True, enforce_sorted=False))
    packed_states, _ = pad_packed_sequence(packed, batch_first=True)
    states, memory = run_between_padding(lstm, inputs, real)
    weights = [torch.randn_like(part) for part in (states, *memory)]

    found, expected = (
        torch.autograd.grad(sum((part * weight).sum() for part, weight in zip(parts, weights, strict=True)), wanted)
        for parts in ((states, *memory), (packed_states, *packed_memory))
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    assert not found[0][~real.bool()].any()  # what stands at padding counts for nothing


def test_padding_may_hold_anything() -> None:
    torch.manual_seed(3)
    lstm = new_lstm(5, 7, 2, 0.0, bidirectional=True).eval()
    inputs, real = _inputs(LENGTHS, "right", torch.float32)
    with torch.no_grad():
        states, _ = run_between_padding(lstm, inputs, real)
        changed, _ = run_between_padding(lstm, inputs + 50 * (1 - real)[..., None], real)
    torch.testing.assert_close(states, changed, rtol=0, atol=0)
