"""Packed weights: close to the original, read back exactly as packed, small, and refused in one sentence if damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import zoo
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import sightline
from sightline.errors import InputError
from sightline.models.packed import (
    FORMAT,
    PACKED,
    UNPACKED,
    dequantize,
    pack,
    pack_folder,
    quantize,
    read_packed,
    unpack,
)


def _not_tiny(value: float) -> float:
    """Return 0 for a number whose share of 127 would have less than full precision."""
    return value if abs(value) > 1e-30 else 0.0


MATRICES = arrays(
    np.float32, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=st.floats(-1e3, 1e3, width=32).map(_not_tiny)
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    zoo.model("marian").save(tmp_path / "saved")
    pack_folder(tmp_path / "saved")
    return tmp_path / "saved"


@given(MATRICES)
def test_numbers_are_the_nearest_multiples_of_their_rows_scale(matrix: np.ndarray) -> None:
    numbers, scales = quantize(torch.from_numpy(matrix))
    for row, found, scale in zip(matrix.astype(np.float64), numbers.tolist(), scales.double().tolist(), strict=True):
        assert scale == pytest.approx(np.abs(row).max() / 127, rel=2**-8, abs=1e-38)
        for value, number in zip(row, found, strict=True):
            if scale > 0:
                assert abs(value - number * scale) <= scale / 2 * (1 + 1e-5) or abs(number) == 127
                assert abs(value - number * scale) <= 0.8 * scale  # at the ends, where the scale was rounded down
            else:
                assert number == 0


@given(MATRICES)
def test_what_is_unpacked_packs_to_the_same_again(matrix: np.ndarray) -> None:
    numbers, scales = quantize(torch.from_numpy(matrix))
    unpacked = dequantize(numbers, scales)
    exact = numbers.double() * scales.double()[:, None]
    assert torch.equal(unpacked.double(), exact)
    again, scales_again = quantize(unpacked)
    assert torch.equal(again, numbers)
    assert torch.equal(scales_again, scales)


def test_matrices_take_a_byte_an_entry_and_the_rest_two() -> None:
    weights = {"matrix": torch.randn(3, 4), "bias": torch.randn(1, 5), "norm": torch.randn(4), "ids": torch.arange(3)}
    packed = pack(weights)
    assert {name: tensor.dtype for name, tensor in packed.items()} == {
        "matrix": torch.int8,
        "matrix.scale": torch.bfloat16,
        "bias": torch.float16,
        "norm": torch.float16,
        "ids": torch.int64,
    }
    found = unpack(packed)
    assert found.keys() == weights.keys()
    assert found["matrix"].dtype == found["norm"].dtype == torch.float32
    assert torch.equal(found["norm"], weights["norm"].half().float())
    assert torch.equal(found["ids"], weights["ids"])


def test_a_packed_model_is_loaded_as_any_other(folder: Path) -> None:
    original, packed = zoo.model("marian"), sightline.load(folder)
    assert not (folder / UNPACKED).exists()
    for name, tensor in packed.module.state_dict().items():
        other = original.module.state_dict()[name]
        torch.testing.assert_close(tensor, other, atol=other.abs().max().item() / 200, rtol=1e-3)
    assert packed.module.config.name_or_path == str(folder)
    assert packed.module.generation_config.to_dict() == original.module.generation_config.to_dict()
    assert packed.module.get_encoder().embed_tokens.weight is packed.module.get_decoder().embed_tokens.weight
    assert next(sightline.load(folder, dtype="bfloat16").module.parameters()).dtype == torch.bfloat16


def test_it_is_read_back_exactly_as_packed(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    sightline.load(folder).save(again)
    pair = zoo.SOURCES[0], zoo.TARGETS[0]
    assert sightline.explain(folder, *pair, method="gradient") == sightline.explain(again, *pair, method="gradient")
    pack_folder(again)
    before, after = load_file(folder / PACKED), load_file(again / PACKED)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_ordinary_weights_count_more(folder: Path) -> None:
    zoo.model("marian").save(folder)
    (folder / PACKED).write_bytes(b"")
    assert torch.equal(
        sightline.load(folder).module.final_logits_bias, zoo.model("marian").module.final_logits_bias
    )  # fmt: skip


def _change(path: Path, name: str, value: torch.Tensor | None, metadata: dict[str, str]) -> None:
    tensors = load_file(path)
    tensors.pop(name, None)
    save_file(tensors if value is None else tensors | {name: value}, path, metadata)


def test_damage(folder: Path) -> None:
    path = folder / PACKED
    whole = path.read_bytes()
    name = "model.shared.weight"
    for damaged in (b"", whole[:-1], whole[:1000], whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:], b"\xff" * 100):
        path.write_bytes(damaged)
        with pytest.raises(
            InputError, match=r"packed\.safetensors are damaged \(.*\): restore them from a copy"
        ) as one:
            sightline.load(folder)
        assert "\n" not in str(one.value)
    path.write_bytes(whole)
    _change(path, name, None, {"format": FORMAT})
    with pytest.raises(InputError, match="it has no checksum"):
        read_packed(folder)
    path.write_bytes(whole)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    _change(path, name, None, metadata)
    with pytest.raises(InputError, match="do not have its checksum"):
        read_packed(folder)
    path.write_bytes(whole)
    _change(path, name, None, {})
    with pytest.raises(InputError, match="its format is not sightline-packed-1"):
        read_packed(folder)


def test_weights_that_do_not_belong_together(folder: Path, tmp_path: Path) -> None:
    packed = load_file(folder / PACKED)
    name = next(name for name, tensor in packed.items() if tensor.dtype == torch.int8)
    for wrong, message in (
        ({key: value for key, value in packed.items() if key != f"{name}.scale"}, "a scale for each of its rows"),
        (packed | {f"{name}.scale": torch.ones(1).bfloat16()}, "a scale for each of its rows"),
        ({key: value for key, value in packed.items() if key != name}, "belongs to no weights"),
    ):
        with pytest.raises(ValueError, match=message):
            unpack(wrong)
    (folder / PACKED).unlink()
    kept = {key: value for key, value in unpack(packed).items() if key != name}
    save_file(kept, folder / UNPACKED)
    pack_folder(folder)
    with pytest.raises(InputError, match="lacks 1 of its weights"):
        sightline.load(folder)
