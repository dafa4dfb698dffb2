"""A request that takes too long, or whose client leaves, is answered so and frees its worker."""

import time

import httpx
import pytest
import zoo
from serve.conftest import Server, wait_for_models

from sightline.serve.app import create_app
from sightline.serve.limits import Limits

LONG = {"source": zoo.SOURCES[0], "method": "perturbation_mask", "settings": {"steps": 90_000}}


@pytest.fixture(scope="module")
def slow():
    app = create_app({"tiny": zoo.fresh("marian")}, Limits(samples=100_000, seconds=1.0))
    with Server(app) as address:
        wait_for_models(app)
        worker = app.state.workers.by_name["tiny"]
        while worker._untried:  # it finds out which methods the model has while it has nothing else to do
            time.sleep(0.05)
        yield address, worker


def assert_free(address, worker):
    end = time.monotonic() + 60
    while worker._running or worker.waiting:
        assert time.monotonic() < end, "the worker still works for nobody"
        time.sleep(0.05)
    answer = httpx.post(f"{address}/api/explain", json={"source": zoo.SOURCES[0], "method": "attention"}, timeout=30)
    assert answer.status_code in (200, 504)  # a busy machine may take longer than the second that is allowed


def test_what_takes_too_long_is_refused_and_its_worker_is_free(slow):
    answer = httpx.post(f"{slow[0]}/api/explain", json=LONG, timeout=30)
    assert (answer.status_code, answer.json()["error"].startswith("This took longer than 1 seconds")) == (504, True)
    assert_free(*slow)


def test_a_client_that_leaves_frees_its_worker(slow):
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{slow[0]}/api/explain", json=LONG, timeout=httpx.Timeout(30, read=0.3))
    assert_free(*slow)
