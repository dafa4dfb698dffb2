"""Training speed: tokens a second of Sightline's loop and of a bare PyTorch loop, on one model and the same batches.

Both loops do the same updates (forward, label-smoothed loss, backward, clipping, fused AdamW) in turns, so that
whatever else the machine does falls on both; the time on the processor is given too, which a busy machine does not
change. Prints one JSON object. Under `torchrun --nproc-per-node 2` it measures Sightline's loop alone, on as many
processes; they share the folder that BENCHMARK_FOLDER names.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
import torch.nn.functional as F

from sightline.training.batches import epoch_batches
from sightline.training.loop import update
from sightline.training.optimization import build_optimizer, learning_rate
from sightline.training.recipe import read_recipe
from sightline.training.run import Run, prepare_run

RECIPE = {
    "data": {
        "train": {"generated": {"stems": 5000}, "sentences": 20_000},
        "dev": {"generated": {"stems": 5000}, "sentences": 10},
    },
    "tokenizer": {"vocabulary": 8000},
    "model": {"width": 192, "feed_forward": 768, "encoder_layers": 3, "decoder_layers": 3},
    "training": {"steps": 1000, "batch_tokens": 4096},
}


class BareLoop:
    """What one writes by hand in PyTorch."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.model = copy.deepcopy(run.model).train()
        self.optimizer = build_optimizer(self.model, run.recipe.training)

    def update(self, step: int, batch: dict[str, torch.Tensor]) -> float:
        settings = self.run.recipe.training
        labels = batch["labels"]
        logits = self.model(**{name: batch[name] for name in batch if name != "labels"}, use_cache=False).logits
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=settings.label_smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, settings)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recipe = read_recipe(RECIPE, {"training.batch_tokens": arguments.batch_tokens})
        run = prepare_run(recipe, Path(os.environ.get("BENCHMARK_FOLDER", folder), "run"), quiet=True)
        batches = epoch_batches(run.train, recipe.training.batch_tokens, seed=1, epoch=0)[: arguments.steps + 2]
        alone = run.accelerator.num_processes > 1
        bare = None if alone else BareLoop(run)
        seconds = {"sightline": 0.0, "bare": 0.0}
        cpu = {"sightline": 0.0, "bare": 0.0}
        tokens = 0
        for step, rows in enumerate(batches, start=1):
            if step == 3:  # the first two warm up
                seconds, cpu, tokens = {"sightline": 0.0, "bare": 0.0}, {"sightline": 0.0, "bare": 0.0}, 0
            tokens += run.train.target_tokens(rows)
            begun, cpu_begun = time.perf_counter(), time.process_time()
            update(run, step, rows)
            seconds["sightline"] += time.perf_counter() - begun
            cpu["sightline"] += time.process_time() - cpu_begun
            if bare is not None:
                begun, cpu_begun = time.perf_counter(), time.process_time()
                bare.update(step, run.train.tensors(rows, run.accelerator.device))
                seconds["bare"] += time.perf_counter() - begun
                cpu["bare"] += time.process_time() - cpu_begun
        result: dict[str, object] = {
            "parameters": sum(parameter.numel() for parameter in run.trained_parameters),
            "processes": run.accelerator.num_processes,
            "threads": torch.get_num_threads(),
            "batch_tokens": arguments.batch_tokens,
            "sightline_tokens_per_second": round(tokens / seconds["sightline"]),
            "sightline_cpu_seconds_per_step": round(cpu["sightline"] / arguments.steps, 3),
        }
        if bare is not None:
            result |= {
                "bare_tokens_per_second": round(tokens / seconds["bare"]),
                "bare_cpu_seconds_per_step": round(cpu["bare"] / arguments.steps, 3),
                "ratio": round(seconds["bare"] / seconds["sightline"], 3),
                "ratio_of_processor_time": round(cpu["bare"] / cpu["sightline"], 3),
            }
        if run.accelerator.is_main_process:
            print(json.dumps(result))


if __name__ == "__main__":
    main()
