"""Training by several processes, as docs/scale.md shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from training.tiny import recipe

LAUNCH = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_machines", "1", "--mixed_precision", "no"]
TRAIN = ["--dynamo_backend", "no", "-m", "sightline.cli", "train"]


@pytest.mark.slow
def test_accelerate_launch_with_two_processes(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe(model={"dropout": 0.0})))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    losses = []
    for processes in ("1", "2"):
        folder = tmp_path / processes
        command = [*LAUNCH, "--num_processes", processes, *TRAIN, str(tmp_path / "recipe.yaml"), "-o", str(folder)]
        subprocess.run(command, check=True, env=environment, capture_output=True, timeout=250)
        assert (folder / "result.json").exists()
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        losses.append([line["loss"] for line in lines if "loss" in line])
    assert losses[0]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
