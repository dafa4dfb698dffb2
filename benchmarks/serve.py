"""The server under load: 32 clients for a minute, beside sequential calls in Python and single requests when idle.

    python benchmarks/serve.py [--seconds 60] [--clients 32]

Prints one JSON object: median and 99th percentile of the time to an answer, requests per second, how many requests had
each status, and the memory of the server's process before, halfway and after.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections import Counter

import httpx
import psutil

SENTENCES = (
    "The black cat is sleeping under the old kitchen table.",
    "We saw a white dog in the garden of the house.",
    "She gets up at six every morning and makes some coffee.",
    "I do not know where I have left my keys today.",
)
METHODS = ("norms", "attention")
PORT = 8490


def start(port: int) -> subprocess.Popen[bytes]:
    """Start a server with the model in the box, and wait until it is ready and has tried its methods."""
    process = subprocess.Popen([sys.executable, "-m", "sightline.cli", "serve", "--port", str(port), "--quiet"])
    while True:
        try:
            [model] = httpx.get(f"http://127.0.0.1:{port}/api/models").json()
            if len(model["methods"]) >= 15:
                return process
        except httpx.TransportError:
            assert process.poll() is None, "the server did not start"
        time.sleep(0.3)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def measure_idle(address: str, count: int) -> dict[str, float]:
    """Measure single requests: the first word and the whole of a translation, and an explanation."""
    first, whole, explained = [], [], []
    with httpx.Client(base_url=address, timeout=60) as client:
        for number in range(count):
            body = {"source": SENTENCES[number % len(SENTENCES)]}
            begin = time.perf_counter()
            with client.stream("POST", "/api/translate", json=body, headers={"accept": "text/event-stream"}) as answer:
                lines = answer.iter_lines()
                next(line for line in lines if line.startswith("data:"))
                first.append(time.perf_counter() - begin)
                list(lines)
            whole.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            client.post("/api/explain", json=body | {"target": "El gato duerme."}).raise_for_status()
            explained.append(time.perf_counter() - begin)
    return {
        "first word, ms": 1000 * statistics.median(first),
        "translation, ms": 1000 * statistics.median(whole),
        "explanation of a given translation, ms": 1000 * statistics.median(explained),
    }


async def load(address: str, clients: int, seconds: float, server: psutil.Process) -> dict[str, object]:
    """Let clients ask one after the other for some time."""
    times: list[float] = []
    statuses: Counter[int] = Counter()
    memory = [server.memory_info().rss]
    end = time.monotonic() + seconds

    async def ask(client: httpx.AsyncClient, number: int) -> None:
        while time.monotonic() < end:
            body = {"source": SENTENCES[number % len(SENTENCES)], "method": METHODS[number % len(METHODS)]}
            begin = time.perf_counter()
            answer = await client.post("/api/explain", json=body)
            statuses[answer.status_code] += 1
            if answer.status_code == 200:
                times.append(time.perf_counter() - begin)
            else:
                await asyncio.sleep(0.1)
            number += 1

    async def watch() -> None:
        await asyncio.sleep(seconds / 2)
        memory.append(server.memory_info().rss)

    async with httpx.AsyncClient(base_url=address, timeout=120) as client:
        await asyncio.gather(watch(), *(ask(client, number) for number in range(clients)))
    memory.append(server.memory_info().rss)
    return {
        "requests": len(times),
        "requests per second": len(times) / seconds,
        "median, ms": 1000 * statistics.median(times),
        "99th percentile, ms": 1000 * percentile(times, 0.99),
        "statuses": dict(statuses),
        "memory, MB": [round(bytes_ / 1e6) for bytes_ in memory],
    }


def measure_sequential(seconds: float) -> float:
    """Return how many explanations a second Python makes, one call after the other."""
    import sightline

    model = sightline.load()
    for method in METHODS:
        sightline.explain(model, SENTENCES[0], method=method)
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        sightline.explain(model, SENTENCES[count % len(SENTENCES)], method=METHODS[count % len(METHODS)])
        count += 1
    return count / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    options = parser.parse_args()
    sequential = measure_sequential(min(options.seconds, 15))
    process = start(PORT)
    try:
        address = f"http://127.0.0.1:{PORT}"
        idle = measure_idle(address, 20)
        loaded = asyncio.run(load(address, options.clients, options.seconds, psutil.Process(process.pid)))
    finally:
        process.terminate()
        process.wait(20)
    print(json.dumps({"idle": idle, "sequential calls per second": sequential, "under load": loaded}, indent=1))


if __name__ == "__main__":
    main()
