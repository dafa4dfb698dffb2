"""Word alignment on the Hansards (WPT 2003 test set): AER of every method, of `auto` and of statistical aligners.

`python benchmarks/hansard.py EN_FR FR_EN` takes the folders of the two models that `recipes/hansard-{en-fr,fr-en}.yaml`
train, and prints a Markdown table; without them, that of the aligners. Where a method has layers, readings and
extractions, gold chooses the best of them in each direction: what `auto`, which has no gold, is measured against.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.eflomal import align_with_eflomal
from sightline.alignment.error_rate import score_alignments
from sightline.alignment.extraction import extract_alignment
from sightline.alignment.links import Alignment
from sightline.alignment.statistical import train_aligner
from sightline.alignment.symmetrization import symmetrize_all
from sightline.data.corpora import data_path
from sightline.data.hansard import TestSet, read_test_set, read_training_pairs
from sightline.models.loaded import LoadedModel
from sightline.verbs.readout import Readout

RULES = ("grow-diag-strict", "intersection")
EXTRACTIONS = ("argmax", "argmax-words", "pieces")
METHODS = {
    "attention, by output": ("attention", {"layer": "all", "reading": "output"}),
    "attention, by input": ("attention", {"layer": "all", "reading": "input"}),
    "norms, by output": ("norms", {"layer": "all", "reading": "output"}),
    "norms, by input": ("norms", {"layer": "all", "reading": "input"}),
    "word saliency": ("word_saliency", {}),
    "word saliency, SmoothGrad": ("word_saliency", {"smoothgrad": 30}),
    "ALTI": ("alti", {}),
    "leave-one-out": ("erasure", {}),
}


class Direction:
    """A model, the test pairs in its order, and the gold links in it."""

    def __init__(self, model: LoadedModel, sources: list, targets: list, gold: list[Alignment]) -> None:
        self.model, self.sources, self.targets, self.gold = model, sources, targets, gold

    def align(self, readout: Readout) -> list[Alignment]:
        options = {"method": readout.method, **readout.settings}
        return sightline.align(self.model, self.sources, self.targets, progress=False, **options)

    def best_by_gold(self, method: str, settings: dict) -> tuple[float, str, list[Alignment]]:
        """Return the lowest AER over layers and extractions, the way to it, and its links."""
        attributions = sightline.explain(
            self.model, self.sources, self.targets, method=method, progress=False, **settings
        )
        layers: Sequence[int | None] = [None]
        if "layer" in attributions[0].axes:
            layers = range(attributions[0].scores.shape[attributions[0].axes.index("layer")])
        tried = []
        for layer, extraction in product(layers, EXTRACTIONS):
            matrices = attributions if layer is None else [one.layer(layer) for one in attributions]
            links = [extract_alignment(one, extraction) for one in matrices]
            name = extraction if layer is None else f"layer {layer}, {extraction}"
            tried.append((error(links, self.gold), name, links))
        return min(tried, key=lambda one: one[0])


def neural_rows(forward: Direction, backward: Direction) -> Iterator[str]:
    """Score the methods, and then what `auto` chooses with both models and with each alone."""
    for name, (method, settings) in METHODS.items():
        one, other = (side.best_by_gold(method, settings) for side in (forward, backward))
        how = one[1] if one[1] == other[1] else f"{one[1]} / {other[1]}"
        yield row(f"{name} ({how})", forward.gold, one[2], flipped(other[2]))
    pairs = forward.sources, forward.targets
    choice = sightline.explain_choice(forward.model, *pairs, reverse=backward.model)
    links = forward.align(choice.forward), backward.align(choice.backward)
    yield row(f"`auto`, links joined ({choice.forward} / {choice.backward})", forward.gold, links[0], flipped(links[1]))
    joined = [
        sightline.align(forward.model, *pairs, reverse=backward.model, symmetrize=rule, progress=False)
        for rule in RULES
    ]
    figures = " | ".join(f"{error(found, forward.gold):.1f}" for found in joined)
    yield f"| `auto` (the same, scores joined) | | | {figures} |"
    for side in (forward, backward):
        readout = sightline.explain_choice(side.model, side.sources, side.targets).forward
        errors = ["", ""]
        errors[side is backward] = f"{error(side.align(readout), side.gold):.1f}"
        yield f"| `auto`, one direction ({readout}) | {' | '.join(errors)} |" + " |" * len(RULES)


def aligner_rows(test: TestSet) -> Iterator[str]:
    """Score statistical aligners, trained on the same pairs with the test pairs, and without them (Ding's online)."""
    training = [(en.split(), fr.split()) for en, fr in read_training_pairs(data_path("hansard-en-fr"))]
    french_english = [(fr, en) for en, fr in test.pairs]
    for name, pairs in (("", [*training, *test.pairs]), (", online", training)):
        for kind in ("ibm1", "diagonal", "hmm"):
            aligner = train_aligner(build_bitext(pairs), kind)
            one, other = list(aligner.forward.align(test.pairs)), list(aligner.backward.align(french_english))
            joined = (aligner.align(test.pairs, rule) for rule in RULES)
            yield row(kind + name, test.gold, one, flipped(other), joined)
    one, other = zip(*list(align_with_eflomal([*training, *test.pairs]))[-len(test.pairs) :], strict=True)
    yield row("eflomal", test.gold, one, other)


def row(
    name: str,
    gold: Sequence[Alignment],
    one: Sequence[Alignment],
    other: Sequence[Alignment],
    joined: Iterable[Iterable[Alignment]] | None = None,
) -> str:
    """Score both directions, both as (English, French) links, and what joins them: by default, their links alone."""
    joined = joined or (symmetrize_all(one, other, rule) for rule in RULES)
    figures = [error(links, gold) for links in (one, other, *joined)]
    return f"| {name} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |"


def error(links: Iterable[Alignment], gold: Sequence[Alignment]) -> float:
    return score_alignments(links, gold).aer.value


def flipped(alignments: Sequence[Alignment]) -> list[Alignment]:
    return [one.flipped() for one in alignments]


def main() -> None:
    test = read_test_set(data_path("hansard-en-fr"))
    english, french = ([" ".join(words) for words in side] for side in zip(*test.pairs, strict=True))
    print("| | en-fr | fr-en | " + " | ".join(RULES) + " |\n|---|---|---|" + "---|" * len(RULES))
    if len(sys.argv) == 3:
        models = [sightline.load(folder) for folder in sys.argv[1:]]
        forward = Direction(models[0], english, french, list(test.gold))
        rows = neural_rows(forward, Direction(models[1], french, english, flipped(test.gold)))
    else:
        rows = aligner_rows(test)
    for line in rows:
        print(line, flush=True)


if __name__ == "__main__":
    main()
