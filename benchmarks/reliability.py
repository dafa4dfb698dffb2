"""Confidences of links beside how often they are right: a reliability table and the expected calibration error.

`python benchmarks/reliability.py` prints a Markdown table for the model in the box on the package's 216 gold pairs,
read by its adapter and without it. A link is right if gold has it as sure or possible.
"""

from __future__ import annotations

import numpy as np

import sightline
from sightline.data.gold import ALL_REGISTERS, read_gold

READINGS = {"adapter": {}, "`auto` without it": {"use_adapter": False}}
BINS = np.linspace(0, 1, 11)


def main() -> None:
    gold = read_gold(*ALL_REGISTERS)
    texts = [pair.source for pair in gold], [pair.target for pair in gold]
    cells: list[list[str]] = [[f"{low:.1f} to {low + 0.1:.1f}"] for low in BINS[:-1]]
    errors = []
    for options in READINGS.values():
        found = sightline.align(sightline.load(), *texts, progress=False, **options)
        sure = np.array([value for links in found for value in links.confidences.values()])
        right = np.array([link in p.alignment.possible for links, p in zip(found, gold, strict=True) for link in links])
        bins = np.clip(np.digitize(sure, BINS) - 1, 0, len(BINS) - 2)
        error = 0.0
        for number, row in enumerate(cells):
            inside = bins == number
            if not inside.any():
                row += ["", "", ""]
                continue
            confidence, share = sure[inside].mean(), right[inside].mean()
            error += inside.mean() * abs(confidence - share)
            row += [f"{inside.sum():,}", f"{confidence:.2f}", f"{share:.2f}"]
        errors += ["", "", f"{error:.3f}"]
    heads = [f"{name}, {what}" for name in READINGS for what in ("links", "mean confidence", "share right")]
    print(f"| confidence | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for row in [*cells, ["expected calibration error", *errors]]:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
