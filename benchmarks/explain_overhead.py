"""What `sightline.explain` costs beside the bare forward pass of the same model, in time and in memory.

A Marian of OPUS-MT's size with random weights reads sentence pairs of the generated language, 24 words a side. Each
run has a process of its own, so that its greatest memory is its own:

    forward      tokenise, pad, run the model with its logits: what anyone would write with transformers alone
    body         the same without the output layer, which attention does not need
    explain      sightline.explain(..., method="attention"): words, tokens, the watched pass, one Attribution a pair

All use the same batches of like length, and all count their tokenisation, which is also given alone. The runs take
turns, and the best of each counts. `python benchmarks/explain_overhead.py [--pairs N] [--threads N]` prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from opus import marian, peak_bytes, sentences

import sightline
from sightline.models.budget import positions_that_fit
from sightline.models.loaded import LoadedModel
from sightline.text.batches import batches_by_length
from sightline.verbs.explaining import MAX_BATCH_SIZE

RUNS = ("forward", "body", "explain")
Work = Callable[[list[str], list[str]], object]


def tokenise(model: LoadedModel, sources: list[str], targets: list[str]) -> tuple[list[list[int]], list[list[int]]]:
    return model.tokenizer(sources)["input_ids"], model.tokenizer(text_target=targets)["input_ids"]


def bare(model: LoadedModel, *, with_logits: bool) -> Work:
    """Return the loop that one would write without Sightline."""
    module = model.module if with_logits else model.module.model
    pad = model.tokenizer.pad_token_id

    @torch.no_grad()
    def run(sources: list[str], targets: list[str]) -> None:
        ids, labels = tokenise(model, sources, targets)
        lengths = [max(len(s), len(t)) for s, t in zip(ids, labels, strict=True)]
        for batch in batches_by_length(lengths, partial(positions_that_fit, model), MAX_BATCH_SIZE):
            inputs = model.tokenizer.pad({"input_ids": [ids[i] for i in batch]}, return_tensors="pt")
            decoder_ids = torch.nn.utils.rnn.pad_sequence(
                [torch.tensor([pad, *labels[i][:-1]]) for i in batch], batch_first=True, padding_value=pad
            )
            module(**inputs, decoder_input_ids=decoder_ids, use_cache=False)

    return run


def explained(model: LoadedModel) -> Work:
    return lambda sources, targets: sightline.explain(model, sources, targets, method="attention", progress=False)


def measure(run: str, pairs: int) -> dict[str, float]:
    """Time one run over all pairs, after a short one to warm up."""
    model = marian()
    sources, targets = sentences(pairs)
    work = explained(model) if run == "explain" else bare(model, with_logits=run == "forward")
    work(sources[:MAX_BATCH_SIZE], targets[:MAX_BATCH_SIZE])
    start = time.perf_counter()
    work(sources, targets)
    seconds = time.perf_counter() - start
    peak = peak_bytes()
    start = time.perf_counter()
    ids, labels = tokenise(model, sources, targets)
    return {
        "seconds": round(seconds, 2),
        "peak_megabytes": peak // 2**20,
        "tokenisation_seconds": round(time.perf_counter() - start, 2),
        "pieces": sum(map(len, ids + labels)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.run:
        print(json.dumps(measure(arguments.run, arguments.pairs)))
        return
    options = ["--pairs", str(arguments.pairs), "--threads", str(arguments.threads)]
    results: dict[str, dict[str, float]] = {}
    for run in RUNS * arguments.turns:
        measured = json.loads(subprocess.check_output([sys.executable, __file__, "--run", run, *options]))
        results[run] = min(measured, results.get(run, measured), key=lambda result: result["seconds"])
    ratios = {
        f"{what}_against_{run}": round(results["explain"][what] / results[run][what], 3)
        for run in ("forward", "body")
        for what in ("seconds", "peak_megabytes")
    }
    print(json.dumps({"pairs": arguments.pairs, "threads": arguments.threads, **results, **ratios}, indent=2))


if __name__ == "__main__":
    main()
