"""Training an alignment adapter for a frozen translation model, on parallel text without gold.

The first labels are the links that the model itself gives, read off its attention (`sightline.align`). The adapter
learns them, over the source and over the target at once, with a penalty where the two disagree; what it then finds
itself, both readings joined, are the labels of the next round. With a model of the other direction there are two
adapters, four readings, and labels that all of them give together. The round is kept whose two readings agree best on
pairs that were held out. Where a statistical aligner is given, the first labels are those of model and aligner
together.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64, Int64
from rich.console import Console
from torch import Tensor

from sightline.alignment.joining import geometric_mean
from sightline.alignment.links import Alignment
from sightline.alignment.statistical import TwoWayAligner
from sightline.alignment.symmetrization import DEFAULT_RULE, symmetrize_all
from sightline.attend.alignment import AdapterShape, AlignmentAdapter
from sightline.errors import InputError
from sightline.files import writing_folder
from sightline.json_files import write_json
from sightline.methods.adapter import posteriors
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.models.saved_adapter import REVERSE, save_adapters
from sightline.provenance import versions
from sightline.text.batches import batches_by_length
from sightline.text.words import Text, split_words
from sightline.training.batches import Ragged
from sightline.training.journal import duration
from sightline.verbs.aligning import align, find_aligner, load_reverse

FEWEST_PAIRS = 100
HELD_OUT = 0.05
MOST_HELD_OUT = 1000
BATCH_POSITIONS = 2048
LEARNING_RATE = 3e-3
FEWEST_UPDATES = 200
"""The number of updates of a round; of a larger text as many as it has batches."""
WARMUP = 50
LAST_RATE = 0.1
"""The learning rate falls linearly to this part of the highest."""
AGREEMENT = 1.0
"""The weight of the squared distance between the readings, against the cross-entropy of the labels."""
NULL_WEIGHT = 0.3
"""The weight of a word without a link: labels lack more links than they have too many."""
TINY = 1e-6
RESULT = "adaptation.json"

Links = Int64[np.ndarray, "_ 2"]
"""The links of one pair: source word, target word."""


@dataclass(frozen=True)
class Round:
    """One round: the mean loss, and how well the two readings agree on the held-out pairs (F1 of their links)."""

    loss: float
    agreement: float


@dataclass(frozen=True)
class Adapted:
    """The folder of a model with its adapter, and how it was trained."""

    folder: Path
    pairs: int
    skipped: int
    """Pairs with an empty side, or too long for the model."""
    rounds: tuple[Round, ...]
    chosen: int
    """The round that was kept, from 1."""
    minutes: float
    guided: bool
    """Whether a statistical aligner was joined with the model for the first labels."""


def adapt(
    model: Any,
    sources: Iterable[Text],
    targets: Iterable[Text],
    *,
    output: str | Path,
    reverse: Any = None,
    with_aligner: str | os.PathLike[str] | TwoWayAligner | None = None,
    rounds: int = 3,
    seed: int = 1,
    quiet: bool = False,
) -> Adapted:
    """Train an alignment adapter on parallel text, and write the model with it into a new folder.

    `sightline.align(folder, ...)` then reads alignments off the adapter; the model itself is not changed. `reverse` is
    a model of the other direction, which is adapted too and kept in the same folder; a model that translates both
    ways is its own. `with_aligner` joins the model with a statistical aligner for the first labels, as `align` does:
    one by its name, trained on these pairs, or a saved one, trained on more.
    """
    folder = Path(output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty: write the adapted model into a new folder.")
    if rounds < 1:
        raise InputError(f"rounds is {rounds}: at least one is needed.")
    with_aligner = find_aligner(with_aligner)
    console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
    forward = load(model)
    backward = load_reverse(forward, reverse)
    adapted, corpus, adapters = _learn(
        forward, backward, sources, targets, folder, rounds, seed, console.print, with_aligner
    )
    with writing_folder(folder) as place:
        _save(corpus, adapters, adapted, place, with_models=True)
    console.print(f"The model with its adapter is in {folder}; it took {duration(60 * adapted.minutes)}.")
    return adapted


def add_adapter(
    model: LoadedModel,
    pairs: Sequence[tuple[Text, Text]],
    folder: Path,
    *,
    rounds: int,
    seed: int,
    say: Callable[[str], None],
) -> Adapted:
    """Train an alignment adapter for the model in a folder, in all directions that it has, and put it there."""
    sources, targets = zip(*pairs, strict=True)
    adapted, corpus, adapters = _learn(model, model.other_way, sources, targets, folder, rounds, seed, say)
    _save(corpus, adapters, adapted, folder, with_models=False)
    return adapted


def _learn(
    forward: LoadedModel,
    backward: LoadedModel | None,
    sources: Iterable[Text],
    targets: Iterable[Text],
    folder: Path,
    rounds: int,
    seed: int,
    say: Callable[[str], None],
    with_aligner: str | TwoWayAligner | None = None,
) -> tuple[Adapted, _Corpus, list[AlignmentAdapter]]:
    """Train the adapters of all directions."""
    started = time.monotonic()
    for one in filter(None, (forward, backward)):
        if not (one.has_encoder_and_decoder and one.translates):
            raise InputError(f"{type(one.module).__name__} has no encoder and decoder: an adapter needs both.")
    corpus = _encode(forward, backward, sources, targets)
    say(f"{len(corpus):,} pairs, {corpus.skipped:,} left out. Reading the first links off the model ...")
    labels = _first_labels(forward, backward, corpus, with_aligner)
    trainer = _Trainer(corpus, labels, seed)
    result = trainer.run(rounds, say)
    minutes = (time.monotonic() - started) / 60
    rounds_done, guided = tuple(result.rounds), with_aligner is not None
    adapted = Adapted(folder, len(corpus), corpus.skipped, rounds_done, result.chosen, minutes, guided)
    return adapted, corpus, trainer.adapters


# The text


class _Side(NamedTuple):
    """A direction of the corpus: its model, its examples, and the word of each position on both sides (-1: none)."""

    model: LoadedModel
    examples: list[Example]
    source_words: Ragged
    target_words: Ragged
    is_reverse: bool


@dataclass(frozen=True)
class _Corpus:
    words: list[tuple[list[str], list[str]]]
    sides: list[_Side]
    skipped: int

    def __len__(self) -> int:
        return len(self.words)


def _encode(
    forward: LoadedModel, backward: LoadedModel | None, sources: Iterable[Text], targets: Iterable[Text]
) -> _Corpus:
    """Encode every pair in both directions; leave out what is empty or too long."""
    words: list[tuple[list[str], list[str]]] = []
    examples: list[list[Example]] = [[], []]
    skipped = 0
    for source, target in zip(sources, targets, strict=True):
        try:
            pair = list(split_words(source, "source")), list(split_words(target, "target"))
            encoded = [forward.encode(*pair)]
            if backward is not None:
                encoded.append(backward.encode(*pair[::-1]))
        except InputError:
            skipped += 1
            continue
        words.append(pair)
        for kept, example in zip(examples, encoded, strict=False):
            kept.append(example)
    if len(words) < FEWEST_PAIRS:
        raise InputError(
            f"There are {len(words)} usable sentence pairs, and an adapter needs at least {FEWEST_PAIRS} "
            "(thousands are better): give more parallel text."
        )
    sides = [
        _Side(model, kept, _word_numbers(e.source for e in kept), _word_numbers(e.target for e in kept), bool(number))
        for number, (model, kept) in enumerate(zip((forward, backward), examples, strict=True))
        if model is not None
    ]
    return _Corpus(words, sides, skipped)


def _word_numbers(sides: Iterable[Any]) -> Ragged:
    return Ragged.of([[-1 if word is None else word for word in tokens.word_ids] for tokens in sides])


def _first_labels(
    forward: LoadedModel,
    backward: LoadedModel | None,
    corpus: _Corpus,
    with_aligner: str | TwoWayAligner | None,
) -> list[Links]:
    sources, targets = zip(*corpus.words, strict=True)
    reverse = False if backward is None else backward
    alignments = align(
        forward, iter(sources), iter(targets), reverse=reverse, use_adapter=False, with_aligner=with_aligner
    )
    return [_as_array(alignment) for alignment in alignments]


def _as_array(alignment: Alignment) -> Links:
    return np.array(sorted(alignment), dtype=np.int64).reshape(-1, 2)


# Training


class _Views(NamedTuple):
    """All readings of a batch, word by word: rows of target words, rows of source words; NULL is the last column."""

    of_targets: list[Float[Tensor, "batch target source_or_null"]]
    of_sources: list[Float[Tensor, "batch source target_or_null"]]
    real_targets: Bool[Tensor, "batch target"]
    real_sources: Bool[Tensor, "batch source"]


class _Outcome(NamedTuple):
    rounds: list[Round]
    chosen: int


class _Trainer:
    """Rounds of training and labelling."""

    def __init__(self, corpus: _Corpus, labels: list[Links], seed: int) -> None:
        self.corpus = corpus
        self.labels = labels
        self.draw = np.random.default_rng(seed)
        torch.manual_seed(seed)
        self.lengths = [max(len(side.examples[i]) for side in corpus.sides) for i in range(len(corpus))]
        order = self.draw.permutation(len(corpus))
        held_out = min(MOST_HELD_OUT, max(1, round(HELD_OUT * len(corpus))))
        self.held_out, self.trained = order[:held_out], order[held_out:]
        self.adapters = [_build(side.model) for side in corpus.sides]

    def run(self, count: int, say: Callable[[str], None]) -> _Outcome:
        """Train this many rounds and keep the best one's weights."""
        rounds: list[Round] = []
        weights = []
        for number in range(1, count + 1):
            began = time.monotonic()
            loss = self._train()
            rounds.append(Round(loss, self._agreement()))
            weights.append([{k: v.clone() for k, v in adapter.state_dict().items()} for adapter in self.adapters])
            say(
                f"Round {number} of {count}: loss {loss:.3f}; on {len(self.held_out):,} held-out pairs the readings "
                f"agree to {100 * rounds[-1].agreement:.1f} %  ({duration(time.monotonic() - began)})"
            )
            if number < count:
                self._relabel()
        chosen = max(range(count), key=lambda i: rounds[i].agreement)
        for adapter, state in zip(self.adapters, weights[chosen], strict=True):
            adapter.load_state_dict(state)
            adapter.eval().requires_grad_(False)
        return _Outcome(rounds, chosen + 1)

    def _train(self) -> float:
        """Go through the pairs; return the mean loss."""
        parameters = [parameter for adapter in self.adapters for parameter in adapter.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE)
        batches = list(self._batches(self.trained, shuffled=True))
        while len(batches) < FEWEST_UPDATES:  # a small text is gone through several times
            batches += self._batches(self.trained, shuffled=True)
        total = 0.0
        for step, pairs in enumerate(batches):
            fall = 1 - (1 - LAST_RATE) * step / len(batches)
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * fall * min(1, (step + 1) / WARMUP)
            loss = self._loss(pairs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total / len(batches)

    def _loss(self, pairs: Sequence[int]) -> Tensor:
        views = self._views(pairs)
        links = torch.zeros(views.of_targets[0][..., :-1].shape, device=views.of_targets[0].device)
        for row, pair in zip(links, pairs, strict=True):
            source, target = self.labels[pair].T
            row[target, source] = 1
        losses = [_cross_entropy(view, links, views.real_targets) for view in views.of_targets]
        losses += [_cross_entropy(view, links.transpose(1, 2), views.real_sources) for view in views.of_sources]
        shares = [view[..., :-1] for view in views.of_targets]
        shares += [view[..., :-1].transpose(1, 2) for view in views.of_sources]
        mean = torch.stack(shares).mean(0)
        distance = sum((share - mean).square().sum() for share in shares) / views.real_targets.sum()
        return torch.stack(losses).sum() + AGREEMENT * 2 * distance

    @torch.no_grad()
    def _relabel(self) -> None:
        """Replace the labels by the links of all readings together."""
        for pairs in self._batches(self.trained):
            views = self._views(pairs)
            shares = [view[..., :-1] for view in views.of_targets]
            shares += [view[..., :-1].transpose(1, 2) for view in views.of_sources]
            joint = geometric_mean([share.double().cpu().numpy() for share in shares])
            forward, reverse = (self._alignments(pairs, joint, by_target) for by_target in (True, False))
            for pair, alignment in zip(pairs, symmetrize_all(forward, reverse, DEFAULT_RULE), strict=True):
                self.labels[pair] = _as_array(alignment)

    @torch.no_grad()
    def _agreement(self) -> float:
        """Compare the links read over the source with those read over the target: F1 on the held-out pairs."""
        shared = total = 0
        for pairs in self._batches(self.held_out):
            views = self._views(pairs)
            by_target = geometric_mean([view[..., :-1].double().cpu().numpy() for view in views.of_targets])
            by_source = geometric_mean(
                [view[..., :-1].transpose(1, 2).double().cpu().numpy() for view in views.of_sources]
            )
            one, other = self._alignments(pairs, by_target, True), self._alignments(pairs, by_source, False)
            for left, right in zip(one, other, strict=True):
                shared += len(left.links & right.links)
                total += len(left) + len(right)
        return 2 * shared / max(total, 1)

    def _alignments(
        self, pairs: Sequence[int], joint: Float64[np.ndarray, "batch target source"], by_target: bool
    ) -> Iterator[Alignment]:
        """Link each word of one side with the best of the other."""
        for pair, scores in zip(pairs, joint, strict=True):
            sources, targets = (len(side) for side in self.corpus.words[pair])
            scores = scores[:targets, :sources]
            best = scores.argmax(1 if by_target else 0).tolist()
            linked = scores.max(1 if by_target else 0) > 0
            chosen = ((word, other) if by_target else (other, word) for word, other in enumerate(best) if linked[word])
            yield Alignment([(source, target) for target, source in chosen], (), sources, targets)

    def _views(self, pairs: Sequence[int]) -> _Views:
        """Run the models on some pairs, and merge what the adapters say to words."""
        views = _Views([], [], *self._real_words(pairs))
        for side, adapter in zip(self.corpus.sides, self.adapters, strict=True):
            with side.model.evaluating():
                batch = side.model.batch([side.examples[i] for i in pairs])
                ahead, back = posteriors(side.model, batch, adapter)
            numbers = np.asarray(pairs)
            columns, rows = (
                _one_hot(torch.from_numpy(words.padded(numbers, -1)).to(batch.device), len(real[0]))
                for words, real in (
                    (side.source_words, views.real_targets if side.is_reverse else views.real_sources),
                    (side.target_words, views.real_sources if side.is_reverse else views.real_targets),
                )
            )
            of_rows = _merge(ahead, rows, columns[:, : ahead.shape[-1] - 1])
            of_columns = _merge(back, columns[:, : back.shape[1]], rows)
            views.of_targets.append(of_columns if side.is_reverse else of_rows)
            views.of_sources.append(of_rows if side.is_reverse else of_columns)
        return views

    def _real_words(self, pairs: Sequence[int]) -> tuple[Tensor, Tensor]:
        device = self.corpus.sides[0].model.device
        counts = torch.tensor([[len(side) for side in self.corpus.words[i]] for i in pairs], device=device)
        sources, targets = (torch.arange(int(n.max()), device=device) < n[:, None] for n in counts.T)
        return targets, sources

    def _batches(self, pairs: Int64[np.ndarray, " pair"], shuffled: bool = False) -> Iterator[list[int]]:
        """Cut pairs into batches of like length, in random order if asked for."""
        pairs = self.draw.permutation(pairs) if shuffled else pairs
        groups = batches_by_length([self.lengths[i] for i in pairs], lambda _: BATCH_POSITIONS, BATCH_POSITIONS)
        for number in self.draw.permutation(len(groups)) if shuffled else range(len(groups)):
            yield [int(pairs[i]) for i in groups[number]]


def _build(model: LoadedModel) -> AlignmentAdapter:
    """Build an adapter with random weights that fits a model."""
    with model.evaluating(), torch.no_grad():
        states = model.states_of_all_layers(model.probe())
    encoder, decoder = (tuple(layer.shape[-1] for layer in side) for side in states)
    return AlignmentAdapter(AdapterShape(encoder, decoder)).to(model.device)


def _one_hot(words: Tensor, count: int) -> Float[Tensor, "batch position word"]:
    """Mark each position's word; a special position has none."""
    return F.one_hot(words.clamp(min=0), count) * (words >= 0)[..., None].float()


def _merge(
    posterior: Float[Tensor, "batch row column_or_null"],
    rows: Float[Tensor, "batch row row_word"],
    columns: Float[Tensor, "batch column column_word"],
) -> Float[Tensor, "batch row_word column_word_or_null"]:
    """Sum over the pieces of a column's word, and average over those of a row's."""
    merged = torch.cat([posterior[..., :-1] @ columns, posterior[..., -1:]], -1)
    return (rows / rows.sum(1, keepdim=True).clamp(min=1)).transpose(1, 2) @ merged


def _cross_entropy(
    view: Float[Tensor, "batch row column_or_null"], links: Float[Tensor, "batch row column"], real: Tensor
) -> Tensor:
    """Average over words: minus the mean log-probability of a word's links; of NULL where it has none."""
    counts = links.sum(-1)
    linked = (links * (view[..., :-1] + TINY).log()).sum(-1) / counts.clamp(min=1)
    unlinked = NULL_WEIGHT * (view[..., -1] + TINY).log()
    return -(torch.where(counts > 0, linked, unlinked) * real).sum() / real.sum()


# The folder


def _save(
    corpus: _Corpus, adapters: Sequence[AlignmentAdapter], adapted: Adapted, folder: Path, *, with_models: bool
) -> None:
    """Write adapters; a reverse that is another model goes into a folder of its own inside it."""
    by_folder: dict[Path, dict[str, AlignmentAdapter]] = {}
    for side, adapter in zip(corpus.sides, adapters, strict=True):
        is_another = side.model.module is not corpus.sides[0].model.module
        place = folder / REVERSE if is_another else folder
        if with_models and place not in by_folder:
            side.model.save(place)
        by_folder.setdefault(place, {})[side.model.direction] = adapter
    for place, by_direction in by_folder.items():
        save_adapters(by_direction, place)
    about = dataclasses.asdict(adapted) | {"versions": versions()}
    del about["folder"]
    write_json(folder / RESULT, about)
