"""Word alignment on the package's gold pairs: AER of the models in the box, and of aligners trained on the same pairs.

`python benchmarks/gold.py` prints a Markdown table. Both directions are joined throughout. The aligners read Tatoeba's
pairs, with marks set apart as in the gold pairs, and the gold pairs themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.eflomal import align_with_eflomal
from sightline.alignment.links import Alignment
from sightline.alignment.statistical import train_aligner
from sightline.alignment.symmetrization import DEFAULT_RULE, symmetrize_all
from sightline.data.corpora import data_path, read_tab_separated
from sightline.data.gold import REGISTERS, read_gold
from sightline.models.box import BOX_MODEL, CALIBRATED_MODEL
from sightline.training.augmentation import space_marks

GOLD = read_gold()
METHODS = {
    "attention": {"method": "attention"},
    "norms": {"method": "norms"},
    "word saliency": {"method": "word_saliency"},
    "word saliency, 30 SmoothGrad samples": {"method": "word_saliency", "smoothgrad": 30},
    "`auto`": {},
}


def found_by_models() -> Iterator[tuple[str, list[Alignment]]]:
    """Align by every method with the model in the box, and by `auto` with its calibrated twin."""
    pairs = [pair.source for pair in GOLD], [pair.target for pair in GOLD]
    for name, options in METHODS.items():
        yield f"{BOX_MODEL}, {name}", sightline.align(sightline.load(BOX_MODEL), *pairs, progress=False, **options)
    yield f"{CALIBRATED_MODEL}, `auto`", sightline.align(sightline.load(CALIBRATED_MODEL), *pairs, progress=False)


def found_by_aligners() -> Iterator[tuple[str, list[Alignment]]]:
    """Align by statistical aligners."""
    pairs = [
        (space_marks(english).split(), space_marks(spanish).split())
        for english, spanish in read_tab_separated(data_path("tatoeba-en-es/pairs.tsv.gz"))
    ]
    gold = [(pair.source.split(), pair.target.split()) for pair in GOLD]
    for kind in ("ibm1", "diagonal", "hmm"):
        yield kind, list(train_aligner(build_bitext([*pairs, *gold]), kind).align(gold))
    forward, backward = zip(*list(align_with_eflomal([*pairs, *gold]))[-len(gold) :], strict=True)
    yield "eflomal", list(symmetrize_all(forward, backward, DEFAULT_RULE))


def row(name: str, found: Sequence[Alignment]) -> str:
    """Score some alignments on each register and on both."""
    cells = []
    for registers in (*((register,) for register in REGISTERS), REGISTERS):
        chosen = [number for number, pair in enumerate(GOLD) if pair.register in registers]
        rate = sightline.score([found[n] for n in chosen], [GOLD[n].alignment for n in chosen]).aer
        cells.append(f"{rate.value:.1f} [{rate.interval[0]:.1f}, {rate.interval[1]:.1f}]")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    print(f"| | {' | '.join(REGISTERS)} | both |\n|---|---|---|---|")
    for found in (found_by_models, found_by_aligners):
        for name, alignments in found():
            print(row(name, alignments), flush=True)


if __name__ == "__main__":
    main()
