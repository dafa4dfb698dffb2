"""Saved aligners: one compressed file with both directions, checked on loading before compiled code relies on it."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sightline.alignment.forward_backward import JUMPS
from sightline.alignment.hmm import HmmAligner
from sightline.alignment.lexicon import Lexicon
from sightline.alignment.one_way import StatisticalAligner
from sightline.alignment.position_model import PositionAligner
from sightline.alignment.statistical import TwoWayAligner
from sightline.errors import InputError
from sightline.files import FilePath, writing
from sightline.json_files import check_fields, parse_json

FILE_FORMAT = 1
DIRECTIONS = ("forward", "backward")
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    KeyError,
    OSError,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,  # a flipped bit makes a member encrypted, or packed in an unknown way
)
"""What reading a damaged archive of arrays raises."""


def save_aligner(aligner: TwoWayAligner, path: FilePath) -> None:
    """Write both models to one file, which appears under its name only when it is complete."""
    arrays = _arrays_of(aligner)
    with writing(path, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def digest_aligner(aligner: TwoWayAligner) -> str:
    """Return a checksum of all that `save_aligner` would write."""
    digest = hashlib.sha256()
    for name, array in _arrays_of(aligner).items():
        digest.update(f"{name} {array.nbytes} ".encode() + array.tobytes())
    return digest.hexdigest()


def _arrays_of(aligner: TwoWayAligner) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    settings: dict[str, dict[str, Any]] = {}
    for name, model in zip(DIRECTIONS, (aligner.forward, aligner.backward), strict=True):
        assert isinstance(model, PositionAligner | HmmAligner)
        arrays |= {
            f"{name}.starts": model.lexicon.starts,
            f"{name}.targets": model.lexicon.targets,
            f"{name}.values": model.lexicon.values,
            f"{name}.null": model.null,
        }
        settings[name] = {"null_prior": model.null_prior, "log_likelihoods": model.log_likelihoods}
        if isinstance(model, HmmAligner):
            arrays[f"{name}.jumps"] = model.jumps
        else:
            settings[name]["tension"] = model.tension
    lexicon = aligner.forward.lexicon
    about = {
        "format": FILE_FORMAT,
        "source": lexicon.source_vocabulary,
        "target": lexicon.target_vocabulary,
        **settings,
    }
    arrays["about"] = np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), np.uint8)
    return arrays


def load_aligner(path: FilePath) -> TwoWayAligner:
    """Read what `save_aligner` wrote."""
    if not Path(path).is_file():
        raise InputError(f"There is no file {path}.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = check_fields(
            parse_json(arrays["about"].tobytes().decode()),
            {"format": int, "source": list, "target": list, "forward": dict, "backward": dict},
        )
        if about["format"] != FILE_FORMAT:
            raise ValueError(f"its format is {about['format']}, not {FILE_FORMAT}")
        source, target = _check_vocabulary(about["source"]), _check_vocabulary(about["target"])
        return TwoWayAligner(
            _model(source, target, _part(arrays, "forward"), about["forward"]),
            _model(target, source, _part(arrays, "backward"), about["backward"]),
        )
    except DAMAGED as error:
        raise InputError(f"{path} is not an aligner that Sightline saved ({error}).") from None


def _part(arrays: Mapping[str, np.ndarray], direction: str) -> dict[str, np.ndarray]:
    beginning = f"{direction}."
    return {name.removeprefix(beginning): array for name, array in arrays.items() if name.startswith(beginning)}


def _model(
    source: tuple[str, ...], target: tuple[str, ...], arrays: dict[str, np.ndarray], settings: dict[str, Any]
) -> StatisticalAligner:
    """Build a model of what a file has for one direction; a ValueError says what cannot be."""
    starts = _check_array(arrays["starts"], np.int64, len(source) + 1)
    targets = _check_array(arrays["targets"], np.int32, int(starts[-1]))
    values = _check_probabilities(arrays["values"], len(targets))
    null = _check_probabilities(arrays["null"], len(target))
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise ValueError("the rows of its table do not follow each other")
    row_begins = np.zeros(len(targets), bool)
    row_begins[starts[:-1][starts[:-1] < len(targets)]] = True
    if ((np.diff(targets) <= 0) & ~row_begins[1:]).any() or not _within(targets, 0, len(target) - 1):
        raise ValueError("a row of its table is not in order")
    check_fields(settings, {"log_likelihoods": list, "null_prior": float | None})
    null_prior = settings["null_prior"]
    if not 0 <= (null_prior or 0) <= 1:
        raise ValueError(f"its prior of NULL is {null_prior}")
    known = Lexicon(source, target, starts, targets, values), null, _check_numbers(settings["log_likelihoods"])
    if "jumps" in arrays:
        jumps = _check_array(arrays["jumps"], np.float64, JUMPS)
        if null_prior is None or not 0 < null_prior < 1 or not _within(jumps, np.finfo(float).tiny, 1.0):
            raise ValueError("its jumps or its prior of NULL are not above 0 and below 1")
        return HmmAligner(*known, jumps, float(null_prior))
    tension = check_fields(settings, {"tension": float})["tension"]
    if not 0 <= tension < math.inf:
        raise ValueError(f"its tension is {tension}")
    return PositionAligner(*known, float(tension), null_prior)


def _check_vocabulary(words: list[Any]) -> tuple[str, ...]:
    if not all(isinstance(word, str) for word in words) or len(set(words)) < len(words):
        raise ValueError("its vocabulary is not a list of distinct words")
    return tuple(words)


def _check_numbers(values: list[Any]) -> tuple[float, ...]:
    if not all(isinstance(value, float | int) for value in values):
        raise ValueError("its likelihoods are not numbers")
    return tuple(map(float, values))


def _check_array(array: np.ndarray, dtype: type, size: int) -> np.ndarray:
    if array.dtype != dtype or array.shape != (size,):
        raise ValueError(
            f"an array of shape {array.shape} and type {array.dtype} should have {size} of {dtype.__name__}"
        )
    return np.ascontiguousarray(array)


def _check_probabilities(array: np.ndarray, size: int) -> np.ndarray:
    if not _within(_check_array(array, np.float32, size), 0.0, 1.0 + 1e-5):
        raise ValueError("not all of its probabilities lie between 0 and 1")
    return array


def _within(array: np.ndarray, lowest: float | int, highest: float | int) -> bool:
    return not array.size or bool(array.min() >= lowest and array.max() <= highest)
