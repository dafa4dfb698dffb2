"""A job run over a corpus: read, cut into shards, worked on, written in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from sightline.corpus.crews import Crew, run_in_order
from sightline.corpus.jobs import Job
from sightline.corpus.output import Output, open_output
from sightline.corpus.processes import ProcessCrew
from sightline.corpus.progress import Progress
from sightline.corpus.shards import (
    Result,
    Row,
    RowsDigest,
    Shard,
    Work,
    cut_shards,
    join_results,
    readable_rows,
    run_shard,
)
from sightline.errors import InputError, unknown_name
from sightline.files import Position
from sightline.version import __version__

ON_ERROR = ("stop", "skip")
ENGINES = ("local", "ray")
SHARDS_WORTH_WORKERS = 4
"""A corpus of fewer shards is done before other processes have loaded the models."""
SHARE_OF_MEMORY = 0.5
"""How much of the machine's memory the models of all workers may take, where their number is not given."""


class Running(NamedTuple):
    """How a job is run: see `run_job`."""

    resume: bool = False
    on_error: str = "stop"
    workers: int | None = None
    engine: str = "local"
    address: str | None = None
    gpus: float = 0.0

    def check(self) -> None:
        """Refuse what does not go together."""
        if self.on_error not in ON_ERROR:
            raise unknown_name("--on-error", self.on_error, ON_ERROR)
        if self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)
        if self.workers is not None and self.workers < 1:
            raise InputError(f"{self.workers} workers cannot work: give at least 1.")
        if self.engine == "local" and (self.address is not None or self.gpus):
            raise InputError("--address and --gpus are of a cluster: give --engine ray.")


ALONE = Running()


def run_job(
    job: Job,
    rows: Iterable[Row | InputError],
    output: Path,
    running: Running = ALONE,
    *,
    position: Position | None = None,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Run a job over rows and write what it gives, in order; `-` is standard output. Return what held for all rows.

    running: how to run it.
        resume: let the output grow in `OUT.partial`, and go on there if an earlier run did not come to its end.
        on_error: `stop` at a row that cannot be processed, or `skip` it: it gives an empty line, and its number and
            the reason are written to `OUT.errors`.
        workers: processes that work at the same time; by default one for each core, where the corpus is large enough.
        engine: `local`, or `ray` for the cluster at `address`, by default one on this machine alone. Each worker takes
            one core there, and the share of a graphics card that `gpus` says.
    position: how far the input was read, to estimate the time left.
    progress: show how far the run is; by default on a terminal.
    """
    running.check()
    skip = running.on_error == "skip"
    work = job.open()
    with (
        open_output(output, _describe(job, work), resume=running.resume) as written,
        Progress(job.label, progress) as shown,
    ):
        digest = RowsDigest()
        shards = cut_shards(_after(rows, written, digest), job.shard_rows, written.rows + 1)
        beginning = list(islice(shards, SHARDS_WORTH_WORKERS if running.workers is None else 1))
        if written.settled is None:
            first = beginning[0].rows if beginning else ()
            written.begin(_settle(work, list(readable_rows(first, skip=skip)), skip=skip))
        if running.workers is None:
            enough = len(beginning) == SHARDS_WORTH_WORKERS
            running = running._replace(workers=_useful_workers(work) if enough else 1)
        shown.advance(written.rows, None if position is None else position.share)
        held: deque[_Held] = deque()
        results = _run(job, work, written.settled or {}, _hold(chain(beginning, shards), held, position), running)
        del work  # where there are workers, they have their own
        with results as in_order:
            for one, result in _join_parts(in_order, held):
                digest.add(one.shard.rows)
                written.add(result, digest.hexdigest())
                shown.advance(result.rows, one.share)
        return written.settled or {}


def _describe(job: Job, work: Work) -> dict[str, Any]:
    from sightline.models.fingerprints import fingerprint

    return job.describe() | {"version": __version__, "weights": [fingerprint(model) for model in work.models]}


def _after(rows: Iterable[Row | InputError], written: Output, digest: RowsDigest) -> Iterator[Row | InputError]:
    """Pass over the rows whose results are there, and check that they are the same."""
    remaining = iter(rows)
    digest.add(islice(remaining, written.rows))
    if written.rows and digest.hexdigest() != written.input:
        raise InputError(
            f"The first {written.rows:,} lines of the input are not those that the unfinished output was made from: "
            "give the same input, or another output."
        )
    return remaining


def _settle(work: Work, rows: Sequence[Row], *, skip: bool) -> dict[str, Any]:
    """Settle what holds for all rows; where a row is skipped that cannot be processed, on a half without it."""
    try:
        return work.settle(rows)
    except Exception:
        if not skip or len(rows) < 2:
            raise
    middle = len(rows) // 2
    try:
        return _settle(work, rows[:middle], skip=skip)
    except Exception:
        return _settle(work, rows[middle:], skip=skip)


def _useful_workers(work: Work) -> int:
    """Return how many processes this machine has cores and memory for; a graphics card has one."""
    import torch

    modules = {id(model.module): model.module for model in work.models}
    if torch.cuda.is_available():
        return 1
    size = sum(one.numel() * one.element_size() for module in modules.values() for one in module.parameters())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(_cores(), int(SHARE_OF_MEMORY * memory / max(size, 1))))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Held(NamedTuple):
    """A shard that is worked on, and which share of the input had been read after it."""

    shard: Shard
    share: float | None


def _hold(shards: Iterable[Shard], held: deque[_Held], position: Position | None) -> Iterator[Shard]:
    for shard in shards:
        held.append(_Held(shard, None if position is None else position.share))
        yield shard


@contextmanager
def _run(
    job: Job, work: Work, settled: Mapping[str, Any], shards: Iterable[Shard], running: Running
) -> Iterator[Iterator[Result]]:
    """Yield the results of shards, in order; a shard may give several, one for each part."""
    skip = running.on_error == "skip"
    workers = running.workers or 1
    if running.engine == "local" and workers == 1:
        yield (run_shard(work, settled, shard, skip=skip) for shard in shards)
        return
    del work
    crew: Crew
    if running.engine == "local":
        crew = ProcessCrew(job, settled, workers, skip=skip, threads=max(1, _cores() // workers))
    else:
        from sightline.corpus.cluster import RayCrew

        crew = RayCrew(job, settled, workers, skip=skip, address=running.address, gpus=running.gpus)
    try:
        yield run_in_order(crew, shards, job.blank, skip=skip)
    finally:
        crew.close()


def _join_parts(results: Iterable[Result], held: deque[_Held]) -> Iterator[tuple[_Held, Result]]:
    """Join the parts that a shard was cut into, so that only whole shards are written."""
    parts: list[Result] = []
    for result in results:
        parts.append(result)
        if sum(part.rows for part in parts) == len(held[0].shard.rows):
            yield held.popleft(), join_results(parts)
            parts = []
