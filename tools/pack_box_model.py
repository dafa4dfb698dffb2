"""Pack a trained run into the box: few bits, measured on held-out pairs, with its card.

    python tools/pack_box_model.py runs/en-es [--adapted FOLDER] [--calibrated RUN] [--bits 16]

The run is what `sightline train recipes/en-es.yaml` leaves. What goes into the package: the configuration, the weights
(8 bits each with a scale for each row, or float16), the tokenizer, how to recognise the language of a text, how to read
alignments off both directions (chosen without gold, on the dev pairs), the card, `README.md`; the alignment adapter
that `sightline adapt` trained for the run or for the packed model; and, in a folder of its own, the calibration that
was trained for the packed model. All figures are measured with what is packed. It replaces what was in the box only
when everything is measured and the whole is small enough.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from box_card import CREDITS, write_adapter_card, write_calibration_card, write_card
from box_quality import Quality, measure, measure_guess

import sightline
from sightline.errors import InputError
from sightline.models.box import BOX_MODEL, CALIBRATED_MODEL, box_folder
from sightline.models.loaded import LoadedModel
from sightline.models.packed import pack_folder
from sightline.models.saved_adapter import DESCRIPTION as ADAPTER
from sightline.models.saved_adapter import WEIGHTS as ADAPTER_WEIGHTS
from sightline.models.saved_calibration import attach_saved_calibration, save_calibration
from sightline.models.sealed_weights import read_weights, write_weights
from sightline.training.adapting import RESULT as ADAPTATION
from sightline.training.corpus import Corpora, read_corpora
from sightline.training.languages import learn_languages
from sightline.training.readouts import keep_readouts
from sightline.training.recipe import read_recipe

MAX_BYTES = 16_000_000
TEST_PAIRS = 2_000
CARD = "README.md"


def pack(
    run: Path,
    box: Path,
    calibrated: Path | None = None,
    adapted: Path | None = None,
    test_pairs: int = TEST_PAIRS,
    bits: int = 8,
) -> Path:
    """Pack a finished run, perhaps with its adapter and calibration, into a box; return the model's folder.

    Of each corpus of the run so many test pairs are translated. An adapter that lies in the run itself goes along too.
    """
    result = _read_json(run / "result.json")
    recipe = read_recipe(result["recipe"])
    if not recipe.data.bidirectional:
        raise InputError(f"{run} holds a model of one direction: the model in the box translates both ways.")
    corpora = read_corpora(recipe.data, run, recipe.seed)
    for name, pairs in corpora.tests.items():
        if len(pairs) < test_pairs:
            raise InputError(
                f"The recipe of {run} holds out {len(pairs)} pairs of {name} for test, and {test_pairs} are needed."
            )
    for corpus in recipe.data.training_corpora:
        if corpus.name.partition("-")[0] not in CREDITS:
            raise InputError(f"The card cannot credit {corpus.name}: write whom to thank into CREDITS, box_card.py.")
    tests = {name: pairs[:test_pairs] for name, pairs in corpora.tests.items()}
    with tempfile.TemporaryDirectory() as temporary:
        folder, twin = Path(temporary) / BOX_MODEL, Path(temporary) / CALIBRATED_MODEL
        trained = sightline.load(run)
        guess = trained.guess or learn_languages(corpora.train, recipe.data.languages)
        _write_model(trained, folder, bits)
        guess.save(folder)
        _carry_adapter(adapted or run, run, folder, needed=adapted is not None)
        measured = {BOX_MODEL: _measure_packed(folder, twin, corpora, tests, recipe.data.languages[0])}
        if calibrated is not None:
            _write_calibration(calibrated, folder, twin)
            measured[CALIBRATED_MODEL] = _measure_packed(folder, twin, corpora, tests, recipe.data.languages[0])
        card = write_card(run, recipe, result, corpora, measured, measure_guess(guess, tests), bits)
        adaptation = (adapted or run) / ADAPTATION
        if adaptation.is_file():
            card += write_adapter_card(_read_json(adaptation))
        if calibrated is not None:
            card += write_calibration_card(_read_json(calibrated / "result.json"))
        (folder / CARD).write_text(card, encoding="utf-8")
        for file in Path(temporary).rglob("*.*"):
            file.chmod(0o644)
        size = sum(file.stat().st_size for file in Path(temporary).rglob("*") if file.is_file())
        if size > MAX_BYTES:
            raise InputError(f"The packed model takes {size:,} bytes, and the box has room for {MAX_BYTES:,}.")
        for packed in (folder, twin):
            shutil.rmtree(box / packed.name, ignore_errors=True)
            if packed.exists():
                shutil.copytree(packed, box / packed.name)
    print(f"{box / BOX_MODEL}: {size:,} bytes")
    return box / BOX_MODEL


def _measure_packed(
    folder: Path, twin: Path, corpora: Corpora, tests: dict[str, list[tuple[str, str]]], language: str
) -> Quality:
    """Load what is packed so far, from a fixed language, choose how to read alignments off it, and measure it."""
    model = sightline.load(folder, dtype=torch.float32, source_lang=language)
    attach_saved_calibration(model.module, twin)
    has_adapter = (folder / ADAPTER).is_file()
    for choice in keep_readouts(model, corpora.dev):
        print(choice, flush=True)
    return measure(model, tests, has_adapter)


def _write_model(model: LoadedModel, folder: Path, bits: int) -> None:
    """Save model and tokenizer, the weights in few bits, the vocabulary without the spaces that make it readable."""
    (model.module.half() if bits == 16 else model.module.float()).save_pretrained(folder)
    if bits == 8:
        pack_folder(folder)
    model.tokenizer.save_pretrained(folder)
    vocabulary = folder / "tokenizer.json"
    compact = json.dumps(_read_json(vocabulary), ensure_ascii=False, separators=(",", ":"))
    vocabulary.write_text(compact, encoding="utf-8")


def _carry_adapter(adapted: Path, run: Path, folder: Path, needed: bool) -> None:
    """Copy an alignment adapter, as float16, if it was trained for the weights of the run or for the packed ones."""
    if not (adapted / ADAPTER).is_file():
        if needed:
            raise InputError(f"{adapted} holds no alignment adapter: give the folder that `sightline adapt` wrote.")
        return
    own = sightline.load(adapted, dtype=torch.float32).module.state_dict()
    if not any(_same(own, sightline.load(of, dtype=torch.float32)) for of in (run, folder)):
        raise InputError(f"The adapter in {adapted} was trained for other weights: train it for those of {run}.")
    shutil.copyfile(adapted / ADAPTER, folder / ADAPTER)
    weights, _ = read_weights(adapted / ADAPTER_WEIGHTS)
    write_weights({name: tensor.half() for name, tensor in weights.items()}, folder / ADAPTER_WEIGHTS)


def _write_calibration(run: Path, folder: Path, twin: Path) -> None:
    """Save the calibration of a run as float16, if it is one for the packed weights."""
    trained = sightline.load(run)
    calibration = trained.calibration
    if calibration is None:
        raise InputError(f"{run} holds a model without calibration.")
    if not _same(trained.module.state_dict(), sightline.load(folder, dtype=torch.float32)):
        raise InputError(f"The calibration in {run} was trained for other weights: pack the model, then train it.")
    twin.mkdir()
    save_calibration(calibration.half(), twin)


def _same(weights: dict[str, torch.Tensor], model: LoadedModel) -> bool:
    """Return whether weights are those of a model; they may have more, those of a calibration."""
    return all(
        name in weights and torch.equal(weights[name], tensor) for name, tensor in model.module.state_dict().items()
    )


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): give the folder of a finished training run."
        ) from error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a finished training run")
    parser.add_argument(
        "--adapted", type=Path, help="the folder that `sightline adapt` wrote; by default the run's own"
    )
    parser.add_argument("--calibrated", type=Path, help="the folder of a finished run that calibrates the packed model")
    parser.add_argument("--bits", type=int, choices=(8, 16), default=8, help="bits for each weight; 8 by default")
    parser.add_argument("--box", type=Path, default=box_folder(), help="where to put it; by default the package's own")
    arguments = parser.parse_args()
    try:
        pack(arguments.run, arguments.box, arguments.calibrated, arguments.adapted, bits=arguments.bits)
    except InputError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
