"""Alignment beside the bare forward pass, how long choosing without gold takes, and the diagonal model beside eflomal.

`python benchmarks/alignment.py [PAIRS]` prints JSON lines. The aligners need the Hansards, and eflomal its package.
"""

from __future__ import annotations

import json
import sys

import torch
from methods import bare_pass
from opus import marian, seconds, sentences

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.eflomal import align_with_eflomal
from sightline.alignment.position_model import train_diagonal
from sightline.data.corpora import data_path
from sightline.data.hansard import read_training_pairs

FAST_ALIGN_SECONDS = 28  # five iterations in one direction on these pairs, on 2 cores


def compare_aligners() -> dict[str, float]:
    """Train the diagonal model in one direction, five iterations, words to model; align by eflomal, both directions."""
    pairs = [(english.split(), french.split()) for english, french in read_training_pairs(data_path("hansard-en-fr"))]
    train_diagonal(build_bitext(pairs[:100]))  # compiles
    diagonal = seconds(lambda: train_diagonal(build_bitext(pairs)), repeats=3)
    eflomal = seconds(lambda: list(align_with_eflomal(pairs)), repeats=1)
    return {
        "pairs": len(pairs),
        "diagonal model, s": diagonal,
        "fast_align / diagonal model": FAST_ALIGN_SECONDS / diagonal,
        "eflomal, both directions, s": eflomal,
        "half of eflomal / diagonal model": eflomal / 2 / diagonal,
    }


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
    print(json.dumps({"benchmark": "statistical aligners", **compare_aligners()}))
