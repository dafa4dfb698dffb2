"""Word alignment on three gold standards: AER of a translation model in every reading, and of statistical aligners.

`python benchmarks/error_rates.py SET [MODEL] [--reverse MODEL] [--guided MODEL]` prints a Markdown table: both
directions, and both joined with a 95 % interval. SET is one of

- `hansards`: WPT 2003, English-French; aligners read the 227,000 cleaned pairs of the Hansards;
- `rwth`: RWTH, German-English; aligners read the 400,000 cleaned pairs of Europarl; the published alignments of
  fast_align and GIZA++, which read 1.9 million, are scored too;
- `gold`: the package's own 216 pairs, English-Spanish; aligners read the corpora of the model in the box.

MODEL is a folder, or the name of a model; with `--reverse` one of the other direction, unless it translates both ways,
and with `--guided` the same model with an adapter that learned from it joined with an aligner. Without MODEL, only the
aligners are measured, which read the test pairs too. Models are read at the default rule; each aligner counts at the
rule that serves it best, as gold tells. Where eflomal is not installed, its row is left out.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.eflomal import align_with_eflomal
from sightline.alignment.formats import read_alignments
from sightline.alignment.links import Alignment
from sightline.alignment.statistical import TwoWayAligner, train_aligner
from sightline.alignment.symmetrization import RULES, symmetrize_all
from sightline.data import europarl, hansard
from sightline.data.corpora import data_path, read_tab_separated
from sightline.data.gold import ALL_REGISTERS, read_gold
from sightline.errors import InputError
from sightline.training.augmentation import space_marks

Words = tuple[list[str], list[str]]
BOX_CORPORA = ("tatoeba-en-es", "europarl-en-es")
READINGS: dict[str, dict[str, Any]] = {
    "attention": {"method": "attention"},
    "norms": {"method": "norms"},
    "word saliency": {"method": "word_saliency"},
    "word saliency, 30 SmoothGrad samples": {"method": "word_saliency", "smoothgrad": 30},
    "`auto` without an adapter": {"use_adapter": False},
    "the same with `--effort best`": {"use_adapter": False, "effort": "best"},
}


@dataclass(frozen=True)
class TestSet:
    """Pairs with gold links, and what aligners are trained on."""

    languages: tuple[str, str]
    pairs: Sequence[Words]
    gold: Sequence[Alignment]
    training: Iterator[tuple[str, str]]
    published: Path | None = None
    """A folder of alignments that others published, one aligner a folder."""


def read_hansards() -> TestSet:
    folder = data_path("hansard-en-fr")
    test = hansard.read_test_set(folder)
    return TestSet(("en", "fr"), test.pairs, test.gold, hansard.read_training_pairs(folder))


def read_rwth() -> TestSet:
    folder = data_path("rwth-de-en")
    test = europarl.read_test_set(folder)
    pairs = read_tab_separated(data_path("europarl-de-en/pairs.tsv.gz"))
    training = ((europarl.clean(german), europarl.clean(english)) for german, english in pairs)
    return TestSet(("de", "en"), test.pairs, test.gold, training, folder / "published")


def read_own() -> TestSet:
    gold = read_gold(*ALL_REGISTERS)
    training = (
        (space_marks(english), space_marks(spanish))
        for corpus in BOX_CORPORA
        for english, spanish in read_tab_separated(data_path(f"{corpus}/pairs.tsv.gz"))
    )
    pairs = [(pair.source.split(), pair.target.split()) for pair in gold]
    return TestSet(("en", "es"), pairs, [pair.alignment for pair in gold], training)


SETS: dict[str, Callable[[], TestSet]] = {"hansards": read_hansards, "rwth": read_rwth, "gold": read_own}


def row(name: str, test: TestSet, joined: Iterable[Alignment], *directions: Iterable[Alignment]) -> str:
    """Score both directions together and, where they are given, each alone; links are (source, target) in all."""
    cells = [f"{sightline.score(list(links), test.gold).aer.value:.1f}" for links in directions] or ["", ""]
    rate = sightline.score(list(joined), test.gold).aer
    return f"| {name} | {' | '.join(cells)} | {rate.value:.1f} [{rate.interval[0]:.1f}, {rate.interval[1]:.1f}] |"


# Statistical aligners


def aligner_rows(test: TestSet, aligners: dict[str, TwoWayAligner]) -> Iterator[str]:
    """Score the aligners, each at its best rule."""
    turned = [(target, source) for source, target in test.pairs]
    for kind, aligner in aligners.items():
        backward = [one.flipped() for one in aligner.backward.align(turned)]
        joined = {rule: list(aligner.align(test.pairs, rule)) for rule in RULES}
        yield best_row(f"`{kind}`", test, list(aligner.forward.align(test.pairs)), backward, joined)


def eflomal_row(test: TestSet, training: Sequence[Words]) -> Iterator[str]:
    try:
        both = list(align_with_eflomal([*training, *test.pairs]))[-len(test.pairs) :]
    except InputError as error:
        print(error, file=sys.stderr)
        return
    forward, backward = map(list, zip(*both, strict=True))
    joined = {rule: list(symmetrize_all(forward, backward, rule)) for rule in RULES}
    yield best_row("eflomal", test, forward, backward, joined)


def published_rows(test: TestSet) -> Iterator[str]:
    """Score alignments that others made and published, each at its best rule."""
    for folder in sorted(test.published.iterdir()) if test.published is not None else ():
        forward, reverse = (list(read_alignments(folder / f"test.deen.{end}")) for end in ("talp", "reverse.talp"))
        backward = [one.flipped() for one in reverse]
        joined = {rule: list(symmetrize_all(forward, backward, rule)) for rule in RULES}
        yield best_row(f"{folder.name}, published", test, forward, backward, joined)


def best_row(
    name: str,
    test: TestSet,
    forward: list[Alignment],
    backward: list[Alignment],
    joined: dict[str, list[Alignment]],
) -> str:
    rates = {rule: sightline.score(links, test.gold).aer.value for rule, links in joined.items()}
    best = min(rates, key=lambda rule: rates[rule])
    return row(f"{name} ({best})", test, joined[best], forward, backward)


# Models


class Translator:
    """A translation model and its other direction, on a test set."""

    def __init__(self, test: TestSet, folder: str, reverse: str | None) -> None:
        one, other = test.languages
        self.test = test
        self.sources, self.targets = ([" ".join(side) for side in sides] for sides in zip(*test.pairs, strict=True))
        if reverse is not None:
            self.model, self.other_way = sightline.load(folder), sightline.load(reverse)
            self.reverse = self.other_way
        else:
            self.model = sightline.load(folder, source_lang=one, target_lang=other)
            self.other_way, self.reverse = sightline.load(folder, source_lang=other, target_lang=one), None

    def join(self, **options: Any) -> list[Alignment]:
        return sightline.align(self.model, self.sources, self.targets, reverse=self.reverse, progress=False, **options)

    def row(self, name: str, **options: Any) -> str:
        """Score both directions and what joins them."""
        one_way = options | {"reverse": False, "progress": False}
        ahead = sightline.align(self.model, self.sources, self.targets, **one_way)
        back = sightline.align(self.other_way, self.targets, self.sources, **one_way)
        return row(name, self.test, self.join(**options), ahead, [links.flipped() for links in back])

    def adapter_rows(self, name: str, aligners: dict[str, TwoWayAligner]) -> Iterator[str]:
        """Score the adapter, by itself and together with aligners."""
        yield self.row(name)
        for kind in ("diagonal", "hmm"):
            yield row(f"{name} with `{kind}`", self.test, self.join(with_aligner=aligners[kind]))


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("set", choices=SETS)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--reverse")
    parser.add_argument("--guided")
    arguments = parser.parse_args()
    for line in rows(SETS[arguments.set](), arguments.model, arguments.reverse, arguments.guided):
        print(line, flush=True)


def rows(test: TestSet, folder: str | None, reverse: str | None, guided: str | None) -> Iterator[str]:
    """Yield the lines of the table."""
    one, other = test.languages
    yield f"| | {one}-{other} | {other}-{one} | joined |\n|---|---|---|---|"
    training = [(source.split(), target.split()) for source, target in test.training]
    bitext = build_bitext([*training, *test.pairs])
    aligners = {kind: train_aligner(bitext, kind) for kind in ("ibm1", "diagonal", "hmm")}
    yield from aligner_rows(test, aligners)
    if guided is not None:
        yield from Translator(test, guided, reverse).adapter_rows("guided adapter", aligners)
    if folder is not None:
        model = Translator(test, folder, reverse)
        if model.model.adapter is not None:
            yield from model.adapter_rows("adapter", aligners)
        for name, options in READINGS.items():
            yield model.row(name, **options)
    yield from eflomal_row(test, training)
    yield from published_rows(test)


if __name__ == "__main__":
    main()
