"""The command as a process: told to stop, it answers what it has begun, takes nothing new, and leaves quietly."""

import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest
import zoo

LONG = {"source": zoo.SOURCES[0], "method": "saliency", "settings": {"smoothgrad": 100}}


@pytest.fixture
def served(tmp_path):
    model = zoo.fresh("marian")
    model.module.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    command = [sys.executable, "-c", "from sightline.cli import main; main()"]
    process = subprocess.Popen(
        [*command, "serve", "-m", str(tmp_path / "model"), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    address = process.stdout.readline().split()[3]
    end = time.monotonic() + 120
    while httpx.get(address + "ready").status_code != 200:
        assert time.monotonic() < end, "the model was not ready in time"
        time.sleep(0.1)
    yield process, address
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_begun_is_answered(served, number):
    process, address = served
    answers, sent = [], threading.Event()
    client = httpx.Client(timeout=60)
    client.get(f"{address}health")  # so that the server has this connection already

    def trace(event, _info):
        if event == "http11.send_request_body.complete":
            sent.set()

    def ask():
        answers.append(client.post(f"{address}api/explain", json=LONG, extensions={"trace": trace}))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert sent.wait(60)
    time.sleep(0.2)
    assert not answers, "too quick to show anything"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    asking.join(timeout=10)
    assert [answer.status_code for answer in answers] == [200]
    assert process.returncode == 128 + number
    assert errors.strip() in ("", "sightline: Stopped.")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}health")
