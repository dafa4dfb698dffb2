"""Word alignment of longer texts: AER where 1, 3 or 10 gold pairs stand in one text.

`python benchmarks/long_texts.py` prints a Markdown table for the model in the box on the package's gold pairs, with and
without its alignment adapter, and for statistical aligners trained on Tatoeba's and Europarl's pairs and the texts.
Pairs are joined in their order within a register, so that the gold links are the same in every column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.links import Alignment
from sightline.alignment.statistical import train_aligner
from sightline.data.corpora import TextPair, data_path, read_tab_separated
from sightline.data.gold import ALL_REGISTERS, GoldPair, read_gold
from sightline.models.box import BOX_MODEL
from sightline.training.augmentation import space_marks

AT_ONCE = (1, 3, 10)
CORPORA = ("tatoeba-en-es", "europarl-en-es")
ALIGNERS = ("diagonal", "hmm")


def join(pairs: Sequence[GoldPair]) -> GoldPair:
    """Join pairs into one text, with their links moved to where the words are then."""
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    before = [0, 0]
    for pair in pairs:
        for links, joined in ((pair.alignment.links, sure), (pair.alignment.possible, possible)):
            joined |= {(source + before[0], target + before[1]) for source, target in links}
        before = [length + len(side.split()) for length, side in zip(before, (pair.source, pair.target), strict=True)]
    source, target = (" ".join(sides) for sides in zip(*((pair.source, pair.target) for pair in pairs), strict=True))
    return GoldPair(pairs[0].register, source, target, Alignment(sure, possible=possible))


def joined_gold(at_once: int) -> Iterator[GoldPair]:
    """Yield the gold texts of so many pairs each."""
    for _, pairs in groupby(read_gold(*ALL_REGISTERS), key=lambda pair: pair.register):
        register = list(pairs)
        for start in range(0, len(register), at_once):
            yield join(register[start : start + at_once])


def by_model(**options: Any) -> Callable[[Sequence[GoldPair]], list[Alignment]]:
    """Return what aligns with the model in the box."""
    model = sightline.load(BOX_MODEL)
    return lambda gold: sightline.align(
        model, [pair.source for pair in gold], [pair.target for pair in gold], progress=False, **options
    )


def by_aligner(kind: str, pairs: Iterable[TextPair]) -> Callable[[Sequence[GoldPair]], list[Alignment]]:
    """Return what aligns with a statistical aligner."""
    words = [(source.split(), target.split()) for source, target in pairs]

    def align(gold: Sequence[GoldPair]) -> list[Alignment]:
        texts = [(pair.source.split(), pair.target.split()) for pair in gold]
        return list(train_aligner(build_bitext([*words, *texts]), kind).align(texts))

    return align


def main() -> None:
    columns = [f"{at_once} {'pair' if at_once == 1 else 'pairs'}" for at_once in AT_ONCE]
    print(f"| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}", flush=True)
    corpus = [
        (space_marks(english), space_marks(spanish))
        for name in CORPORA
        for english, spanish in read_tab_separated(data_path(f"{name}/pairs.tsv.gz"))
    ]
    rows = {"model in the box, adapter": by_model(), "model in the box, norms": by_model(method="norms")}
    rows |= {kind: by_aligner(kind, corpus) for kind in ALIGNERS}
    for name, align in rows.items():
        cells = []
        for at_once in AT_ONCE:
            gold = list(joined_gold(at_once))
            rate = sightline.score(align(gold), [pair.alignment for pair in gold]).aer
            cells.append(f"{rate.value:.1f} [{rate.interval[0]:.1f}, {rate.interval[1]:.1f}]")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
