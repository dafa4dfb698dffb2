"""How to read alignments off a model: chosen on the user's own pairs, without gold.

What can be chosen is the method (norms, attention), the layer, the head and the reading (which decoder step belongs to
an output); whatever the user names is fixed. A candidate links each word to its best counterpart, so that nobody gains
by linking less. With two directions

- every candidate of the one is compared with every candidate of the other: the share of all words whose best
  counterpart has them as its own best;
- the best few, layers and heads, are then judged as they will be used: the scores of two of them are joined
  (`sightline.alignment.joining`), and the share of words is taken again;
- a single head may look along the diagonal in both directions and agree with itself for that alone, so that heads are
  chosen only if their links agree about as well as those of whole layers with IBM Model 1, which knows no positions and
  is trained on the sample.

With one direction, links are compared (F1) with those of a statistical aligner, the diagonal model, trained on the
sample itself. Its links are poor, but they err otherwise than a wrong layer or reading does, and cost no pass.
(Leave-one-out, the model's own reaction, was tried: it belongs to the step that gives a word, and so prefers to read
by output where that is wrong.)

Kobayashi et al. 2020 choose the layer of the highest mean norm, read by input, which was right for their models of six
layers. It says nothing about the reading, on which more depends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from sightline.alignment.bitext import build_bitext
from sightline.alignment.extraction import ALIKE
from sightline.alignment.joining import geometric_mean, word_shares
from sightline.alignment.statistical import train_aligner
from sightline.attribution import Attribution
from sightline.methods.attention import LayerSettings, read_layers
from sightline.models.loaded import LoadedModel
from sightline.verbs.align_options import AUTO, LAYERED_METHODS, AlignOptions
from sightline.verbs.explaining import Pair, explain_pairs
from sightline.verbs.readout import Candidate, Choice, Facing, Readout, read_one_way, words_of
from sightline.verbs.saved_choice import recall

SAMPLE = 200
MOST_CELLS = 200_000
"""Word pairs in the sample: of long sentences it has fewer."""
ENOUGH_PAIRS = 20
"""Fewer are no reason to choose by: which of three single pairs came first would decide."""
DEFAULT_READING = {"layer": -1, "reading": "output"}
READINGS = ("input", "output")
SHORTLIST = 4
"""Number of layers, and of heads, of each direction that are tried joined."""
MOST_HEADS = 40
LEXICAL_SLACK = 0.9
"""What part of the layers' agreement with IBM Model 1 heads must reach: the rest may be chance."""
BEST_EFFORT = Readout("word_saliency", {"smoothgrad": 30})
BEST_EFFORT_PAIRS = 50
BOTH_DIRECTIONS, ALIGNER = "agreement of both directions", "agreement with a statistical aligner"

Shares = Float[np.ndarray, "_ _ _"]
"""The shares of one pair: candidates, rows, columns."""
Links = Bool[np.ndarray, "_ _"]
"""The links of one pair: target words, source words."""


def find_choice(
    model: LoadedModel,
    reverse: LoadedModel | None,
    options: AlignOptions,
    pairs: Sequence[Facing],
    *,
    choose_again: bool = False,
) -> Choice:
    """Return how to read alignments: as the user said, as remembered, as the pairs decide, or the default."""
    if not options.is_open:
        readout = Readout(options.method, dict(options.settings))
        return Choice(readout, None if reverse is None else readout)
    remembered = None if choose_again else recall(model, reverse, options)
    if remembered is not None:
        return remembered
    sample = take_sample(pairs)
    if len(sample) < ENOUGH_PAIRS:
        return _default_choice(model, reverse, options, len(sample))
    return _choose(model, reverse, options, sample)


def take_sample(pairs: Sequence[Facing]) -> list[Facing]:
    """Return the pairs to choose by."""
    sample = list(islice((pair for pair in pairs if pair.is_read), SAMPLE))
    cells = np.cumsum([np.prod([len(side) for side in words_of(one.pair)]) for one in sample])
    return [one for one, total in zip(sample, cells, strict=True) if total <= MOST_CELLS]


def _default_choice(model: LoadedModel, reverse: LoadedModel | None, options: AlignOptions, pairs: int) -> Choice:
    forward, backward = (
        None if one is None else Readout(_methods(one, options)[0], DEFAULT_READING | dict(options.settings))
        for one in (model, reverse)
    )
    assert forward is not None
    return Choice(forward, backward, f"the default, since choosing takes at least {ENOUGH_PAIRS} pairs, not {pairs}")


def _choose(model: LoadedModel, reverse: LoadedModel | None, options: AlignOptions, sample: Sequence[Facing]) -> Choice:
    forward = _Direction("forward", model, options, [one.ahead for one in sample if one.ahead is not None])
    if reverse is None:
        best, candidates = _choose_by_aligner(forward, options)
        choice = Choice(best, None, ALIGNER)
    else:
        backward = _Direction("backward", reverse, options, [one.back for one in sample if one.back is not None])
        readouts, candidates = _choose_by_both_directions(forward, backward, options)
        choice = Choice(*readouts, BOTH_DIRECTIONS)
    source = " ".join(words_of(sample[0].pair)[0])
    return replace(choice, pairs=len(sample), sample=source[:40], candidates=tuple(candidates))


# Candidates


class _Direction:
    """One direction: its candidates, and their shares of each pair of the sample."""

    def __init__(self, name: str, model: LoadedModel, options: AlignOptions, pairs: Sequence[Pair]) -> None:
        self.name, self.model, self.pairs = name, model, pairs
        self.readouts: list[Readout] = []
        streams = [self._try(method, options) for method in _methods(model, options)]
        self.shares: list[Shares] = [np.concatenate(parts) for parts in zip(*streams, strict=True)]

    def _try(self, method: str, options: AlignOptions) -> Iterator[Shares]:
        """Add the candidates of a method; yield their shares, pair by pair. One pass serves all of them."""
        fixed = dict(options.settings)
        count = len(read_layers(self.model, LayerSettings(kind=fixed.get("kind"))).layers)
        layers = [fixed["layer"]] if "layer" in fixed else list(range(count))
        by_head = method == "attention" and "head" not in fixed
        changes = {"layer": "all", "reading": "output"} | fixed | {"reading": "output"}
        changes |= {"head": "all"} if by_head else {}
        readings = [fixed["reading"]] if "reading" in fixed else READINGS
        for number, attribution in enumerate(explain_pairs(self.model, self.pairs, method, changes)):
            several, names = _candidates(attribution, layers, by_head)
            if number == 0:
                self.readouts += [
                    Readout(method, fixed | name | {"reading": reading}) for reading in readings for name in names
                ]
            parts = [several if reading == "output" else _a_step_later(several) for reading in readings]
            yield np.concatenate([word_shares(part).of_words for part in parts]).astype(np.float32)

    def named(self, scores: Float64[np.ndarray, " candidate"], joined: dict[int, float]) -> list[Candidate]:
        """Pair scores with the names of the candidates: all layers, and the best heads."""
        worth_telling = {*np.flatnonzero(~self.is_head).tolist(), *_shortlist(self, scores)}
        return [
            Candidate(self.name, self.readouts[number], float(scores[number]), joined.get(number))
            for number in sorted(worth_telling)
        ]

    @property
    def is_head(self) -> Bool[np.ndarray, " candidate"]:
        """Mark the candidates that are one head of several."""
        return np.array([isinstance(readout.settings.get("head"), int) for readout in self.readouts])


def _methods(model: LoadedModel, options: AlignOptions) -> list[str]:
    if options.method != AUTO:
        return [options.method]
    layers = read_layers(model, LayerSettings(kind=options.settings.get("kind"))).layers
    has_norms = all(layer.output is not None for layer in layers)
    return [name for name in LAYERED_METHODS if name != "norms" or has_norms]


def _candidates(
    attribution: Attribution, layers: Sequence[int | str], by_head: bool
) -> tuple[Attribution, list[dict[str, int | str]]]:
    """Put layers, their mean and heads on one leading axis, and name them."""
    *_, rows, columns = attribution.scores.shape
    scores = attribution.scores.reshape(len(layers), -1, rows, columns)
    heads = scores.shape[1]
    several = [*scores.mean(1)]
    names: list[dict[str, int | str]] = [{"layer": layer} for layer in layers]
    if len(layers) > 1:
        several.append(scores.mean((0, 1)))
        names.append({"layer": "mean"})
    if by_head and heads > 1:
        several += [*scores.reshape(-1, rows, columns)]
        names += [{"layer": layer, "head": head} for layer in layers for head in range(heads)]
    return replace(attribution, scores=np.stack(several), axes=("candidate",)), names


def _a_step_later(attribution: Attribution) -> Attribution:
    """Turn what was read by output into what is read by input: each position has the row of the next."""
    scores = np.zeros_like(attribution.scores)
    scores[..., :-1, :] = attribution.scores[..., 1:, :]
    return replace(attribution, scores=scores)


# One direction


def _choose_by_aligner(direction: _Direction, options: AlignOptions) -> tuple[Readout, list[Candidate]]:
    links = _aligner_links(direction.pairs, "diagonal")
    scores = _agreement_with(direction.shares, links)
    best = direction.readouts[int(scores.argmax())]
    if options.effort == "best":
        tried = _products(best)
        shares = _shares_of(direction.model, tried, direction.pairs[:BEST_EFFORT_PAIRS])
        best = tried[int(_agreement_with(shares, links[:BEST_EFFORT_PAIRS]).argmax())]
    return best, direction.named(scores, {})


def _agreement_with(shares: Sequence[Shares], links: Sequence[Links]) -> Float64[np.ndarray, " candidate"]:
    """Return F1 = 2 |A and B| / (|A| + |B|) of each candidate's links and those of an aligner."""
    shared = sizes = 0.0
    for several, marked in zip(shares, links, strict=True):
        best = _best(several)
        shared = shared + (marked[np.arange(best.shape[1]), best.clip(0)] & (best >= 0)).sum(1)
        sizes = sizes + (best >= 0).sum(1) + marked.sum()
    return 2 * np.asarray(shared, dtype=np.float64) / np.maximum(sizes, 1)


def _aligner_links(pairs: Sequence[Pair], kind: str) -> list[Links]:
    """Mark the links of a statistical aligner that is trained on the pairs, both ways, pair by pair."""
    words = [words_of(pair) for pair in pairs]
    aligned = []
    for alignment, (source, target) in zip(train_aligner(build_bitext(words), kind).align(words), words, strict=True):
        marked = np.zeros((len(target), len(source)), dtype=bool)
        for source_word, target_word in alignment:
            marked[target_word, source_word] = True
        aligned.append(marked)
    return aligned


# Two directions


class _Joined(NamedTuple):
    """How two candidates do together: the share of words whose bests are mutual, and F1 of these with an aligner."""

    mutual: Float64[np.ndarray, "forward backward"]
    lexical: Float64[np.ndarray, "forward backward"]


def _choose_by_both_directions(
    forward: _Direction, backward: _Direction, options: AlignOptions
) -> tuple[tuple[Readout, Readout], list[Candidate]]:
    links = _aligner_links(forward.pairs, "ibm1")
    kept = [_worth_comparing(one, marked) for one, marked in ((forward, links), (backward, [x.T for x in links]))]
    alone = _agreement([one[kept[0]] for one in forward.shares], [one[kept[1]] for one in backward.shares])
    scores = []
    for direction, numbers, best in ((forward, kept[0], alone.max(1)), (backward, kept[1], alone.max(0))):
        full = np.zeros(len(direction.readouts))
        full[numbers] = best
        scores.append(full)
    short = [_shortlist(one, score) for one, score in ((forward, scores[0]), (backward, scores[1]))]
    joined = _join_and_compare(
        [one[short[0]] for one in forward.shares], [one[short[1]] for one in backward.shares], links
    )
    heads = forward.is_head[short[0]][:, None] | backward.is_head[short[1]]
    mutual = _without_positional_heads(joined, heads)
    one, other = divmod(int(mutual.argmax()), len(short[1]))
    best = forward.readouts[short[0][one]], backward.readouts[short[1][other]]
    if options.effort == "best":
        best = _choose_with_best_effort(forward, backward, best)
    tables = [
        dict(zip(short[0], joined.mutual.max(1), strict=True)),
        dict(zip(short[1], joined.mutual.max(0), strict=True)),
    ]
    return best, forward.named(scores[0], tables[0]) + backward.named(scores[1], tables[1])


def _worth_comparing(direction: _Direction, links: Sequence[Links]) -> list[int]:
    """Return all layers, and of many heads those that agree best with an aligner."""
    lexical = _agreement_with(direction.shares, links)
    heads = np.flatnonzero(direction.is_head)
    best_heads = heads[np.argsort(-lexical[heads], kind="stable")[:MOST_HEADS]]
    return sorted([*np.flatnonzero(~direction.is_head).tolist(), *best_heads.tolist()])


def _shortlist(direction: _Direction, scores: Float64[np.ndarray, " candidate"]) -> list[int]:
    """Return the best layers and the best heads."""
    chosen = []
    for group in (~direction.is_head, direction.is_head):
        numbers = np.flatnonzero(group)
        chosen += numbers[np.argsort(-scores[numbers], kind="stable")[:SHORTLIST]].tolist()
    return chosen


def _without_positional_heads(joined: _Joined, heads: Bool[np.ndarray, "forward backward"]) -> np.ndarray:
    """Rule out heads that agree with each other, but far less than the best layers with IBM Model 1."""
    best_layers = np.unravel_index(np.where(heads, -1, joined.mutual).argmax(), heads.shape)
    return np.where(heads & (joined.lexical < LEXICAL_SLACK * joined.lexical[best_layers]), -1, joined.mutual)


def _choose_with_best_effort(
    forward: _Direction, backward: _Direction, best: tuple[Readout, Readout]
) -> tuple[Readout, Readout]:
    """Try SmoothGrad saliency too, alone and times what was best, on fewer pairs."""
    tried = [_products(readout) for readout in best]
    shares = [
        _shares_of(one.model, readouts, one.pairs[:BEST_EFFORT_PAIRS])
        for one, readouts in zip((forward, backward), tried, strict=True)
    ]
    nothing = [np.zeros(one.shape[1:], dtype=bool) for one in shares[0]]
    together = _join_and_compare(shares[0], shares[1], nothing).mutual.diagonal()
    number = int(together.argmax())
    return tried[0][number], tried[1][number]


def _products(best: Readout) -> list[Readout]:
    return [best, BEST_EFFORT, replace(best, times=BEST_EFFORT)]


def _shares_of(model: LoadedModel, readouts: Sequence[Readout], pairs: Sequence[Pair]) -> list[Shares]:
    streams = [read_one_way(model, readout, pairs) for readout in readouts]
    return [
        np.stack([geometric_mean([word_shares(part).of_words for part in parts]) for parts in several])
        for several in zip(*streams, strict=True)
    ]


def _agreement(forward: Sequence[Shares], backward: Sequence[Shares]) -> Float64[np.ndarray, "forward backward"]:
    """Return, for each two candidates, the share of all words whose best counterpart has them as its own best."""
    mutual: np.ndarray | float = 0.0
    words = 0
    for ahead, back in zip(forward, backward, strict=True):
        best, best_back = _best(ahead), _best(back)
        own = np.arange(best.shape[1])
        found = (best_back[:, best.clip(0)] == own) & (best >= 0)  # (backward, forward, target)
        mutual = mutual + found.sum(-1).T
        words += sum(ahead.shape[1:])
    return 2 * np.asarray(mutual, dtype=np.float64) / max(words, 1)


def _join_and_compare(forward: Sequence[Shares], backward: Sequence[Shares], links: Sequence[Links]) -> _Joined:
    """Join the scores of each two candidates, and take the words that are each other's best."""
    count = shared = sizes = 0.0
    words = 0
    for ahead, back, marked in zip(forward, backward, links, strict=True):
        joint = np.sqrt(ahead[:, None] * back.transpose(0, 2, 1))  # (forward, backward, target, source)
        flat = joint.reshape(-1, *joint.shape[2:])
        best, best_back = _best(flat), _best(flat.transpose(0, 2, 1))
        own = np.arange(best.shape[1])
        mutual = (np.take_along_axis(best_back, best.clip(0), 1) == own) & (best >= 0)
        count = count + mutual.sum(1)
        shared = shared + (marked[own, best.clip(0)] & mutual).sum(1)
        sizes = sizes + mutual.sum(1) + marked.sum()
        words += sum(marked.shape)
    shape = len(forward[0]), len(backward[0])
    return _Joined(
        (2 * np.asarray(count, dtype=np.float64) / max(words, 1)).reshape(shape),
        (2 * np.asarray(shared, dtype=np.float64) / np.maximum(sizes, 1)).reshape(shape),
    )


def _best(shares: Float[np.ndarray, "candidate row column"]) -> Int64[np.ndarray, "candidate row"]:
    """Return the best column of each row, -1 where all are alike."""
    best = shares.argmax(-1)
    highest, lowest = shares.max(-1), shares.min(-1)
    telling = (highest > 0) & ((highest - lowest > ALIKE * highest) | (shares.shape[-1] == 1))
    return np.where(telling, best, -1)
