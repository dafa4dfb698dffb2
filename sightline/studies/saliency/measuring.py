"""What is measured on one model: error rates of all methods, entropies, polarity, and what an exchanged output changes.

Hard alignments are read piece by piece: each target piece is linked to its best source piece, end tokens left out, and
links of pieces become links of words. Entropies are of soft alignments, clamped at zero and normalised, over all pieces
and end tokens: the mean over a sentence's rows, then over sentences, as in the released code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from sightline.alignment.error_rate import score_alignments
from sightline.alignment.extraction import extract_alignment
from sightline.alignment.links import Alignment
from sightline.attribution import Attribution
from sightline.measures import entropy, total_variation
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.studies.saliency.published import ATTENTION, LI_SMOOTH, OURS_GRAD, OURS_RAW, OURS_SMOOTH
from sightline.studies.saliency.reading import METHODS, Readings, read_all, read_noise, read_plain
from sightline.studies.saliency.settings import Settings
from sightline.verbs.explaining import Pair

EXAMPLE_WORDS = range(7, 13)
"""The lengths of the sentence pair that is shown."""
SHOWN = (ATTENTION, OURS_GRAD, OURS_SMOOTH, LI_SMOOTH)
"""The methods that it is shown by."""


def encode_pairs(model: LoadedModel, sources: Sequence[list[str]], targets: Sequence[list[str]]) -> list[Example]:
    """Encode pairs of words, for forced decoding."""
    pairs = zip(sources, targets, strict=True)
    return [
        Pair(number, " ".join(source), " ".join(target)).encode(model)
        for number, (source, target) in enumerate(pairs, start=1)
    ]


def measure_methods(
    model: LoadedModel,
    examples: Sequence[Example],
    references: Sequence[Alignment],
    architecture: str,
    settings: Settings,
) -> dict[str, Any]:
    """Measure every method on all pairs, and on the first ones the entropy of attention and word saliency."""
    links: dict[str, list[Alignment]] = {method: [] for method in METHODS}
    entropies: dict[str, list[float]] = {ATTENTION: [], OURS_GRAD: [], OURS_SMOOTH: []}
    signs: list[dict[str, list[int]]] = []
    for number, readings in enumerate(read_all(model, iter(examples), architecture, settings)):
        for method, reading in readings.items():
            links[method].append(extract_alignment(reading, "pieces"))
        if number < settings.noisy_pairs:
            for method, found in entropies.items():
                found.append(measure_entropy(readings[method]))
        signs.append(count_by_sign(readings[LI_SMOOTH], readings[OURS_RAW], references[number]))
    return {
        "rates": {method: rate(found, references) for method, found in links.items()},
        "first rates": {
            method: rate(links[method][: settings.noisy_pairs], references[: settings.noisy_pairs])
            for method in entropies
        },
        "entropies": {method: _mean(found) for method, found in entropies.items()},
        "polarity": _sum_signs(signs),
        "links": {method: [write_links(one) for one in found] for method, found in links.items()},
    }


def measure_noise(
    model: LoadedModel, examples: Sequence[Example], references: Sequence[Alignment], settings: Settings, sigma: float
) -> dict[str, float]:
    """Measure word saliency on the first pairs with another noise: its entropy and error rate."""
    links, entropies = [], []
    for readings in read_noise(model, islice(examples, settings.noisy_pairs), settings, sigma):
        links.append(extract_alignment(readings[OURS_SMOOTH], "pieces"))
        entropies.append(measure_entropy(readings[OURS_SMOOTH]))
    return {"entropy": _mean(entropies), "rate": rate(links, references[: settings.noisy_pairs])}


def rate(links: Sequence[Alignment], references: Sequence[Alignment]) -> float:
    """Compute the alignment error rate."""
    return score_alignments(links, references).aer.value


def measure_entropy(reading: Attribution) -> float:
    """Return the mean entropy of a soft alignment's rows, in nats; rows without any positive score do not count."""
    rows = entropy(reading.normalized("clamp").scores)
    return float(np.nanmean(rows)) if np.isfinite(rows).any() else float("nan")


def count_by_sign(sizes: Attribution, signed: Attribution, reference: Alignment) -> dict[str, list[int]]:
    """Count the links that a measure without polarity gives, and the correct ones, by the sign of word saliency there.

    A link is of a target piece and the source piece of greatest size, end tokens left out; it is correct where it is
    possible.
    """
    by_size, by_sign = sizes.without_special(), signed.without_special()
    counts = {"positive": [0, 0], "negative": [0, 0]}
    for row, column in enumerate(by_size.scores.argmax(-1)) if by_size.scores.size else ():
        source, target = by_size.source.word_ids[column], by_size.target.word_ids[row]
        group = counts["positive" if by_sign.scores[row, column] > 0 else "negative"]
        group[0] += 1
        group[1] += (source, target) in reference.possible
    return counts


def _sum_signs(signs: Sequence[dict[str, list[int]]]) -> dict[str, list[int]]:
    return {sign: [sum(one[sign][place] for one in signs) for place in range(2)] for sign in ("positive", "negative")}


def measure_exchange(
    model: LoadedModel, examples: Sequence[Example], architecture: str, settings: Settings
) -> dict[str, Any]:
    """Exchange an output of each pair for another, and measure how far its row of attention and of saliency changes."""
    chosen = [exchanged for one in examples[: settings.exchanged] if (exchanged := exchange_output(one)) is not None]
    before = read_plain(model, (example.at([place]) for example, _, place in chosen), architecture)
    after = read_plain(model, (other.at([place]) for _, other, place in chosen), architecture)
    attention, saliency, moved = [], [], []
    for one, other in zip(before, after, strict=True):
        attention.append(float(np.abs(one[ATTENTION].scores - other[ATTENTION].scores).max()))
        rows = [readings[OURS_GRAD].normalized("clamp").scores[0] for readings in (one, other)]
        if all(row.any() for row in rows):
            saliency.append(float(total_variation(*rows)))
        moved.append(float(one[OURS_GRAD].scores[0].argmax() != other[OURS_GRAD].scores[0].argmax()))
    return {
        "pairs": len(chosen),
        "attention": max(attention, default=None),
        "saliency": _mean(saliency),
        "moved": _mean(moved),
    }


def exchange_output(example: Example) -> tuple[Example, Example, int] | None:
    """Exchange the last output that is no end token for an earlier, different one; None where there is none.

    The decoder reads the other output afterwards, as if it had given it.
    """
    real = np.flatnonzero(~example.label_tokens.special)
    if not len(real):
        return None
    place = int(real[-1])
    others = [example.labels[number] for number in real if example.labels[number] != example.labels[place]]
    if not others:
        return None
    labels, decoder_ids = list(example.labels), list(example.decoder_ids)
    labels[place] = others[0]
    following = example.label_rows[place] + 1
    if following < len(decoder_ids):
        decoder_ids[following] = others[0]
    return example, replace(example, labels=tuple(labels), decoder_ids=tuple(decoder_ids)), place


def show_example(
    model: LoadedModel,
    examples: Sequence[Example],
    references: Sequence[Alignment],
    architecture: str,
    settings: Settings,
) -> dict[str, Any]:
    """Keep the matrices of one pair, word by word, by method and by noise, with its gold links (figures 1 to 3)."""
    fitting = [
        number
        for number, one in enumerate(examples)
        if len(one.source.words) in EXAMPLE_WORDS and len(one.label_tokens.words) in EXAMPLE_WORDS
    ]
    chosen = fitting[0] if fitting else 0
    example = examples[chosen]
    (readings,) = read_all(model, iter([example]), architecture, settings)
    noisy = {}
    for sigma in settings.sigmas:
        noisy[name_sigma(sigma)] = _matrix(_at_sigma(model, example, readings, settings, sigma))
    return {
        "source": list(example.source.words),
        "target": list(example.label_tokens.words),
        "gold": sorted([target, source] for source, target in references[chosen].links),
        "methods": {method: _matrix(readings[method]) for method in SHOWN},
        "noise": noisy,
    }


def name_sigma(sigma: float) -> str:
    """Name a column of table 3."""
    return f"sigma {sigma:g}"


def _at_sigma(
    model: LoadedModel, example: Example, readings: Readings, settings: Settings, sigma: float
) -> Attribution:
    if sigma == 0:
        return readings[OURS_GRAD]
    (noisy,) = read_noise(model, iter([example]), settings, sigma)
    return noisy[OURS_SMOOTH]


def _matrix(reading: Attribution) -> list[list[float]]:
    """Return the normalised scores of words; negative ones are zero, as in the paper's figures."""
    return reading.without_special().words().normalized("clamp").scores.round(4).tolist()


def write_links(alignment: Alignment) -> str:
    """Write links as a line of text, to be kept."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def read_links(line: str) -> Alignment:
    """Read links that were kept."""
    pairs = (link.split("-") for link in line.split())
    return Alignment([(int(source), int(target)) for source, target in pairs])


def _mean(values: Iterable[float]) -> float:
    known = np.array([value for value in values if not np.isnan(value)], dtype=np.float64)
    return float(known.mean()) if len(known) else float("nan")
