"""A crew on a Ray cluster: actors that load the models once, wherever the cluster has room.

Ray places the actors, sends them their shards and tells when one has died. What is ours is the order of the output
(`crews.run_in_order`) and that a lost shard goes to whichever worker is free: an actor that Ray restarts keeps its own
tasks waiting until the cluster has room for it, and with them everything that comes later in the output.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from sightline.corpus.crews import Died
from sightline.corpus.jobs import Job
from sightline.corpus.shards import Result, Shard, run_shard
from sightline.errors import InputError, missing_package

try:
    import ray
    from ray.exceptions import RayActorError, RayTaskError
except ImportError as error:
    raise missing_package("--engine ray", error) from error


MOST_FAILURES = 3
"""Workers that fail to start, one after the other, before that is an error."""


class RayCrew:
    """Actors on a cluster; one that dies, alone or with its node, is replaced as soon as there is room."""

    def __init__(
        self,
        job: Job,
        settled: Mapping[str, Any],
        size: int,
        *,
        skip: bool,
        address: str | None,
        gpus: float,
    ) -> None:
        self.size = size
        self._ours = not ray.is_initialized()
        if self._ours:
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
            except (ConnectionError, ValueError) as error:
                raise InputError(f"There is no Ray cluster at {address}: {error}") from error
        self._actor: Any = ray.remote(num_cpus=1, num_gpus=gpus)(_Worker)
        self._arguments = (job, dict(settled), skip, gpus > 0)
        self._failures = 0
        self._loading: dict[Any, Any] = {}
        self._free: list[Any] = []
        self._running: dict[Any, tuple[Any, Shard]] = {}
        for _ in range(size):
            self._start()

    @property
    def has_room(self) -> bool:
        return len(self._running) < self.size and (bool(self._free) or not self._running)

    def submit(self, shard: Shard) -> None:
        while not self._free:
            self._note_loaded(ray.wait(list(self._loading), num_returns=1)[0])
        worker = self._free.pop()
        self._running[worker.run.remote(shard)] = worker, shard

    def wait(self) -> list[Result | Died]:
        ready, _ = ray.wait([*self._running, *self._loading], num_returns=1)
        self._note_loaded([one for one in ready if one in self._loading])
        outcomes: list[Result | Died] = []
        for one in ready:
            if one not in self._running:
                continue
            worker, shard = self._running.pop(one)
            try:
                outcomes.append(ray.get(one))
            except RayActorError:
                outcomes.append(Died(shard))
                self._start()
            except RayTaskError as error:
                raise _cause(error) from error
            else:
                self._free.append(worker)
        return outcomes

    def close(self) -> None:
        """Let the actors go, and the cluster with them if it is ours."""
        for worker in [*self._free, *self._loading.values(), *(worker for worker, _ in self._running.values())]:
            ray.kill(worker)
        if self._ours:
            ray.shutdown()

    def _start(self) -> None:
        worker = self._actor.remote(*self._arguments)
        self._loading[worker.ready.remote()] = worker

    def _note_loaded(self, ready: list[Any]) -> None:
        for one in ready:
            worker = self._loading.pop(one)
            try:
                ray.get(one)
            except RayActorError as error:
                self._failures += 1
                if self._failures == MOST_FAILURES:
                    reason = str(error).strip().splitlines()[-1]
                    raise InputError(f"A worker on the cluster could not load the model: {reason}") from error
                self._start()
            else:
                self._failures = 0
                self._free.append(worker)


class _Worker:
    """What each actor holds."""

    def __init__(self, job: Job, settled: Mapping[str, Any], skip: bool, on_card: bool) -> None:
        import torch

        if not on_card:
            torch.set_num_threads(1)  # it has one core
        self.work, self.settled, self.skip = job.open(), settled, skip

    def ready(self) -> bool:
        return True

    def run(self, shard: Shard) -> Result:
        return run_shard(self.work, self.settled, shard, skip=self.skip)


def _cause(error: Exception) -> Exception:
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error
