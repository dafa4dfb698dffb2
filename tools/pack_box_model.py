"""Pack a trained run into the box: half precision, measured on held-out pairs, with its card.

    python tools/pack_box_model.py runs/tatoeba-en-es [--calibrated runs/tatoeba-en-es-calibrated]

The runs are what `sightline train recipes/tatoeba-en-es.yaml` leaves and, when that is packed, the same with
`recipes/tatoeba-en-es-calibrated.yaml`. What goes into the package: the configuration, the weights as float16, the
tokenizer, how to read alignments off both directions (chosen without gold, on the dev pairs), the card, `README.md`;
and, in a folder of its own, the calibration. All figures are measured with what is packed. It replaces what was in the
box only when everything is measured and the whole is small enough.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sacrebleu.metrics import BLEU, CHRF

import sightline
from sightline.data.gold import REGISTERS, read_gold
from sightline.errors import InputError
from sightline.models.box import BOX_MODEL, CALIBRATED_MODEL, box_folder
from sightline.models.loaded import LoadedModel
from sightline.models.saved_calibration import attach_saved_calibration, save_calibration
from sightline.provenance import commit
from sightline.scores import Score
from sightline.training.augmentation import MOST_JOINED
from sightline.training.corpus import Corpora, read_corpora
from sightline.training.recipe import Recipe, read_recipe

MAX_BYTES = 12_000_000
TEST_PAIRS = 2_000
CHOICE_PAIRS = 200
SEARCH = {"num_beams": 4, "length_penalty": 1.0}
CARD = "README.md"


@dataclass(frozen=True)
class Quality:
    """What a packed model does on held-out pairs and on the gold alignments of the package, by direction."""

    pairs: int
    translation: dict[str, list[Score]]
    alignment: dict[str, Score]


def pack(run: Path, box: Path, calibrated: Path | None = None, test_pairs: int = TEST_PAIRS) -> Path:
    """Pack a finished run, and perhaps its calibration, into a box; give the model's folder."""
    result = _read_json(run / "result.json")
    recipe = read_recipe(result["recipe"])
    if not recipe.data.bidirectional:
        raise InputError(f"{run} holds a model of one direction: the model in the box translates both ways.")
    corpora = read_corpora(recipe.data, run, recipe.seed)
    if len(corpora.test) < test_pairs:
        raise InputError(
            f"The recipe of {run} holds out {len(corpora.test)} pairs for test, and {test_pairs} are needed."
        )
    with tempfile.TemporaryDirectory() as temporary:
        folder, adapter = Path(temporary) / BOX_MODEL, Path(temporary) / CALIBRATED_MODEL
        _write_half(sightline.load(run), folder)
        measured = {BOX_MODEL: _measure_packed(folder, adapter, corpora, test_pairs)}
        if calibrated is not None:
            _write_calibration(calibrated, folder, adapter)
            measured[CALIBRATED_MODEL] = _measure_packed(folder, adapter, corpora, test_pairs)
        card = write_card(recipe, result, corpora, measured)
        if calibrated is not None:
            card += write_calibration_card(_read_json(calibrated / "result.json"))
        (folder / CARD).write_text(card, encoding="utf-8")
        size = sum(file.stat().st_size for file in Path(temporary).rglob("*") if file.is_file())
        if size > MAX_BYTES:
            raise InputError(f"The packed model takes {size:,} bytes, and the box has room for {MAX_BYTES:,}.")
        for packed in (folder, adapter):
            shutil.rmtree(box / packed.name, ignore_errors=True)
            if packed.exists():
                shutil.copytree(packed, box / packed.name)
    print(f"{box / BOX_MODEL}: {size:,} bytes")
    return box / BOX_MODEL


def _measure_packed(folder: Path, adapter: Path, corpora: Corpora, test_pairs: int) -> Quality:
    """Load what is packed so far, choose how to read alignments off it, and measure it."""
    model = sightline.load(folder, dtype=torch.float32)
    attach_saved_calibration(model.module, adapter)
    _choose(model, corpora)
    return measure(model, corpora.test[:test_pairs])


def _write_half(model: LoadedModel, folder: Path) -> None:
    """Save model and tokenizer, the weights as float16, the vocabulary without the spaces that make it readable."""
    model.module.half().save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    vocabulary = folder / "tokenizer.json"
    compact = json.dumps(_read_json(vocabulary), ensure_ascii=False, separators=(",", ":"))
    vocabulary.write_text(compact, encoding="utf-8")
    _let_everyone_read(folder)


def _write_calibration(run: Path, folder: Path, adapter: Path) -> None:
    """Save the calibration of a run as float16, if it is one for the packed weights."""
    trained, packed = sightline.load(run), sightline.load(folder, dtype=torch.float32).module.state_dict()
    calibration = trained.calibration
    if calibration is None:
        raise InputError(f"{run} holds a model without calibration.")
    own = trained.module.state_dict()
    if not all(torch.equal(own[name], tensor) for name, tensor in packed.items()):
        raise InputError(f"The calibration in {run} was trained for other weights: pack the model, then train it.")
    adapter.mkdir()
    save_calibration(calibration.half(), adapter)
    _let_everyone_read(adapter)


def _let_everyone_read(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(0o644)


def _choose(model: LoadedModel, corpora: Corpora) -> None:
    """Let both directions choose how to read alignments; the choices are remembered in the model's folder."""
    pairs = corpora.dev[:CHOICE_PAIRS]
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    assert model.other_way is not None
    print("en-es read by", sightline.explain_choice(model, sources, targets).forward)
    print("es-en read by", sightline.explain_choice(model.other_way, targets, sources).forward)


def measure(model: LoadedModel, pairs: list[tuple[str, str]]) -> Quality:
    """Translate held-out pairs both ways, and align the gold pairs of the package."""
    assert model.other_way is not None
    translation = {}
    for direction, source, target in ((model, 0, 1), (model.other_way, 1, 0)):
        name = f"{direction.prompt.source_lang}-{direction.prompt.target_lang}"
        found = sightline.translate(direction, [pair[source] for pair in pairs], **SEARCH)
        hypotheses, references = [one.text for one in found], [[pair[target] for pair in pairs]]
        translation[name] = [_score(metric, hypotheses, references) for metric in (BLEU(), CHRF())]
        print(name, *map(str, translation[name]))
    alignment = {}
    for registers in (*((register,) for register in REGISTERS), REGISTERS):
        gold = read_gold(*registers)
        found_links = sightline.align(model, [pair.source for pair in gold], [pair.target for pair in gold])
        scores = sightline.score(found_links, [pair.alignment for pair in gold])
        alignment[" and ".join(registers)] = scores.aer
        print(" and ".join(registers), scores.aer)
    return Quality(len(pairs), translation, alignment)


def _score(metric: Any, hypotheses: list[str], references: list[list[str]]) -> Score:
    value = metric.corpus_score(hypotheses, references)
    settings = dict(part.split(":", 1) for part in str(metric.get_signature()).split("|"))
    return Score(value.name, value.score, settings=settings, decimals=1)


def write_card(recipe: Recipe, result: dict[str, Any], corpora: Corpora, measured: dict[str, Quality]) -> str:
    """Write the card from what the run recorded and what was measured, by the name of the model."""
    model, training = recipe.model, recipe.training
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in corpora.skipped.items())
    lines = [
        f"# {BOX_MODEL}: English-Spanish translation, both ways",
        "",
        "The model in Sightline's box: `sightline.load()`. A source begins with the language to translate into, "
        "`>>es<<` or `>>en<<`, which Sightline puts there.",
        "",
        "## Figures",
        "",
        f"On {measured[BOX_MODEL].pairs:,} held-out pairs, with a beam of {SEARCH['num_beams']}, in half precision as "
        "packed:",
        "",
        "| model | direction | score | value | signature |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {direction} | {score.name} | {score.value:.1f} | {_cell(score)} |"
            for name, quality in measured.items()
            for direction, scores in quality.translation.items()
            for score in scores
        ),
        "",
        "Word alignments, both directions joined, on the package's gold alignments (docs/annotation.md), in percent:",
        "",
        "| model | register | AER | 95 % interval | signature |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {register} | {score.value:.1f} | {score.interval[0]:.1f} to {score.interval[1]:.1f} | "
            f"{_cell(score)} |"
            for name, quality in measured.items()
            for register, score in quality.alignment.items()
            if score.interval is not None
        ),
        "",
        "## Data",
        "",
        "Sentence pairs of [Tatoeba](https://tatoeba.org), written and translated by its contributors, whom we thank; "
        "licence CC BY 2.0 FR. The model is a work derived from them.",
        "",
        f"- {corpora.summary().split(';')[0]}; left out: {left_out or 'none'}.",
        "- Split by English sentence: no pair with a held-out sentence, in either language, was trained on; case and "
        "punctuation do not make a sentence another one.",
        "",
        "## Training",
        "",
        f"- Transformer of {result['parameters']:,} parameters: {model.encoder_layers} + {model.decoder_layers} "
        f"layers, width {model.width}, {model.heads} heads, feed-forward {model.feed_forward}; one embedding for both "
        f"languages and the output; {recipe.tokenizer.vocabulary:,} byte-pair pieces, cased.",
        f"- Of the training pairs, {recipe.data.joined:.0%} were joined into texts of two to {MOST_JOINED}, and in "
        f"{recipe.data.spaced:.0%} of the texts marks were set apart, as tokenised text has them.",
        f"- {result['step']:,} steps of {training.batch_tokens:,} tokens in {result['minutes']:.0f} minutes "
        f"({result['reason']}); weights: {result['weights']}; seed {recipe.seed}.",
        f"- Versions: {', '.join(f'{package} {number}' for package, number in result['versions'].items())}; "
        f"packed at commit {commit() or 'unknown'}.",
        "- Made by `sightline train recipes/tatoeba-en-es.yaml` and `python tools/pack_box_model.py`.",
        "",
        "## Limits",
        "",
        "It is small, and made to be looked into, not to be relied on. It has read everyday sentences only: the "
        "figures above say nothing about the translation of long or specialised text, of rare names, or of other "
        "varieties of either language. "
        "What its data say about people, and how they choose gender and form of address, it repeats.",
        "",
    ]
    return "\n".join(lines)


def write_calibration_card(result: dict[str, Any]) -> str:
    """Write what the calibrated twin is."""
    settings = result["recipe"]["calibration"]
    lines = [
        f"## The calibrated twin, {CALIBRATED_MODEL}",
        "",
        "The same weights with calibrated cross-attention (Lu et al. 2021), in an adapter of "
        f"{result['parameters']:,} parameters: mask and gate were trained, the model itself stayed as it is. "
        f"Fusion {settings['fusion']}, alpha {settings['alpha']:g}, weights renormalized by {settings['renormalize']}; "
        f"{result['step']:,} steps in {result['minutes']:.0f} minutes, by "
        "`sightline train recipes/tatoeba-en-es-calibrated.yaml`.",
        "",
    ]
    return "\n" + "\n".join(lines)


def _cell(score: Score) -> str:
    """Write a signature so that its bars do not end the cell of a table."""
    return "`" + score.signature.replace("|", "\\|") + "`"


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
    parser.add_argument("--calibrated", type=Path, help="the folder of a finished run that calibrates the packed model")
    parser.add_argument("--box", type=Path, default=box_folder(), help="where to put it; by default the package's own")
    arguments = parser.parse_args()
    try:
        pack(arguments.run, arguments.box, arguments.calibrated)
    except InputError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
