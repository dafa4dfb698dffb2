"""A file of labelled arrays: Parquet, which any program can read, sealed by a checksum over every byte of it.

One row an array: its labels as JSON, its shape, its values. The checksum (SHA-256 of the file with zeros in its own
place) is in the metadata at the file's end, under `sightline`; it is verified before anything else is read.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from sightline.errors import InputError
from sightline.files import FilePath, writing

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("labels", "shape", "scores")
ROWS_AT_ONCE = 256
SEAL = re.compile(rb"sha256:([0-9a-f]{64})")
UNSEALED = b"sha256:" + b"0" * 64
TRAILER = 8  # bytes at the end of a Parquet file: how long its metadata are, and PAR1
CHUNK = 1 << 20

Shape = tuple[int, ...]


def write_arrays(rows: Iterable[tuple[dict[str, Any], np.ndarray]], path: FilePath) -> int:
    """Write labelled arrays of float32 as they come, whole or not at all, and return how many there were."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = dict(zip(COLUMNS, (pa.string(), pa.list_(pa.int32()), pa.list_(pa.float32())), strict=True))
    count, remaining = 0, iter(rows)
    with writing(path, "wb") as file:
        sink = _Sink(file)
        # No statistics: they would put labels into the metadata.
        options = {"compression": "zstd", "use_dictionary": ["labels"], "write_statistics": False}
        with pq.ParquetWriter(sink, pa.schema(types), **options) as writer:
            while chunk := list(itertools.islice(remaining, ROWS_AT_ONCE)):
                columns = {
                    "labels": [json.dumps(labels, ensure_ascii=False) for labels, _ in chunk],
                    "shape": [values.shape for _, values in chunk],
                    "scores": [values.reshape(-1) for _, values in chunk],
                }
                writer.write_table(pa.table([pa.array(columns[name], types[name]) for name in types], list(types)))
                count += len(chunk)
            writer.add_key_value_metadata({"sightline": UNSEALED.decode()})
            sink.hold()
        sink.seal()
    return count


class _Sink:
    """Takes what a Parquet writer writes, and holds the metadata back until their checksum is known."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.held: bytearray | None = None
        self.position = 0

    def write(self, data: Any) -> int:
        data = bytes(data)
        self.position += len(data)
        self.digest.update(data)
        if self.held is None:
            self.file.write(data)
        else:
            self.held += data
        return len(data)

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        self.file.flush()

    def hold(self) -> None:
        self.held = bytearray()

    def seal(self) -> None:
        assert self.held is not None
        self.file.write(self.held.replace(UNSEALED, b"sha256:" + self.digest.hexdigest().encode()))


def read_arrays(
    path: FilePath, check: Callable[[dict[str, Any], Shape], None]
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Read labelled arrays one by one; memory does not grow with the file.

    `check` raises a ValueError where labels and shape do not fit; it is called before the values are read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as file:
            _verify(file)
            with pq.ParquetFile(file) as parquet:
                for number in range(parquet.num_row_groups):
                    yield from _read_group(parquet, number, check)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (OSError, pa.ArrowException, ValueError, KeyError, RecursionError) as error:
        raise InputError(f"{path} is not a file of attributions that Sightline wrote ({error}).") from None


def _verify(file: IO[bytes]) -> None:
    """Raise a ValueError unless a file has the checksum that it names."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - TRAILER, 0))
    trailer = file.read()
    start = size - TRAILER - int.from_bytes(trailer[:4], "little")
    if trailer[4:] != b"PAR1" or start < 4:
        raise ValueError("it is not a complete Parquet file")
    file.seek(start)
    metadata = file.read()
    seals = SEAL.findall(metadata)
    if len(seals) != 1:
        raise ValueError("it has no checksum")
    digest = hashlib.sha256()
    file.seek(0)
    for position in range(0, start, CHUNK):
        digest.update(file.read(min(CHUNK, start - position)))
    digest.update(SEAL.sub(UNSEALED, metadata))
    if digest.hexdigest().encode() != seals[0]:
        raise ValueError("its checksum is another: it was damaged or changed")
    file.seek(0)


def _read_group(
    parquet: Any, number: int, check: Callable[[dict[str, Any], Shape], None]
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    described = parquet.read_row_group(number, columns=list(COLUMNS[:2]))
    rows = list(zip(map(json.loads, described["labels"].to_pylist()), described["shape"].to_pylist(), strict=True))
    for labels, shape in rows:
        check(labels, tuple(shape))
    counts = [math.prod(shape) for _, shape in rows]
    if _count_values(parquet.metadata.row_group(number)) != sum(max(count, 1) for count in counts):
        raise ValueError("its shapes are not those of its scores")
    scores: pa.ChunkedArray = parquet.read_row_group(number, columns=[COLUMNS[2]])["scores"]
    for (labels, shape), count, values in zip(rows, counts, scores, strict=True):
        if len(values) != count:
            raise ValueError("its shapes are not those of its scores")
        yield labels, values.values.to_numpy(zero_copy_only=False).reshape(shape)


def _count_values(group: Any) -> int:
    """Return how many scores a group of rows says it has; Parquet counts an empty list as one."""
    columns = [group.column(number) for number in range(group.num_columns)]
    return next(column.num_values for column in columns if column.path_in_schema.startswith("scores."))
