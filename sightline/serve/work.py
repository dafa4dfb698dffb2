"""The workers: one thread for each model, a queue with a bound, requests that wait together run as one batch.

A request that nobody waits for any more (its client left, or its time is over) is dropped from the queue; where it is
already running, the model stops at its next layer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import sightline
from sightline.errors import InputError, SightlineError
from sightline.methods import METHODS
from sightline.models.loaded import LoadedModel
from sightline.serve.limits import Limits, TooMany, Unavailable

log = logging.getLogger("sightline.serve")
WARM_UP = "The cat sleeps."
_loading = threading.Lock()  # transformers loads one model at a time, or loses weights


class Abandoned(Exception):  # noqa: N818  it is no error
    """Raised inside a model that works for nobody."""


class Job:
    """One thing to do with a model, and where its result goes.

    Jobs with the same `key` that wait at the same time are run by one call of `run`, on all their items.
    """

    def __init__(
        self, run: Callable[[LoadedModel, list[Any]], Sequence[Any]], item: Any, key: Hashable | None = None
    ) -> None:
        self.run = run
        self.item = item
        self.key = key
        self.abandoned = threading.Event()
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = self._loop.create_future()

    def abandon(self) -> None:
        """Let the worker drop this job: nobody waits for it."""
        self.abandoned.set()

    def finish(self, value: Any) -> None:
        self._tell(self.result.set_result, value)

    def fail(self, error: BaseException) -> None:
        self._tell(self.result.set_exception, error)

    def _tell(self, how: Callable[[Any], None], value: Any) -> None:
        def tell() -> None:
            if not self.result.done():
                how(value)

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(tell)


class Worker:
    """A model and the thread that runs it."""

    def __init__(self, name: str, model: Any, limits: Limits) -> None:
        self.name = name
        self.limits = limits
        self.model: LoadedModel | None = None
        self.error: SightlineError | None = None
        self.methods: list[str] = []  # that this model has, as far as they have been tried
        self._untried = deque(METHODS)
        self._tried = 0
        self._given = model
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._running: tuple[Job, ...] = ()
        self._hooks: list[Any] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name=f"sightline-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Refuse what waits, let what runs come to its next layer, and end."""
        with self._changed:
            self._stopping = True
            waiting, self._jobs = list(self._jobs), deque()
            self._changed.notify_all()
        for job in waiting:
            job.fail(Unavailable("The server is stopping: try again later."))
        for job in self._running:
            job.abandon()
            job.fail(Unavailable("The server is stopping: try again later."))
        self._thread.join(timeout=10)
        for hook in self._hooks:
            hook.remove()

    @property
    def is_ready(self) -> bool:
        return self.model is not None

    @property
    def knows_its_methods(self) -> bool:
        """Return whether every method has been tried, so that the thread rests until something is asked of it."""
        return self._tried == len(METHODS)

    @property
    def waiting(self) -> int:
        return len(self._jobs)

    def submit(self, job: Job) -> Job:
        """Put a job into the queue; a full queue, and a model that is not there yet, refuse it."""
        if self.error is not None:
            raise Unavailable(f"The model {self.name} could not be loaded: {self.error}")
        if self.model is None or self._stopping:
            what = "is stopping" if self._stopping else f"is still loading {self.name}"
            raise Unavailable(f"The server {what}: try again later.")
        with self._changed:
            if len(self._jobs) >= self.limits.waiting:
                raise TooMany(f"{len(self._jobs)} requests are waiting already: try again in a moment.")
            self._jobs.append(job)
            self._changed.notify_all()
        return job

    def _work(self) -> None:
        try:
            self.model = self._load()
        except SightlineError as error:
            self.error = error
            log.error("%s", error)
            return
        while True:
            with self._changed:
                while not self._jobs and not self._stopping and not self._untried:
                    self._changed.wait()
                if self._stopping:
                    return
                batch = self._take() if self._jobs else []
                name = self._untried.popleft() if self._untried and not batch else None
            if name is not None:
                self._try(self.model, name)
                self._tried += 1
            elif batch:
                self._running = tuple(batch)
                self._run(batch)
                self._running = ()

    def _load(self) -> LoadedModel:
        """Load the model, and use it once, so that the first reader does not wait for what is made on first use."""
        with _loading:
            model = sightline.load(self._given)
        self._hooks = [module.register_forward_pre_hook(self._check) for module in model.module.modules()]
        if model.translates:
            list(sightline.stream_translation(model, WARM_UP))
            sightline.align(model, WARM_UP, WARM_UP)
        elif model.has_output:
            sightline.explain(model, WARM_UP)
        return model

    def _try(self, model: LoadedModel, name: str) -> None:
        """Find out whether the model has a method, while there is nothing else to do."""
        try:
            sightline.explain(model, WARM_UP, method=name)
        except SightlineError:
            return
        self.methods.append(name)

    def _check(self, *_: object) -> None:
        """Stop the model at its next layer if none of those it works for waits any more."""
        if threading.current_thread() is not self._thread or not self._running:
            return
        if all(job.abandoned.is_set() for job in self._running):
            raise Abandoned

    def _take(self) -> list[Job]:
        """Take the first job, and with it those that can be run in the same call."""
        first = self._jobs.popleft()
        if first.abandoned.is_set():
            return []
        batch, rest = [first], deque[Job]()
        while self._jobs:
            job = self._jobs.popleft()
            if job.abandoned.is_set():
                continue
            fits = first.key is not None and job.key == first.key and len(batch) < self.limits.batch
            (batch if fits else rest).append(job)
        self._jobs = rest
        return batch

    def _run(self, batch: list[Job]) -> None:
        assert self.model is not None
        try:
            for job, result in zip(batch, batch[0].run(self.model, [job.item for job in batch]), strict=True):
                job.finish(result)
        except Abandoned:
            for job in batch:
                job.fail(Abandoned())
        except (SightlineError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if len(batch) > 1:  # one of them is at fault, and the others should not suffer from it
                for job in batch:
                    self._running = (job,)
                    self._run([job])
                return
            if not isinstance(error, SightlineError):
                log.exception("A request failed")
            batch[0].fail(error)
        except MemoryError:
            for job in batch:
                job.fail(InputError("This is too large for the memory of this server: shorten the texts."))


class Workers:
    """The models of a server by their names; the first is the one that is taken where none is named."""

    def __init__(self, models: dict[str, Any], limits: Limits) -> None:
        self.by_name = {name: Worker(name, model, limits) for name, model in models.items()}

    def start(self) -> None:
        for worker in self.by_name.values():
            worker.start()

    def stop(self) -> None:
        for worker in self.by_name.values():
            worker.stop()

    @property
    def are_ready(self) -> bool:
        return all(worker.is_ready for worker in self.by_name.values())
