"""Methods beside each other on gold alignments: what each one's links are worth, read as well as it can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.alignment.error_rate import score_alignments
from sightline.demo.material import GoldSet
from sightline.models.loaded import LoadedModel
from sightline.scores import Score
from sightline.verbs.aligning import align
from sightline.verbs.readout import Choice


@dataclass(frozen=True)
class Compared:
    """A method, how its links were read, and its error rate on each gold set."""

    method: str
    way: str
    error_rates: Mapping[str, Score]


def compare_methods(model: LoadedModel, gold: Sequence[GoldSet], smoothgrad: int) -> Iterator[Compared]:
    """Align the gold pairs by attention, by norms and by saliency over a number of SmoothGrad samples, and score each.

    The layer and reading of the first two are chosen without gold (`sightline.verbs.choosing`); saliency has none.
    A model that translates both ways is read both ways.
    """
    methods: dict[str, dict[str, Any]] = {
        "attention": {"method": "attention"},
        "norms": {"method": "norms"},
        f"saliency, {smoothgrad} SmoothGrad samples": {"method": "word_saliency", "smoothgrad": smoothgrad},
    }
    for name, options in methods.items():
        choices: list[Choice] = []
        sources = [source for one in gold for source in one.sources]
        targets = [target for one in gold for target in one.targets]
        found = align(model, sources, targets, **options, on_choice=choices.append, progress=False)
        rates = {}
        for one in gold:
            rates[one.name] = score_alignments(found[: len(one.sources)], one.alignments).aer
            found = found[len(one.sources) :]
        yield Compared(name, _describe(choices[0]), rates)


def _describe(choice: Choice) -> str:
    """Describe how each direction was read: by which layer, which head, which reading."""
    readouts = []
    for readout in filter(None, (choice.forward, choice.backward)):
        named = [f"{name} {readout.settings[name]}" for name in ("layer", "head") if name in readout.settings]
        named += [f"by {readout.settings['reading']}"] if "reading" in readout.settings else []
        readouts.append(", ".join(named))
    return " and back ".join(dict.fromkeys(readouts))
