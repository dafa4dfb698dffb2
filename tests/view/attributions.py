"""Dictionaries to draw, as `Attribution.to_dict()` gives them."""

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from sightline.view.packing import Packed


def side(tokens: Sequence[str], special: Sequence[int] = ()) -> dict[str, list[Any]]:
    words = [token for position, token in enumerate(tokens) if position not in special]
    numbers = iter(range(len(words)))
    word_ids = [None if position in special else next(numbers) for position in range(len(tokens))]
    return {"tokens": list(tokens), "words": words, "word_ids": word_ids}


def build(
    source: Sequence[str],
    target: Sequence[str],
    prefix: Sequence[str] = (),
    axes: dict[str, int] | None = None,
    scores: Any = None,
    special_source: Sequence[int] = (),
    special_target: Sequence[int] = (),
    method: str = "norms",
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Build a dictionary; without `scores` they are random rows that sum to one."""
    sizes = tuple((axes or {}).values())
    if scores is None:
        random = np.random.default_rng(0)
        scores = random.exponential(size=(*sizes, len(target), len(source) + len(prefix)))
        scores = (scores / scores.sum(-1, keepdims=True)).tolist()
    return {
        "method": method,
        "settings": settings or {},
        "axes": list(axes or {}),
        "source": side(source, special_source),
        "target": side(target, special_target),
        "prefix": side(prefix),
        "scores": scores,
    }


def cat() -> dict[str, Any]:
    """A short translation with a special position on both sides."""
    return build(
        ["▁The", "▁cat", "▁sleep", "s", "</s>"],
        ["▁El", "▁gato", "▁duerme", "</s>"],
        scores=[
            [0.90, 0.05, 0.00, 0.00, 0.05],
            [0.20, 0.60, 0.10, 0.05, 0.05],
            [0.00, 0.10, 0.40, 0.30, 0.20],
            [0.02, 0.02, 0.02, 0.04, 0.90],
        ],
        special_source=[4],
        special_target=[3],
        settings={"layer": 5, "heads": "sum"},
    )


def unpack(packed: Packed, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Read scores and the largest magnitude of each row back, as a page's script does."""

    def read(text: str, dtype: str) -> np.ndarray:
        return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype)

    tops = read(packed.tops, "<f4").reshape(*shape[:-1], 1)
    values = read(packed.values, "<i2" if packed.limit == 32767 else "<i1").reshape(shape)
    return tops.astype(float) * values / packed.limit, tops
