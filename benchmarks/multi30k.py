"""Multi30k German to English: the three architectures, and calibrated attention against the same Transformer without.

`python benchmarks/multi30k.py TRANSFORMER RUN ...` takes the folders that `recipes/multi30k-*.yaml` train, the baseline
first, and prints two Markdown tables: loss, and BLEU on the 1,014 validation sentences with a paired bootstrap test
against the baseline; then what calibration does to each layer's attention (`measure_calibration`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

import sightline
from sightline.alignment.parallel import read_pairs
from sightline.data.corpora import data_path
from sightline.measures import measure_calibration
from sightline.models.loaded import LoadedModel

EXPLAINED = 200
"""The pairs, the first of the validation set, on which attention is measured."""


def score_rows(
    folders: Sequence[Path], models: Sequence[LoadedModel], sources: list[str], references: list[str]
) -> Iterator[str]:
    """Translate with every model, and compare each with the first."""
    systems = []
    for folder, model in zip(folders, models, strict=True):
        options = json.loads((folder / "result.json").read_text())["recipe"]["evaluation"]
        generation = {"num_beams": options["beam"], "length_penalty": options["length_penalty"]}
        systems.append(
            (folder.name, [one.text for one in sightline.translate(model, sources, progress=False, **generation)])
        )
    # `force`: the text is tokenised, references and translations alike, and need not be told so.
    signatures, found = PairedTest(systems, {"BLEU": BLEU(force=True)}, [references], test_type="bs")()
    yield "| run | parameters | minutes | loss | accuracy | BLEU | p |\n|---|---|---|---|---|---|---|"
    for folder, figure in zip(folders, found["BLEU"], strict=True):
        result = json.loads((folder / "result.json").read_text())
        dev, p_value = result["dev"], figure.p_value
        yield (
            f"| {folder.name} | {result['parameters']:,} | {result['minutes']:.0f} | {dev['loss']:.3f} "
            f"| {100 * dev['accuracy']:.1f} | {figure.score:.1f} ± {figure.ci:.1f} "
            f"| {'' if p_value is None else f'{p_value:.3f}'} |"
        )
    yield f"\n{signatures['BLEU']}\n"


def calibration_rows(
    folders: Sequence[Path], models: Sequence[LoadedModel], sources: list[str], targets: list[str]
) -> Iterator[str]:
    """Measure what calibration does, layer by layer, from the lowest."""
    yield "| run | divergence | entropy change | mean mask | tau of weights | tau of masks |\n|---|---|---|---|---|---|"
    for folder, model in zip(folders, models, strict=True):
        if model.calibration is None:
            continue
        original, calibrated, masks, importance = (
            sightline.explain(model, sources, targets, progress=False, **options)
            for options in (
                {"method": "attention", "head": "all", "original": True},
                {"method": "attention", "head": "all"},
                {"method": "perturbation_mask"},
                {"method": "hidden_gradient"},
            )
        )
        figures = measure_calibration(original, calibrated, masks, importance)
        layers = (
            " / ".join(f"{value:.3f}" for value in values)
            for values in (
                figures.divergence,
                figures.entropy_change,
                figures.mask,
                figures.tau_of_weights,
                figures.tau_of_masks,
            )
        )
        yield f"| {folder.name} | {' | '.join(layers)} |"


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]]
    if not folders:
        sys.exit(__doc__)
    models = [sightline.load(folder) for folder in folders]
    pairs = read_pairs(*(data_path(f"multi30k/val.{language}.gz") for language in ("de", "en")))
    german, english = (list(side) for side in zip(*pairs, strict=True))
    for line in score_rows(folders, models, german, english):
        print(line, flush=True)
    for line in calibration_rows(folders, models, german[:EXPLAINED], english[:EXPLAINED]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
