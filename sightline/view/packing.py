"""Scores made small enough to travel inside a page.

A row is stored as its largest magnitude (`tops`, float32) and whole numbers from -limit to limit (`values`):

    score = top * value / limit,    |error| <= top / (2 limit),    limit = 32767 or 127

both deflated and written in base64.
"""

import base64
import zlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sightline.view.picture import divide

WIDE_CELLS = 4_000_000  # up to here a score has 16 bits, beyond it 8


@dataclass(frozen=True)
class Packed:
    """Scores as text for JSON, and the largest whole number that a score is stored as."""

    limit: int
    tops: str
    values: str


def pack(scores: Float[np.ndarray, "*axes target column"]) -> Packed:
    """Store scores in whole numbers relative to the largest magnitude of their row."""
    whole = np.dtype("<i2") if scores.size <= WIDE_CELLS else np.dtype("<i1")
    limit = int(np.iinfo(whole).max)
    tops = np.abs(scores).max(axis=-1, keepdims=True, initial=0)
    values = np.rint(divide(scores, tops) * limit).astype(whole)
    return Packed(limit, _write(tops.astype("<f4")), _write(values))


def _write(array: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(array.tobytes(), 6)).decode("ascii")
