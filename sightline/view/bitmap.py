"""A matrix as a PNG of one pixel a score: what a page holds where vector cells would be too many."""

import struct
import zlib

import numpy as np
from jaxtyping import Float

from sightline.view.colours import NEGATIVE, POSITIVE

LEVELS = 127  # on each side of zero, so that signs and zero fit into a byte


def write_png(strengths: Float[np.ndarray, "target column"]) -> bytes:
    """Write strengths from -1 to 1 as a PNG whose opacity is the magnitude and whose colour is the sign."""
    rows, columns = strengths.shape
    pixels = (np.rint(strengths * LEVELS) + LEVELS).astype(np.uint8)
    palette = bytes.fromhex(NEGATIVE[1:]) * LEVELS + bytes.fromhex(POSITIVE[1:]) * (LEVELS + 1)
    opacity = bytes(round(abs(level - LEVELS) * 255 / LEVELS) for level in range(2 * LEVELS + 1))
    lines = np.pad(pixels, ((0, 0), (1, 0)))  # a zero before every line: its filter is "none"
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, content)
        for kind, content in (
            (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),  # 8 bits, a palette
            (b"PLTE", palette),
            (b"tRNS", opacity),
            (b"IDAT", zlib.compress(lines.tobytes(), 9)),
            (b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
