"""Word alignment of longer texts: AER where 1, 3 or 10 gold pairs stand in one text.

`python benchmarks/long_texts.py SET MODEL` prints a Markdown table for a model that translates both ways, read by its
adapter, if it has one, and by norms. SET is one of those of `error_rates.py`. Pairs are joined in their order, so that
the gold links are the same in every column.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from error_rates import SETS, TestSet, Words

import sightline
from sightline.alignment.links import Alignment

AT_ONCE = (1, 3, 10)
READINGS = {"adapter": {}, "norms": {"method": "norms"}}


def join(pairs: Sequence[tuple[Words, Alignment]]) -> tuple[str, str, Alignment]:
    """Join pairs into one text, with their links moved to where the words are then."""
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    texts: tuple[list[str], list[str]] = ([], [])
    for words, gold in pairs:
        for links, joined in ((gold.links, sure), (gold.possible, possible)):
            joined |= {(source + len(texts[0]), target + len(texts[1])) for source, target in links}
        for text, side in zip(texts, words, strict=True):
            text += side
    return " ".join(texts[0]), " ".join(texts[1]), Alignment(sure, possible=possible)


def joined_gold(test: TestSet, at_once: int) -> Iterator[tuple[str, str, Alignment]]:
    """Yield the gold texts of so many pairs each."""
    pairs = list(zip(test.pairs, test.gold, strict=True))
    return (join(pairs[start : start + at_once]) for start in range(0, len(pairs), at_once))


def main() -> None:
    name, folder = sys.argv[1:]
    test = SETS[name]()
    source_lang, target_lang = test.languages
    model = sightline.load(folder, source_lang=source_lang, target_lang=target_lang)
    columns = [f"{at_once} {'pair' if at_once == 1 else 'pairs'}" for at_once in AT_ONCE]
    print(f"| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}", flush=True)
    for reading, options in READINGS.items():
        cells = []
        for at_once in AT_ONCE:
            sources, targets, gold = map(list, zip(*joined_gold(test, at_once), strict=True))
            rate = sightline.score(sightline.align(model, sources, targets, progress=False, **options), gold).aer
            cells.append(f"{rate.value:.1f} [{rate.interval[0]:.1f}, {rate.interval[1]:.1f}]")
        print(f"| {reading} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
