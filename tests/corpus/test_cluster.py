"""A crew on a cluster of two nodes, one of which is killed half-way."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")
import ray
from ray.cluster_utils import Cluster

from sightline.corpus.jobs import AlignJob
from sightline.corpus.running import Running, run_job
from sightline.errors import InputError

Rows = list[tuple[str, str]]


@pytest.fixture(scope="module")
def cluster():
    """Start a head without cores and two nodes with one each; the driver is connected to the cluster."""
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - by default 15, which starves them where other tests run
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [started.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=started.address, log_to_driver=False, logging_level="error")
    yield started, nodes
    ray.shutdown()
    started.shutdown()


def test_a_line_that_cannot_be_processed_is_told(cluster, job: AlignJob, rows: Rows, tmp_path: Path) -> None:
    started, _ = cluster
    rows = [*rows, ("word " * 2000, "palabra")]
    with pytest.raises(InputError, match=f"source {len(rows)} is too long"):
        run_job(job, rows, tmp_path / "out", Running(workers=2, engine="ray", address=started.address))
    run_job(job, rows, tmp_path / "out", Running(workers=2, engine="ray", on_error="skip"))
    assert (tmp_path / "out").read_text().count("\n") == len(rows)
    assert (tmp_path / "out.errors").read_text().startswith(f"{len(rows)}\t")


def test_a_node_is_killed_half_way(cluster, job: AlignJob, rows: Rows, tmp_path: Path) -> None:
    started, nodes = cluster
    rows = rows * 10
    run_job(job, rows, tmp_path / "alone")
    record = tmp_path / "many.partial.json"
    killed = []

    def kill() -> None:
        ours = ray.get_runtime_context().get_node_id()
        other = next(node for node in nodes if node.node_id != ours)
        while not (record.exists() and json.loads(record.read_text())["rows"]):
            time.sleep(0.01)
        started.remove_node(other, allow_graceful=False)
        killed.append(json.loads(record.read_text())["rows"])

    killer = threading.Thread(target=kill)
    killer.start()
    run_job(job, rows, tmp_path / "many", Running(resume=True, workers=2, engine="ray", address=started.address))
    killer.join()
    assert 0 < killed[0] < len(rows)
    assert (tmp_path / "many").read_bytes() == (tmp_path / "alone").read_bytes()
