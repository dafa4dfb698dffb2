"""Pharaoh lines of many alignments at once, straight from their columns."""

from __future__ import annotations

from itertools import pairwise
from typing import no_type_check

import numpy as np

from sightline.alignment.columns import Alignments
from sightline.compilation import njit

MOST_DIGITS = 10  # of a 32-bit number
SPACE, DASH, ZERO, LINE_FEED = b" -0\n"


def render_pharaoh(alignments: Alignments, base: int = 0, confidences: bool = False) -> str:
    """Return a line `i-j i-j ...` for each pair, line ends included; with confidences, `i-j:0.83`."""
    if confidences:
        links = (column.tolist() for column in (alignments.source + base, alignments.target + base))
        written = list(map("{}-{}:{:.4g}".format, *links, alignments.confidence.tolist()))
        return "".join(" ".join(written[begin:end]) + "\n" for begin, end in pairwise(alignments.starts.tolist()))
    room = np.empty(len(alignments.source) * (2 * MOST_DIGITS + 2) + len(alignments), np.uint8)
    size = _write_links(alignments.starts, alignments.source, alignments.target, base, room)
    return room[:size].tobytes().decode("ascii")


@njit(cache=True)
@no_type_check
def _write_links(starts, source, target, base, room):
    size = 0
    for pair in range(len(starts) - 1):
        for link in range(starts[pair], starts[pair + 1]):
            if link > starts[pair]:
                room[size] = SPACE
                size += 1
            size = _write_number(source[link] + base, room, size)
            room[size] = DASH
            size = _write_number(target[link] + base, room, size + 1)
        room[size] = LINE_FEED
        size += 1
    return size


@njit(cache=True)
@no_type_check
def _write_number(number, room, size):
    """Write the digits of a number and return where they end."""
    digits, rest = 1, number // 10
    while rest > 0:
        digits, rest = digits + 1, rest // 10
    for place in range(size + digits - 1, size - 1, -1):
        room[place] = ZERO + number % 10
        number //= 10
    return size + digits
