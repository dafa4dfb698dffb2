"""What calibrated attention costs beside plain attention, and what decoding with an LSTM costs as it goes on.

A plain and a calibrated Transformer do the same updates and the same greedy decoding in turns, so that whatever else
the machine does falls on both. A step's peak memory is measured in a process of its own for each. Prints JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

from sightline.models.lstm import LstmSettings, build_lstm
from sightline.training.batches import epoch_batches
from sightline.training.loop import update
from sightline.training.recipe import read_recipe
from sightline.training.run import Run, prepare_run

RECIPE: dict[str, Any] = {
    "data": {
        "train": {"generated": {"stems": 3000}, "sentences": 4000},
        "dev": {"generated": {"stems": 3000}, "sentences": 10},
    },
    "tokenizer": {"vocabulary": 6000},
    "model": {"width": 192, "feed_forward": 512, "encoder_layers": 3, "decoder_layers": 3},
    "training": {"steps": 1000, "batch_tokens": 2048},
}
KINDS: dict[str, dict[str, Any]] = {"plain": {}, "calibrated": {"calibration": {"fusion": "gate"}}}


def prepare(kind: str, folder: str) -> Run:
    return prepare_run(read_recipe(RECIPE | KINDS[kind]), Path(folder, kind), quiet=True)


def batches_of(run: Run, count: int) -> list[Any]:
    return epoch_batches(run.train, run.recipe.training.batch_tokens, seed=1, epoch=0)[:count]


def in_turns(actions: dict[str, Callable[[int], object]], rounds: int) -> dict[str, float]:
    """Return the processor time of each action, by turns; the first round warms up."""
    seconds = dict.fromkeys(actions, 0.0)
    for number in range(rounds + 1):
        for name, action in actions.items():
            begun = time.process_time()
            action(number)
            if number:
                seconds[name] += time.process_time() - begun
    return seconds


def measure_training(runs: dict[str, Run], steps: int) -> dict[str, float]:
    rows = batches_of(runs["plain"], steps + 1)
    actions = {name: lambda i, run=run: update(run, i + 1, rows[i]) for name, run in runs.items()}
    seconds = in_turns(actions, steps)
    tokens = sum(runs["plain"].train.target_tokens(one) for one in rows[1:])
    return {
        "plain tokens per second": tokens / seconds["plain"],
        "calibrated / plain": seconds["calibrated"] / seconds["plain"],
    }


def measure_generation(runs: dict[str, Run], rounds: int, length: int = 30) -> dict[str, float]:
    """Decode so many steps greedily, never ending before."""
    inputs = runs["plain"].train.tensors(batches_of(runs["plain"], 1)[0][:16], torch.device("cpu"))
    options = {"min_new_tokens": length, "max_new_tokens": length, "num_beams": 1}

    def generate(model: Any) -> None:
        model.eval().generate(inputs["input_ids"], attention_mask=inputs["attention_mask"], **options)

    seconds = in_turns({name: lambda _, m=run.model: generate(m) for name, run in runs.items()}, rounds)
    return {
        "plain step, ms": 1000 * seconds["plain"] / rounds / length,
        "calibrated / plain": seconds["calibrated"] / seconds["plain"],
    }


def peak_memory(kind: str) -> float:
    """Return the MB that one process takes for an update, beyond what it took before."""
    program = [sys.executable, __file__, "--memory-of", kind]
    return float(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


def print_memory_of_a_step(kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = prepare(kind, folder)
        rows = batches_of(run, 3)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for step, one in enumerate(rows, start=1):
            update(run, step, one)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def measure_lstm(rounds: int) -> dict[str, float]:
    """Return the time of a token in answers of 50 and of 200 tokens: with a state that is kept, it is the same."""
    with tempfile.TemporaryDirectory() as folder:
        run = prepare("plain", folder)
    model = build_lstm(LstmSettings(width=192), run.tokenizer).eval()
    inputs = run.train.tensors(batches_of(run, 1)[0][:8], torch.device("cpu"))
    ids, mask = inputs["input_ids"], inputs["attention_mask"]

    def generate(length: int) -> Callable[[int], object]:
        options = {"min_new_tokens": length, "max_new_tokens": length}
        return lambda _: model.generate(ids, attention_mask=mask, **options)

    seconds = in_turns({str(length): generate(length) for length in (50, 200)}, rounds)
    by_token = {length: 1000 * total / rounds / int(length) for length, total in seconds.items()}
    return {f"ms per token of {n}": ms for n, ms in by_token.items()} | {"200 / 50": by_token["200"] / by_token["50"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--memory-of", choices=KINDS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print_memory_of_a_step(arguments.memory_of)
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = {kind: prepare(kind, folder) for kind in KINDS}
        sizes = {kind: sum(p.numel() for p in run.trained_parameters) for kind, run in runs.items()}
        memory = {kind: peak_memory(kind) for kind in KINDS}
        figures = {
            "calibrated training": measure_training(runs, arguments.steps),
            "calibrated generation": measure_generation(runs, rounds=arguments.steps // 4 + 1),
            "calibrated memory of a step": {
                "plain, MB": memory["plain"],
                "calibrated / plain": memory["calibrated"] / memory["plain"],
            },
            "calibrated parameters": {
                "plain": sizes["plain"],
                "added": sizes["calibrated"] - sizes["plain"],
                "added / plain": sizes["calibrated"] / sizes["plain"] - 1,
            },
        }
    figures["LSTM decoding"] = measure_lstm(rounds=arguments.steps // 4 + 1)
    for name, row in figures.items():
        print(json.dumps({"benchmark": name, **row}))


if __name__ == "__main__":
    main()
