"""Two processes on CPUs (gloo) do what one does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from training.tiny import recipe

from sightline.training import train
from sightline.training.loop import compute_gradients
from sightline.training.recipe import read_recipe
from sightline.training.run import prepare_run

STILL = {"model": {"dropout": 0.0}}
PROGRAM = """
import sys
from pathlib import Path
import numpy as np, torch
torch.set_num_threads(1)
sys.path.insert(0, {tests!r})
from safetensors.torch import save_file
from training.tiny import recipe
from sightline.training import train
from sightline.training.loop import compute_gradients
from sightline.training.recipe import read_recipe
from sightline.training.run import prepare_run

folder = Path({folder!r})
changed = recipe(model={{"dropout": 0.0}}) | {{"calibration": {calibration!r}}}
run = prepare_run(read_recipe(changed), folder / "gradients", quiet=True)
assert run.accelerator.num_processes == 2
for count in (21, 1):
    compute_gradients(run, np.arange(count))
    if run.accelerator.is_main_process:
        gradients = {{name: p.grad.clone() for name, p in run.model.named_parameters() if p.grad is not None}}
        save_file(gradients, folder / f"gradients-{{count}}.safetensors")
    run.optimizer.zero_grad()
train(changed, output=folder / "trained", quiet=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("calibration", [None, {"fusion": "gate"}], ids=["plain", "calibrated"])
def test_two_processes_have_the_gradients_and_the_run_of_one(calibration: dict | None, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    tests = str(Path(__file__).parents[1])
    program.write_text(PROGRAM.format(tests=tests, folder=str(tmp_path), calibration=calibration))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(launch, check=True, env=environment, timeout=250)

    alone = recipe(**STILL) | {"calibration": calibration}
    run = prepare_run(read_recipe(alone), tmp_path / "alone", quiet=True)
    for count in (21, 1):  # the second leaves one process without a sentence
        compute_gradients(run, np.arange(count))
        gradients = load_file(tmp_path / f"gradients-{count}.safetensors")
        for name, parameter in run.model.named_parameters():
            if parameter.grad is not None:
                torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-4, atol=1e-6)
        run.optimizer.zero_grad()

    # Not the weights: Adam makes full steps of gradients that are nothing but rounding.
    train(alone, output=tmp_path / "whole", quiet=True)
    losses = [_losses(tmp_path / name) for name in ("trained", "whole")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def _losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] in ("train", "dev", "final dev")]
