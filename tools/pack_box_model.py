"""Pack a trained run into the box: half precision, measured on held-out pairs, with its card.

    python tools/pack_box_model.py runs/tatoeba-en-es

The run is what `sightline train recipes/tatoeba-en-es.yaml` leaves. What goes into the package: the configuration, the
weights as float16, the tokenizer, how to read alignments off both directions (chosen without gold, on the dev pairs),
and the card, `README.md`. All figures are measured with the packed model. It replaces what was in the box only when
everything is measured and the whole is small enough.
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
from sightline.models.box import BOX_MODEL, box_folder
from sightline.models.loaded import LoadedModel
from sightline.provenance import commit
from sightline.scores import Score
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


def pack(run: Path, box: Path, name: str = BOX_MODEL, test_pairs: int = TEST_PAIRS) -> Path:
    """Pack a finished run into a box under a name; give the folder."""
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
        folder = Path(temporary) / name
        _write_half(sightline.load(run), folder)
        model = sightline.load(folder, dtype=torch.float32)
        _choose(model, corpora)
        quality = measure(model, corpora.test[:test_pairs])
        (folder / CARD).write_text(write_card(name, recipe, result, corpora, quality), encoding="utf-8")
        size = sum(file.stat().st_size for file in folder.iterdir())
        if size > MAX_BYTES:
            raise InputError(f"The packed model takes {size:,} bytes, and the box has room for {MAX_BYTES:,}.")
        target = box / name
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(folder, target)
    print(f"{target}: {size:,} bytes")
    return target


def _write_half(model: LoadedModel, folder: Path) -> None:
    """Save model and tokenizer, the weights as float16, the vocabulary without the spaces that make it readable."""
    model.module.half().save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    vocabulary = folder / "tokenizer.json"
    compact = json.dumps(_read_json(vocabulary), ensure_ascii=False, separators=(",", ":"))
    vocabulary.write_text(compact, encoding="utf-8")
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


def write_card(name: str, recipe: Recipe, result: dict[str, Any], corpora: Corpora, quality: Quality) -> str:
    """Write the card from what the run recorded and what was measured."""
    model, training = recipe.model, recipe.training
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in corpora.skipped.items())
    lines = [
        f"# {name}: English-Spanish translation, both ways",
        "",
        "The model in Sightline's box: `sightline.load()`. A source begins with the language to translate into, "
        "`>>es<<` or `>>en<<`, which Sightline puts there.",
        "",
        "## Figures",
        "",
        f"On {quality.pairs:,} held-out pairs, with a beam of {SEARCH['num_beams']}, in half precision as packed:",
        "",
        "| direction | score | value | signature |",
        "|---|---|---|---|",
        *(
            f"| {direction} | {score.name} | {score.value:.1f} | {_cell(score)} |"
            for direction, scores in quality.translation.items()
            for score in scores
        ),
        "",
        "Word alignments, both directions joined, on the package's gold alignments (docs/annotation.md), in percent:",
        "",
        "| register | AER | 95 % interval | signature |",
        "|---|---|---|---|",
        *(
            f"| {register} | {score.value:.1f} | {score.interval[0]:.1f} to {score.interval[1]:.1f} | {_cell(score)} |"
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
        f"- {result['step']:,} steps of {training.batch_tokens:,} tokens in {result['minutes']:.0f} minutes "
        f"({result['reason']}); weights: {result['weights']}; seed {recipe.seed}.",
        f"- Versions: {', '.join(f'{package} {number}' for package, number in result['versions'].items())}; "
        f"packed at commit {commit() or 'unknown'}.",
        "- Made by `sightline train recipes/tatoeba-en-es.yaml` and `python tools/pack_box_model.py`.",
        "",
        "## Limits",
        "",
        "It is small, and made to be looked into, not to be relied on. It has read short everyday sentences only: the "
        "figures above say nothing about long or specialised text, rare names or other varieties of either language. "
        "What its data say about people, and how they choose gender and form of address, it repeats.",
        "",
    ]
    return "\n".join(lines)


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
    parser.add_argument("--box", type=Path, default=box_folder(), help="where to put it; by default the package's own")
    arguments = parser.parse_args()
    try:
        pack(arguments.run, arguments.box)
    except InputError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
