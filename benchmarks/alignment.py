"""Alignment beside the bare forward pass, and how long choosing without gold takes.

`python benchmarks/alignment.py [PAIRS]` prints JSON lines.
"""

from __future__ import annotations

import json
import sys

import torch
from methods import bare_pass
from opus import marian, seconds, sentences

import sightline


def compare(count: int) -> dict[str, float]:
    """Align pairs with norms from a chosen layer, text to links, and run the model alone on the same, encoded pairs."""
    model = marian()
    sources, targets = sentences(count)
    model.attention_layers  # noqa: B018  the check on first use is not what is measured
    way = {"method": "norms", "layer": 4, "reading": "input", "extraction": "argmax"}
    bare = seconds(bare_pass(model, sources, targets))
    ours = seconds(lambda: sightline.align(model, sources, targets, **way))
    both = seconds(lambda: sightline.align(model, sources, targets, reverse=model, **way), repeats=1)
    choosing = seconds(lambda: sightline.explain_choice(model, sources[:50], targets[:50]), repeats=1)
    return {
        "pairs": count,
        "bare pass, pairs/s": count / bare,
        "align, pairs/s": count / ours,
        "align / bare pass": bare / ours,
        "align both directions, pairs/s": count / both,
        "choosing on 50 pairs, s": choosing,
    }


if __name__ == "__main__":
    torch.set_num_threads(2)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    print(json.dumps({"benchmark": "align / bare pass", **compare(count)}))
