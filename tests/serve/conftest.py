"""A server with the model in the box, a classifier and a causal model; and a browser to look at its page with."""

import threading
import time

import pytest
import uvicorn
import zoo
from browser import needs_browser, open_page, start_browser, wait_until
from fastapi.testclient import TestClient

import sightline
from sightline.serve.app import create_app
from sightline.serve.limits import Limits

LIMITS = Limits(characters=6_000, tokens=200, lines=20, samples=10, seconds=60.0, waiting=8)


def wait_for_models(app):
    end = time.monotonic() + 120
    while not app.state.workers.are_ready:
        assert not [worker.error for worker in app.state.workers.by_name.values() if worker.error]
        assert time.monotonic() < end, "the models were not ready in time"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def models():
    """Load what the servers of these tests share; the calibrated model is the same one after calibration."""
    return {
        "en-es": sightline.load(),
        "en-es-calibrated": sightline.load("en-es-calibrated"),
        "reviews": zoo.fresh("bert-classifier"),
        "stories": zoo.fresh("gpt2"),
    }


@pytest.fixture(scope="session")
def app(models):
    return create_app(models, LIMITS)


@pytest.fixture(scope="session")
def client(app):
    with TestClient(app, base_url="http://127.0.0.1:8400") as started:
        wait_for_models(app)
        yield started


class Server:
    """A server in a thread, at a port of its own."""

    def __init__(self, app):
        self.server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=5))
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.01)
        [listening] = self.server.servers[0].sockets
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join(timeout=20)


@pytest.fixture(scope="session")
def address(models, tmp_path_factory):
    """Start a server that real clients can use."""
    app = create_app(models, LIMITS)
    with Server(app) as where:
        wait_for_models(app)
        yield where


@pytest.fixture(scope="module")
def browser():
    needs_browser()
    with start_browser() as started:
        yield started


@pytest.fixture
def visit(browser, address):
    """Open the page at a fragment of its address."""

    def visit_page(fragment="", **options):
        page = open_page(browser, f"{address}/#{fragment}", **options)
        wait_until(page, "document.querySelector('main .waiting') === null", 30)
        return page

    return visit_page
