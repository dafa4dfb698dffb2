"""Crews: workers that run shards, and the results brought into order."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from sightline.corpus.shards import Result, Shard, skip_row
from sightline.errors import InputError

HELD_PER_WORKER = 4
"""Shards that are worked on or wait for earlier ones to be written, for each worker: memory stays bounded."""
MOST_DEATHS = 2
"""Workers that may die over one shard before it is cut in two: a first death may have had another cause."""


class Died(NamedTuple):
    """A shard whose worker died."""

    shard: Shard


@runtime_checkable
class Crew(Protocol):
    """Workers, each with the job's models loaded; a worker that dies is replaced."""

    size: int

    @property
    def has_room(self) -> bool:
        """Return whether a worker is free, or none is ready yet and one will be."""

    def submit(self, shard: Shard) -> None:
        """Hand a shard to a worker."""

    def wait(self) -> list[Result | Died]:
        """Wait until shards are done, or lost with their worker; an error that a shard raised is raised."""

    def close(self) -> None:
        """Let the workers go."""


def run_in_order(crew: Crew, shards: Iterable[Shard], blank: str, *, skip: bool) -> Iterator[Result]:
    """Have shards run by a crew, and yield the results in order.

    A shard whose worker died is run again; a second time, in halves. A single row that workers die of is skipped, or an
    InputError.
    """
    remaining = iter(shards)
    again: deque[Shard] = deque()
    finished: dict[int, Result] = {}
    deaths: Counter[tuple[int, int]] = Counter()
    running = 0
    due: int | None = None  # the first row of the result that is to be yielded next
    at_end = False
    while True:
        while crew.has_room and (again or (not at_end and running + len(finished) < crew.size * HELD_PER_WORKER)):
            shard = again.popleft() if again else next(remaining, None)
            if shard is None:
                at_end = True
                break
            due = shard.first if due is None else due
            crew.submit(shard)
            running += 1
        if not running:
            return
        for outcome in crew.wait():
            running -= 1
            if isinstance(outcome, Result):
                finished[outcome.first] = outcome
                continue
            lost = outcome.shard
            key = (lost.first, len(lost.rows))
            deaths[key] += 1
            if deaths[key] < MOST_DEATHS:
                again.append(lost)
            elif len(lost.rows) > 1:
                again += lost.halves()
                # A half with a deadly row need not kill twice; a single row must, to be given up.
                deaths.update((half.first, len(half.rows)) for half in lost.halves() if len(half.rows) > 1)
            else:
                error = InputError(
                    f"Line {lost.first}: the process that worked on it died {MOST_DEATHS} times, perhaps for lack of "
                    "memory."
                )
                finished[lost.first] = skip_row(lost.first, error, blank, skip=skip)
        while due in finished:
            result = finished.pop(due)
            due += result.rows
            yield result
