"""A server with the model in the box, a classifier and a causal model; and a browser to look at its page with."""

import json
import threading
import time

import pytest
import uvicorn
import zoo
from browser import open_page, wait_until
from fastapi.testclient import TestClient

import sightline
from sightline.serve.app import create_app
from sightline.serve.limits import Limits

LIMITS = Limits(characters=6_000, tokens=200, lines=20, samples=10, seconds=60.0, waiting=8)


def wait_for_models(app):
    end = time.monotonic() + 600  # on a machine that does much else
    workers = app.state.workers.by_name.values()
    # Until their threads rest: what they draw at random would disturb tests of training in this process.
    while not all(worker.knows_its_methods for worker in workers):
        assert not [worker.error for worker in workers if worker.error]
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
def app(models, runs):
    return create_app(models, LIMITS, folder=runs)


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


FRAMES = {
    "kind": "frames",
    "title": "As it forms",
    "label": "step",
    "frames": [
        {"name": name, "tables": [{"title": "attention", "rows": ["x", "y"], "columns": ["a", "b"], "values": values}]}
        for name, values in (("0", [[0.5, 0.5], [0.5, 0.5]]), ("50", [[1.0, 0.0], [0.25, 0.75]]))
    ],
}
CLAIM = {"id": "1", "text": "It is so.", "verdict": "It holds.", "ours": "0.5", "paper": None}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Write a run's log and a study's report into a folder."""
    folder = tmp_path_factory.mktemp("runs")
    lines = [{"kind": "train", "step": step, "loss": 9 / (1 + step)} for step in range(5)]
    for name, text in {
        "a run/log.jsonl": "".join(json.dumps(line) + "\n" for line in lines),
        "a study/study.json": json.dumps({"title": "A study", "claims": [CLAIM], "plots": [FRAMES]}),
        "kept/another.json": json.dumps({"study": "x", "title": "Another", "claims": [CLAIM], "plots": []}),
        "kept/settings.json": json.dumps({"title": "no study"}),
        "a run/notes.txt": "secret",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def address(models, runs):
    """Start a server that real clients can use."""
    app = create_app(models, LIMITS, folder=runs)
    with Server(app) as where:
        wait_for_models(app)
        yield where


@pytest.fixture
def visit(browser, address):
    """Open the page at a fragment of its address."""

    def visit_page(fragment="", **options):
        page = open_page(browser, f"{address}/#{fragment}", **options)
        wait_until(page, "document.querySelector('main .waiting') === null", 30)
        return page

    return visit_page
