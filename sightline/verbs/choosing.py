"""How to read alignments off a model: chosen on the user's own pairs, without gold.

What can be chosen is the method (norms, attention), the layer, the reading (which decoder step belongs to an output)
and the extraction; whatever the user names is fixed. The links that a candidate gives on a sample are compared with
links from elsewhere, F1 = 2 |A and B| / (|A| + |B|), and the candidate that agrees best is chosen:

- with a model of the reverse direction, each way to read the one is compared with each way to read the other;
- without, with the links of a statistical aligner (the diagonal model) trained on the sample itself. Its links are
  poor, but they err otherwise than a wrong layer or reading does, and cost no pass. (Leave-one-out, the model's own
  reaction, was tried: it belongs to the step that gives a word, and so prefers to read by output where that is wrong.)

Kobayashi et al. 2020 choose the layer of the highest mean norm, read by input, which was right for their models of six
layers. It says nothing about the reading, on which more depends: the norms of our models of two layers have an AER of
23 to 25 by input, from the first layer, and of 39 to 43 by output, from the second (docs/alignment.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from jaxtyping import Bool, Float64

from sightline.alignment.bitext import build_bitext
from sightline.alignment.statistical import train_aligner
from sightline.errors import InputError
from sightline.methods.attention import LayerSettings, read_layers
from sightline.methods.similarity import SIMILARITY
from sightline.models.inspection import AttentionLayer
from sightline.models.loaded import LoadedModel
from sightline.text.words import split_segments, split_words
from sightline.verbs.explaining import Pair, explain_pairs
from sightline.verbs.remembering import ENOUGH_PAIRS, remember
from sightline.verbs.ways import AUTO, LAYERED_METHODS, Asked, Candidate, Choice, Way

SAMPLE = 200
READINGS = ("input", "output")
# Extractions that look both ways would make any two directions agree, by leaving out what they do not agree about.
CHOSEN_EXTRACTIONS = ("argmax", "argmax-words", "pieces")

Agreement = Float64[np.ndarray, "way other"]


def choose(model: LoadedModel, reverse: LoadedModel | None, pairs: Sequence[Pair], asked: Asked) -> Choice:
    """Choose how to read alignments by a sample of pairs, and remember it."""
    if not asked.is_open:
        way = _default_way(asked)
        return Choice(way, None if reverse is None else way)
    forward = _Direction("forward", model, pairs, asked)
    backward = None if reverse is None else _Direction("backward", reverse, [pair.flipped() for pair in pairs], asked)
    if backward is not None and len(pairs) >= ENOUGH_PAIRS:
        choice = _choose_by_both_directions(forward, backward, asked)
    else:
        choice = _choose_by_aligner(forward, backward)
    if pairs:
        remember(model, reverse, asked, choice)
    return choice


def _default_way(asked: Asked) -> Way:
    extraction = "mutual-pieces" if asked.method == SIMILARITY else "pieces"
    return Way(asked.method, dict(asked.settings), asked.extraction or extraction, asked.threshold)


class _Direction:
    """One direction: its model, its pairs, encoded once for all that is tried, and the ways to read it."""

    def __init__(self, name: str, model: LoadedModel, pairs: Sequence[Pair], asked: Asked) -> None:
        if model.task not in ("translate", "continue"):
            raise InputError(
                f"{type(model.module).__name__} makes no target from a source: align with the method {SIMILARITY}, "
                "which any encoder allows, or take a translation model."
            )
        self.name, self.model = name, model
        self.pairs = [pair._replace(example=pair.encode(model)) for pair in pairs]
        self.ways = _ways(model, asked)

    def links(self, ways: Sequence[Way]) -> Iterator[Bool[np.ndarray, "way target source"]]:
        """Mark the links of each way, pair by pair."""
        passes: dict[tuple[str, str | None], list[int]] = {}  # one pass serves all layers
        for number, way in enumerate(ways):
            passes.setdefault((way.method, way.settings.get("reading")), []).append(number)
        streams = [
            explain_pairs(self.model, self.pairs, method, ways[numbers[0]].settings_of_all_layers)
            for (method, _), numbers in passes.items()
        ]
        for several in zip(*streams, strict=True):
            marked = np.zeros((len(ways), len(several[0].target.words), len(several[0].source.words)), dtype=bool)
            for attribution, numbers in zip(several, passes.values(), strict=True):
                for number in numbers:
                    for source, target in ways[number].extract_from_all_layers(attribution):
                        marked[number, target, source] = True
            yield marked

    def candidates(self, ways: Sequence[Way], scores: Float64[np.ndarray, " way"]) -> list[Candidate]:
        """Give each way its score."""
        return [Candidate(self.name, way, score) for way, score in zip(ways, scores.tolist(), strict=True)]


def _ways(model: LoadedModel, asked: Asked) -> list[Way]:
    """List the ways to read a model that the user left open; of equally good ones the first is chosen."""
    layers = _layers(model, asked)
    has_norms = all(layer.output is not None for layer in layers)
    methods = [name for name in LAYERED_METHODS if name != "norms" or has_norms]
    numbers: list[int | str] = [layer.index for layer in layers]
    fixed = dict(asked.settings)
    extraction = asked.extraction or CHOSEN_EXTRACTIONS[0]
    return [
        Way(method, fixed | {"layer": layer, "reading": reading}, extraction, asked.threshold)
        for method, reading, layer in product(
            methods if asked.method == AUTO else [asked.method],
            [fixed["reading"]] if "reading" in fixed else READINGS,
            [fixed["layer"]] if "layer" in fixed else numbers if len(numbers) == 1 else [*numbers, "mean"],
        )
    ]


def _layers(model: LoadedModel, asked: Asked) -> list[AttentionLayer]:
    return read_layers(model, LayerSettings(kind=asked.settings.get("kind"))).layers


def _choose_by_both_directions(forward: _Direction, backward: _Direction, asked: Asked) -> Choice:
    """Choose method, layer and reading first, then the extraction: all at once would take thrice as long."""
    best, candidates = _most_agreeing(forward, forward.ways, backward, backward.ways)
    if asked.extraction is None:
        variants = [[replace(way, extraction=name) for name in CHOSEN_EXTRACTIONS] for way in best]
        best, more = _most_agreeing(forward, variants[0], backward, variants[1])
        candidates += [one for one in more if all((one.direction, one.way) != (c.direction, c.way) for c in candidates)]
    return Choice(*best, "agreement of both directions", len(forward.pairs), tuple(candidates))


def _most_agreeing(
    forward: _Direction, forward_ways: Sequence[Way], backward: _Direction, backward_ways: Sequence[Way]
) -> tuple[tuple[Way, Way], list[Candidate]]:
    """Find the two ways that agree best; the score of a candidate is its agreement with its best partner."""
    flipped = (links.transpose(0, 2, 1) for links in backward.links(backward_ways))
    agreement = _agreement(forward.links(forward_ways), flipped)
    one, other = divmod(int(agreement.argmax()), len(backward_ways))
    candidates = forward.candidates(forward_ways, agreement.max(1)) + backward.candidates(
        backward_ways, agreement.max(0)
    )
    return (forward_ways[one], backward_ways[other]), candidates


def _choose_by_aligner(forward: _Direction, backward: _Direction | None) -> Choice:
    """Choose each direction by itself."""
    best = {}
    candidates: list[Candidate] = []
    for direction in filter(None, (forward, backward)):
        best[direction.name] = direction.ways[0]
        if len(direction.ways) > 1 and direction.pairs:
            scores = _agreement(direction.links(direction.ways), _aligner_links(direction.pairs))[:, 0]
            candidates += direction.candidates(direction.ways, scores)
            best[direction.name] = direction.ways[int(scores.argmax())]
    return Choice(
        best["forward"],
        best.get("backward"),
        "agreement with a statistical aligner" if candidates else "the user",
        len(forward.pairs),
        tuple(candidates),
    )


def _aligner_links(pairs: Sequence[Pair]) -> Iterator[Bool[np.ndarray, "1 target source"]]:
    """Mark the links of a diagonal model that is trained on the pairs, both ways, pair by pair."""
    words = [(split_segments(pair.source, "source")[0], split_words(pair.target or "", "target")) for pair in pairs]
    aligner = train_aligner(build_bitext(words))
    for alignment, (source, target) in zip(aligner.align(words), words, strict=True):
        marked = np.zeros((1, len(target), len(source)), dtype=bool)
        for source_word, target_word in alignment:
            marked[0, target_word, source_word] = True
        yield marked


def _agreement(links: Iterator[np.ndarray], others: Iterator[np.ndarray]) -> Agreement:
    """Give F1 = 2 |A and B| / (|A| + |B|) over all pairs, of each way and each other way."""
    shared: np.ndarray | float = 0.0
    sizes: np.ndarray | float = 0.0
    for one, other in zip(links, others, strict=True):
        left, right = (marked.reshape(len(marked), -1).astype(np.float64) for marked in (one, other))
        shared = shared + left @ right.T
        sizes = sizes + left.sum(1)[:, None] + right.sum(1)
    return 2 * np.asarray(shared) / np.maximum(sizes, 1)
