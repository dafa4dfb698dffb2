"""Workers: what waits together runs together, what nobody waits for stops, and the queue has a bound."""

import asyncio
import threading
import time
from contextlib import contextmanager

import pytest
import zoo

from sightline.errors import InputError
from sightline.serve.limits import Limits, TooMany, Unavailable
from sightline.serve.work import Abandoned, Job, Worker


@contextmanager
def working(limits=None, model=None):
    worker = Worker("tiny", model or zoo.fresh("marian"), limits or Limits())
    worker.start()
    while not worker.is_ready:
        time.sleep(0.01)
    try:
        yield worker
    finally:
        worker.stop()


class Gate:
    """Something to do that takes until it is opened."""

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, _model, items):
        self.entered.set()
        assert self.opened.wait(10)
        return items


def run(coroutine):
    """Run in a thread of its own: a browser's tests may hold this one's event loop."""
    results = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(coroutine)))
    thread.start()
    thread.join(60)
    assert results, "it did not finish"
    return results[0]


def test_jobs_of_one_kind_that_wait_together_are_one_batch():
    with working(Limits(batch=3)) as worker:
        batches = []

        def double(_model, items):
            batches.append(list(items))
            return [2 * item for item in items]

        async def ask():
            gate = Gate()
            first = worker.submit(Job(gate, None))
            await asyncio.to_thread(gate.entered.wait)
            jobs = [
                worker.submit(Job(double, item, key))
                for item, key in [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "a")]
            ]
            gate.opened.set()
            await first.result
            return [await job.result for job in jobs]

        assert run(ask()) == [2, 4, 6, 8, 10]
        assert batches == [[1, 2, 4], [3], [5]]


def test_one_bad_request_does_not_spoil_the_others():
    with working() as worker:

        def refuse_two(_model, items):
            if 2 in items:
                raise InputError("Two is too many.")
            return items

        async def ask():
            gate = Gate()
            worker.submit(Job(gate, None))
            await asyncio.to_thread(gate.entered.wait)
            jobs = [worker.submit(Job(refuse_two, item, "a")) for item in (1, 2, 3)]
            gate.opened.set()
            return await asyncio.gather(*(job.result for job in jobs), return_exceptions=True)

        one, two, three = run(ask())
        assert (one, three) == (1, 3)
        assert str(two) == "Two is too many."


def test_a_full_queue_refuses_and_frees_itself():
    with working(Limits(waiting=2)) as worker:

        async def ask():
            gate = Gate()
            first = worker.submit(Job(gate, None))
            await asyncio.to_thread(gate.entered.wait)
            waiting = [worker.submit(Job(lambda _model, items: items, n)) for n in range(2)]
            with pytest.raises(TooMany, match="2 requests are waiting"):
                worker.submit(Job(lambda _model, items: items, 3))
            gate.opened.set()
            await first.result
            assert [await job.result for job in waiting] == [0, 1]
            return await worker.submit(Job(lambda _model, items: items, "later")).result

        assert run(ask()) == "later"


def test_what_is_abandoned_while_it_waits_is_never_run():
    with working() as worker:
        ran = []

        async def ask():
            gate = Gate()
            worker.submit(Job(gate, None))
            await asyncio.to_thread(gate.entered.wait)
            left = worker.submit(Job(lambda _model, items: ran.append("left") or items, None))
            stayed = worker.submit(Job(lambda _model, items: ran.append("stayed") or items, None))
            left.abandon()
            gate.opened.set()
            await stayed.result

        run(ask())
        assert ran == ["stayed"]


def test_what_is_abandoned_while_it_runs_stops_at_the_next_layer_and_the_model_stays_whole():
    with working() as worker:
        passes = []

        def run_for_ever(model, items):
            batch = model.batch([model.encode(zoo.SOURCES[0], zoo.TARGETS[0])])
            while True:
                passes.append(model.log_probs(batch))

        async def ask():
            job = worker.submit(Job(run_for_ever, None))
            while not passes:
                await asyncio.sleep(0.01)
            job.abandon()
            with pytest.raises(Abandoned):
                await asyncio.wait_for(job.result, 10)
            count = len(passes)
            await worker.submit(Job(lambda _model, items: items, None)).result  # the worker is free again
            return count

        assert run(ask()) == len(passes)
        assert worker.model is not None


def test_stopping_ends_what_runs_and_refuses_what_waits():
    with working() as worker:
        started = threading.Event()

        def run_for_ever(model, items):
            batch = model.batch([model.encode(zoo.SOURCES[0], zoo.TARGETS[0])])
            while True:
                started.set()
                model.log_probs(batch)

        async def ask():
            running = worker.submit(Job(run_for_ever, None))
            await asyncio.to_thread(started.wait)
            waiting = worker.submit(Job(lambda _model, items: items, None))
            before = time.monotonic()
            await asyncio.to_thread(worker.stop)
            assert time.monotonic() - before < 8
            answers = await asyncio.gather(running.result, waiting.result, return_exceptions=True)
            assert all(isinstance(answer, Unavailable) for answer in answers)
            with pytest.raises(Unavailable, match="stopping"):
                worker.submit(Job(lambda _model, items: items, None))
            return True

        assert run(ask())


def test_a_model_that_cannot_be_loaded_is_told():
    worker = Worker("absent", "/no/such/model", Limits())
    worker.start()
    worker._thread.join(30)

    async def ask():
        with pytest.raises(Unavailable, match="absent could not be loaded"):
            worker.submit(Job(lambda _model, items: items, None))
        return True

    assert run(ask())
