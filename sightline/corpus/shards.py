"""Shards: consecutive lines of a corpus, and what becomes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from sightline.errors import InputError, one_line
from sightline.files import FilePath, Position, try_lines

if TYPE_CHECKING:
    from sightline.models.loaded import LoadedModel

Row = tuple[str, ...]
"""What a line has: its columns, or the lines of several files that belong together."""


class Shard(NamedTuple):
    """Consecutive rows, an error in place of those that could not be read, and the number of the first, from 1."""

    first: int
    rows: Sequence[Row | InputError]

    def halves(self) -> tuple[Shard, Shard]:
        """Cut the shard in two."""
        middle = len(self.rows) // 2
        return Shard(self.first, self.rows[:middle]), Shard(self.first + middle, self.rows[middle:])


class Skipped(NamedTuple):
    """A line that could not be processed, and why."""

    number: int
    reason: str


class Result(NamedTuple):
    """What a shard gave: the text of all its rows, and the rows that were skipped."""

    first: int
    rows: int
    text: str
    skipped: tuple[Skipped, ...] = ()


@runtime_checkable
class Work(Protocol):
    """A job with its models loaded."""

    @property
    def models(self) -> Sequence[LoadedModel]:
        """Return the models that the output depends on."""

    @property
    def blank(self) -> str:
        """Return what is written for a row that is skipped, so that lines of input and output stay side by side."""

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Decide on the first rows what holds for all, as plain data."""

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        """Return for each row what is written, line ends included."""


def try_columns(*paths: FilePath | None, position: Position | None = None) -> Iterator[Row | InputError]:
    """Yield the lines of files that belong together, and an error for those that cannot be read; None is no file."""
    files = [path for path in paths if path is not None]
    read = [try_lines(path, None if i else position) for i, path in enumerate(files)]
    for number, lines in enumerate(zip_longest(*read)):
        ended = [path for path, line in zip(files, lines, strict=True) if line is None]
        if ended:
            longer = next(path for path in files if path not in ended)
            raise InputError(f"{ended[0]} ends after line {number}, but {longer} goes on: lines must correspond.")
        yield next((line for line in lines if isinstance(line, InputError)), lines)  # type: ignore[misc]


def readable_rows(rows: Iterable[Row | InputError], *, skip: bool) -> Iterator[Row]:
    """Leave out the rows that could not be read, or raise the error of the first."""
    for row in rows:
        if not isinstance(row, InputError):
            yield row
        elif not skip:
            raise row


def cut_shards(rows: Iterable[Row | InputError], size: int, first: int = 1) -> Iterator[Shard]:
    """Cut rows into shards."""
    remaining = iter(rows)
    while some := list(islice(remaining, size)):
        yield Shard(first, some)
        first += len(some)


def run_shard(work: Work, settled: Mapping[str, Any], shard: Shard, *, skip: bool) -> Result:
    """Work on a shard; where that fails, on its halves, until the rows are found that cannot be processed.

    They are skipped, or raise their error. What takes too much memory may succeed in halves.
    """
    try:
        return _run_whole(work, settled, shard, skip)
    except Exception as error:  # whatever it is: one line of 200 million may find the gap in any library
        if isinstance(error, InputError) and not skip:
            raise
        if len(shard.rows) == 1:
            return skip_row(shard.first, error, work.blank, skip=skip)
        return join_results([run_shard(work, settled, half, skip=skip) for half in shard.halves()])


def join_results(parts: Sequence[Result]) -> Result:
    """Join the results of consecutive rows."""
    skipped = tuple(one for part in parts for one in part.skipped)
    return Result(parts[0].first, sum(part.rows for part in parts), "".join(part.text for part in parts), skipped)


def skip_row(number: int, error: Exception, blank: str, *, skip: bool) -> Result:
    """Return the result of a row that cannot be processed, or raise its error."""
    lacks_memory = isinstance(error, MemoryError) or is_lack_of_memory(error)
    if lacks_memory:
        error = InputError(f"Line {number} takes more memory than there is: shorten it.")
    if not skip:
        raise error
    reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return Result(number, 1, blank, (Skipped(number, one_line(reason)),))


def is_lack_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory was lacking, as torch says it on processors and on graphics cards."""
    return type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)


def _run_whole(work: Work, settled: Mapping[str, Any], shard: Shard, skip: bool) -> Result:
    texts = [work.blank] * len(shard.rows)
    skipped: list[Skipped] = []
    numbers, rows = [], []
    for number, row in enumerate(shard.rows, start=shard.first):
        if isinstance(row, InputError):
            skipped += skip_row(number, row, work.blank, skip=skip).skipped
        else:
            numbers.append(number)
            rows.append(row)
    for number, text in zip(numbers, work.run(settled, numbers, rows), strict=True):
        texts[number - shard.first] = text
    return Result(shard.first, len(shard.rows), "".join(texts), tuple(skipped))


class RowsDigest:
    """A checksum of the rows that were read, to recognise them when a run is resumed."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, rows: Iterable[Row | InputError]) -> None:
        """Add rows, in order."""
        for row in rows:
            columns = (str(row),) if isinstance(row, InputError) else row
            self._hash.update(b"error" if isinstance(row, InputError) else b"row" + len(row).to_bytes(8, "big"))
            for column in columns:
                data = column.encode("utf-8", "surrogatepass")
                self._hash.update(len(data).to_bytes(8, "big") + data)

    def hexdigest(self) -> str:
        """Return the checksum of what was added so far."""
        return self._hash.hexdigest()
