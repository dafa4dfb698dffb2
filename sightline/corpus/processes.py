"""A crew of processes on this machine, each with its own copy of the models."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from sightline.corpus.crews import Died
from sightline.corpus.jobs import Job
from sightline.corpus.shards import Result, Shard, run_shard

SECONDS_TO_END = 5.0


class ProcessCrew:
    """Processes that were started afresh: a fork would copy locks and threads that nobody serves."""

    def __init__(self, job: Job, settled: Mapping[str, Any], size: int, *, skip: bool, threads: int) -> None:
        self.size = size
        self._arguments = (job, dict(settled), skip, threads)
        self._workers = [_start(self._arguments) for _ in range(size)]
        self._shards: dict[int, Shard] = {}

    @property
    def has_room(self) -> bool:
        return len(self._shards) < self.size

    def submit(self, shard: Shard) -> None:
        free = next(i for i in range(self.size) if i not in self._shards)
        self._shards[free] = shard
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died, which `wait` will find
            self._workers[free].connection.send(shard)

    def wait(self) -> list[Result | Died]:
        busy = {self._workers[i].connection: i for i in self._shards}
        outcomes: list[Result | Died] = []
        for ready in wait(busy):
            i = busy[ready]  # type: ignore[index]
            try:
                outcome = self._workers[i].connection.recv()
            except (EOFError, ConnectionResetError):
                outcome = Died(self._shards[i])
                self._workers[i].process.join()
                self._workers[i] = _start(self._arguments)
            if isinstance(outcome, Exception):
                raise outcome
            del self._shards[i]
            outcomes.append(outcome)
        return outcomes

    def close(self) -> None:
        """Stop the workers: those that wait at once, the others when they are between two operations."""
        for i, worker in enumerate(self._workers):
            worker.connection.close()
            if i in self._shards:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(SECONDS_TO_END)
            worker.process.kill()
            worker.process.join()


class _Worker(NamedTuple):
    process: BaseProcess
    connection: Connection


def _start(arguments: tuple[Any, ...]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()  # so that the end of the process is the end of the pipe
    return _Worker(process, ours)


def _work(connection: Connection, job: Job, settled: Mapping[str, Any], skip: bool, threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the first one stops the others
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # in order, so that nothing is left behind
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import torch

        torch.set_num_threads(threads)
        work = job.open()
    except Exception as error:
        _send(connection, error)
        return
    while True:
        try:
            shard = connection.recv()
        except (EOFError, ConnectionResetError):  # the first process has ended
            return
        try:
            outcome: Result | Exception = run_shard(work, settled, shard, skip=skip)
        except Exception as error:
            outcome = error
        _send(connection, outcome)


def _send(connection: Connection, outcome: Result | Exception) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # nobody waits any more
        connection.send(outcome)
