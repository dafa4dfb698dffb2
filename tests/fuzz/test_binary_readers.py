"""Readers of binary files on 300 damaged cases each: read well, or refused in one sentence."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zoo
from fuzz.damage import damaged_bytes, damaged_folders, damaged_json, limited_memory, outcomes, replace
from safetensors.torch import load, save

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.saved import load_aligner, save_aligner
from sightline.alignment.statistical import ALIGNERS, train_aligner
from sightline.attend.alignment import AdapterShape, AlignmentAdapter
from sightline.attend.settings import CalibrationSettings
from sightline.attribution import load_attributions, save_attributions
from sightline.models import packed, saved_adapter
from sightline.models.saved_calibration import SETTINGS, WEIGHTS, attach_saved_calibration, save_calibration
from sightline.models.sealed_weights import CHECKSUM, checksum
from sightline.sealed import write_arrays
from sightline.verbs.calibrating import attach_calibration

CASES = 300
PAIRS = [
    (["the", "red", "house"], ["la", "maison", "rouge"]),
    (["the", "door"], ["la", "porte"]),
    (["red", "door"], ["porte", "rouge"]),
]


def check(cases: Iterator[Any], read: Callable[[Any], Any], both: bool = True) -> None:
    """Read all cases; there are cases of both kinds, or all are refused."""
    with limited_memory():
        well, refused = outcomes(cases, read)
    assert well + refused >= CASES
    assert refused > CASES // 10
    assert well > CASES // 100 if both else well == 0


def damaged_files(content: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(count):
        yield damaged_bytes(content, rng)


# Attributions


def test_attributions_are_verified(tmp_path: Path) -> None:
    path = tmp_path / "why.parquet"
    sources, targets = zoo.SOURCES[:3], zoo.TARGETS[:3]
    save_attributions(sightline.explain(zoo.model("marian"), sources, targets, method="attention"), path)

    def read(content: bytes) -> None:
        replace(path, content)
        list(load_attributions(path))

    content = path.read_bytes()
    check(damaged_files(content, CASES), read, both=False)
    read(content)


def test_attributions_with_a_right_checksum_and_wrong_labels(tmp_path: Path) -> None:
    path = tmp_path / "why.parquet"
    why = sightline.explain(zoo.model("marian"), zoo.SOURCES[0], zoo.TARGETS[0], method="attention", layer="all")
    labels = json.dumps({name: value for name, value in why.to_dict().items() if name != "scores"})
    rng = random.Random(0)

    def cases() -> Iterator[tuple[str, np.ndarray]]:
        for _ in range(CASES):
            scores = rng.choice((why.scores, why.scores, why.scores[..., :-1], why.scores[0], why.scores[:0]))
            yield damaged_json(labels, rng), scores

    def read(case: tuple[str, np.ndarray]) -> None:
        try:
            plain = json.loads(case[0])
        except json.JSONDecodeError:
            plain = case[0]
        write_arrays(iter([(plain, case[1])]), path)
        for one in load_attributions(path):
            one.words().to_dict()
            repr(one)

    check(cases(), read)


# Aligners


@pytest.mark.parametrize("kind", ALIGNERS)
def test_aligners(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "aligner"
    save_aligner(train_aligner(build_bitext(PAIRS), kind), path)
    content = path.read_bytes()
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    rng = random.Random(0)

    def cases() -> Iterator[bytes]:
        for number in range(CASES):
            yield damaged_bytes(content, rng) if number % 3 == 0 else _damaged_archive(arrays, rng)

    def read(case: bytes) -> None:
        replace(path, case)
        aligner = load_aligner(path)
        for alignment in aligner.align([*PAIRS, (["unknown"], ["inconnu"]), ([], ["la"])]):
            assert all(0 <= i < 3 and 0 <= j < 3 for i, j in alignment.links)

    check(cases(), read)


def _damaged_archive(arrays: dict[str, np.ndarray], rng: random.Random) -> bytes:
    """Write arrays as they are saved, one of them changed or missing."""
    name = rng.choice(list(arrays))
    changed = dict(arrays)
    if name == "about" and rng.random() < 0.9:
        text = damaged_json(arrays[name].tobytes().decode(), rng)
        changed[name] = np.frombuffer(text.encode(), np.uint8)
    elif rng.random() < 0.1:
        del changed[name]
    else:
        changed[name] = _damaged_array(arrays[name], rng)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **changed)
    return file.getvalue()


def _damaged_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    how = rng.randrange(6)
    if how == 0:
        return array.astype(rng.choice([np.int64, np.float16, np.float32, np.complex64, "U3", bool]))
    if how == 1:
        return array[: rng.randrange(len(array))] if array.ndim else array.reshape(1)
    if how == 2:
        return array[None]
    new = array.copy()
    if how == 3:
        return new[::-1]
    place = rng.randrange(new.size)
    value = rng.choice((-1, 0, 1, 2, 100, 0.5, 1e9, float("nan"), float("inf")))
    with np.errstate(invalid="ignore", over="ignore"):
        new.reshape(-1)[place] = np.asarray(value).astype(new.dtype)
    return new


# Weights beside models


def _damaged_tensors(content: bytes, rng: random.Random, metadata: Callable[[Any], dict[str, str]]) -> bytes:
    """Write tensors as they are saved, one of them changed, renamed or missing."""
    tensors = load(content)
    name = rng.choice(sorted(tensors))
    tensor = tensors.pop(name)
    how = rng.randrange(6)
    if how == 0:
        tensors[name] = tensor.to(rng.choice((torch.int8, torch.float16, torch.float64, torch.bool, torch.int64)))
    elif how == 1:
        tensors[name] = tensor.reshape(-1)[:-1].clone()
    elif how == 2:
        tensors[name] = tensor[None].clone()
    elif how == 3:
        tensors[rng.choice(("", "x", name + "x", name.upper()))] = tensor
    elif how == 4:
        tensors[name] = torch.full_like(tensor, rng.choice((0, 1, 127)))
    return save(tensors, metadata=metadata(tensors))


def test_packed_weights(tmp_path: Path) -> None:
    zoo.fresh("marian").module.save_pretrained(tmp_path)
    packed.pack_folder(tmp_path)
    path = tmp_path / packed.PACKED
    content = path.read_bytes()
    names = set(packed.read_packed(tmp_path))
    rng = random.Random(0)

    def sealed(tensors: Any) -> dict[str, str]:
        return {"format": packed.FORMAT, CHECKSUM: checksum(tensors)}

    def cases() -> Iterator[bytes]:
        for number in range(CASES):
            yield damaged_bytes(content, rng) if number % 2 else _damaged_tensors(content, rng, sealed)

    def read(case: bytes) -> None:
        replace(path, case)
        weights = packed.read_packed(tmp_path)
        assert all(tensor.dtype != torch.int8 for tensor in weights.values())

    check(cases(), read)
    assert len(names) > 10


def _damage_weights(folder: Path, names: list[str], weights: str, count: int) -> Iterator[str]:
    """Damage the files of an adapter: their bytes and JSON, and then its tensors."""
    yield from damaged_folders(folder, names, count // 2)
    rng = random.Random(1)
    content = (folder / weights).read_bytes()
    for _ in range(count - count // 2):
        case = _damaged_tensors(content, rng, lambda _: {})
        replace(folder / weights, case)
        yield f"tensors {case[:300]!r}"
    replace(folder / weights, content)


def test_alignment_adapters(tmp_path: Path) -> None:
    model = zoo.fresh("marian")
    own, foreign = (AlignmentAdapter(AdapterShape((w,) * 3, (w,) * 3, width=4)) for w in (zoo.WIDTH, 8))
    saved_adapter.save_adapters({model.direction: own, "other": foreign}, tmp_path)
    names = [saved_adapter.DESCRIPTION, saved_adapter.WEIGHTS]
    found = saved_adapter.read_adapters(tmp_path)
    assert set(found) == {model.direction, "other"}

    def read(_: str) -> None:
        model.adapters.clear()
        model.adapters.update(saved_adapter.read_adapters(tmp_path))
        if model.adapters:
            why = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="adapter")
            assert why.scores.shape == (len(why.target), len(why.source))

    check(_damage_weights(tmp_path, names, saved_adapter.WEIGHTS, CASES), read)


def test_adapters_of_another_model(tmp_path: Path) -> None:
    model = zoo.fresh("marian")
    for shape in (AdapterShape((8,) * 3, (zoo.WIDTH,) * 3), AdapterShape((zoo.WIDTH,) * 2, (zoo.WIDTH,) * 3)):
        model.adapters[model.direction] = AlignmentAdapter(shape)
        with pytest.raises(sightline.InputError, match="adapter"):
            sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="adapter")


def test_calibrations(tmp_path: Path) -> None:
    model = zoo.fresh("marian")
    plain = copy.deepcopy(model.module)
    save_calibration(attach_calibration(model, CalibrationSettings(fusion="anneal")), tmp_path)

    def read(_: str) -> None:
        module = copy.deepcopy(plain)
        attach_saved_calibration(module, tmp_path)
        sightline.explain(sightline.load(module, model.tokenizer), "The cat.", "El gato.", method="attention")

    check(_damage_weights(tmp_path, [SETTINGS, WEIGHTS], WEIGHTS, CASES), read)
