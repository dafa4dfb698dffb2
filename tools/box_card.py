"""The card of a packed model, written from what its run recorded and what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from box_quality import SEARCH, Quality

from sightline.models.box import BOX_MODEL, CALIBRATED_MODEL
from sightline.provenance import commit
from sightline.scores import Score
from sightline.training.augmentation import MOST_JOINED
from sightline.training.corpus import Corpora
from sightline.training.recipe import Recipe

RECIPES = Path(__file__).parents[1] / "recipes"
CREDITS = {
    "tatoeba": "Sentence pairs of [Tatoeba](https://tatoeba.org), written and translated by its contributors, whom we "
    "thank; licence CC BY 2.0 FR. The model is a work derived from them.",
    "europarl": "Sentence pairs of the proceedings of the European Parliament ([Europarl]"
    "(https://www.statmt.org/europarl/), Koehn 2005, as aligned anew by Amponsah-Kaakyire et al. 2021). Source: "
    "European Parliament; reuse is authorised, provided that the source is acknowledged.",
    "generated": "Sentence pairs of a generated language, made by Sightline.",
}
"""Whom to thank for a corpus, by how its name begins."""
READ = {"tatoeba": "everyday sentences", "europarl": "speeches in parliament", "generated": "generated sentences"}
FORMS = {8: "8 bits a weight, with a scale for each row of a matrix", 16: "half precision"}


def write_card(
    run: Path,
    recipe: Recipe,
    result: Mapping[str, Any],
    corpora: Corpora,
    measured: Mapping[str, Quality],
    recognised: Mapping[str, tuple[int, int, int]],
    bits: int,
) -> str:
    """Write the card; `measured` is by the name of the model."""
    names = list(dict.fromkeys(corpus.name for corpus in recipe.data.training_corpora))
    beginnings = [name.partition("-")[0] for name in names]
    read = " and ".join(READ[beginning] for beginning in beginnings)
    lines = [
        f"# {BOX_MODEL}: English-Spanish translation, both ways",
        "",
        "The model in Sightline's box: `sightline.load()`. A source begins with the language to translate into, "
        "`>>es<<` or `>>en<<`, which Sightline puts there.",
        "",
        "## Figures",
        "",
        *_figures(measured, bits),
        "",
        *_recognition(recognised),
        "",
        "## Data",
        "",
        *(f"- {name}: {CREDITS[beginning]}" for name, beginning in zip(names, beginnings, strict=True)),
        f"- {corpora.summary()}.",
        "- Split by English sentence, out of each corpus: no pair with a held-out sentence, in either language, was "
        "trained on; case and punctuation do not make a sentence another one.",
        "",
        "## Training",
        "",
        *_training(run, recipe, result),
        "",
        "## Limits",
        "",
        f"It is small, and made to be looked into, not to be relied on. It has read {read} only: the "
        "figures above say nothing about other kinds of text, nor about other varieties of either language. "
        "What its data say about people, and how they choose gender and form of address, it repeats.",
        "",
    ]
    return "\n".join(lines)


def _figures(measured: Mapping[str, Quality], bits: int) -> list[str]:
    pairs = " and ".join(f"{count:,} of {corpus}" for corpus, count in measured[BOX_MODEL].pairs.items())
    return [
        f"On held-out pairs, {pairs}, with a beam of {SEARCH['num_beams']}, as packed ({FORMS[bits]}):",
        "",
        "| model | corpus | direction | score | value | signature |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {corpus} | {direction} | {score.name} | {score.value:.1f} | {_cell(score)} |"
            for name, quality in measured.items()
            for (corpus, direction), scores in quality.translation.items()
            for score in scores
        ),
        "",
        "Names and numbers: the share of held-out sentences with one, as many of each corpus, in whose translation all "
        "of them are unchanged, in percent:",
        "",
        "| model | direction | carried over | signature |",
        "|---|---|---|---|",
        *(
            f"| {name} | {direction} | {score.value:.1f} | {_cell(score)} |"
            for name, quality in measured.items()
            for direction, score in quality.names.items()
        ),
        "",
        "Word alignments, both directions joined, on the package's gold alignments (docs/annotation.md), in percent; "
        "`auto` reads attention or norms, chosen without gold, `adapter` is trained for it:",
        "",
        "| model | register | AER | 95 % interval | read by | signature |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {register} | {score.value:.1f} | {_interval(score)} | {reading} | {_cell(score)} |"
            for name, quality in measured.items()
            for (register, reading), score in quality.alignment.items()
        ),
    ]


def _recognition(recognised: Mapping[str, tuple[int, int, int]]) -> list[str]:
    return [
        "The language of a held-out sentence, recognised without being named (others go the default way):",
        "",
        "| length | sentences | recognised | taken for the other |",
        "|---|---|---|---|",
        *(
            f"| {length} | {count:,} | {right / count:.2%} | {wrong / count:.2%} |"
            for length, (count, right, wrong) in recognised.items()
            if count
        ),
    ]


def _training(run: Path, recipe: Recipe, result: Mapping[str, Any]) -> list[str]:
    model, training, data = recipe.model, recipe.training, recipe.data
    file = RECIPES / f"{run.name}.yaml"
    made_by = f"`sightline train recipes/{file.name}`" if file.is_file() else "`sightline train`"
    started = f", starting from a model that was trained before (`{training.start}`)" if training.start else ""
    return [
        f"- Transformer of {result['parameters']:,} parameters: {model.encoder_layers} + {model.decoder_layers} "
        f"layers, width {model.width}, {model.heads} heads, feed-forward {model.feed_forward}; one embedding for both "
        f"languages and the output; {recipe.tokenizer.vocabulary:,} byte-pair pieces, cased.",
        f"- Of the training pairs, {data.joined:.0%} were joined into texts of two to {MOST_JOINED}; in "
        f"{data.spaced:.0%} of the texts marks were set apart, as tokenised text has them; in {data.renamed:.0%} of "
        "the pairs with a name or number on both sides it was replaced by an invented one.",
        f"- {result['step']:,} steps of {training.batch_tokens:,} tokens in {result['minutes']:.0f} minutes "
        f"({result['reason']}){started}; weights: {result['weights']}; seed {recipe.seed}.",
        f"- Versions: {', '.join(f'{package} {number}' for package, number in result['versions'].items())}; "
        f"packed at commit {commit() or 'unknown'}.",
        f"- Made by {made_by} and `python tools/pack_box_model.py`.",
    ]


def write_adapter_card(adapted: Mapping[str, Any]) -> str:
    """Write how the alignment adapter was trained."""
    labels = "the model's own links"
    if adapted["guided"]:
        labels += " joined with those of a statistical aligner"
    lines = [
        "## The alignment adapter",
        "",
        f"Trained on the frozen model by `sightline adapt`, {len(adapted['rounds'])} rounds on {adapted['pairs']:,} "
        f"pairs of its corpora with their marks set apart, in {adapted['minutes']:.0f} minutes; the first labels are "
        f"{labels}, without gold (docs/alignment.md). Packed as float16.",
        "",
    ]
    return "\n".join(["", *lines])


def write_calibration_card(result: Mapping[str, Any]) -> str:
    """Write what the calibrated twin is."""
    settings = result["recipe"]["calibration"]
    lines = [
        f"## The calibrated twin, {CALIBRATED_MODEL}",
        "",
        "The same weights with calibrated cross-attention (Lu et al. 2021), in an adapter of "
        f"{result['parameters']:,} parameters: mask and gate were trained, the model itself stayed as it is. "
        f"Fusion {settings['fusion']}, alpha {settings['alpha']:g}, weights renormalized by {settings['renormalize']}; "
        f"{result['step']:,} steps in {result['minutes']:.0f} minutes.",
        "",
    ]
    return "\n" + "\n".join(lines)


def _interval(score: Score) -> str:
    low, high = score.interval or (score.value, score.value)
    return f"{low:.1f} to {high:.1f}"


def _cell(score: Score) -> str:
    """Write a signature so that its bars do not end the cell of a table."""
    return "`" + score.signature.replace("|", "\\|") + "`"
