"""How faithful an attribution is to the model: what happens to an output when the words it names are taken away.

For every output (a label, or a word of a translation) the source words are ranked by a method's scores, and the k
highest are r_k. With p(y | x) the probability of the output after its true prefix (DeYoung et al. 2020, eq. 1 and 2):

    comprehensiveness   mean over k of p(y | x) - p(y | x without r_k)    high: without those words the output is lost
    sufficiency         mean over k of p(y | x) - p(y | r_k)              low: those words alone are enough
    correlation         Kendall's tau-b of |scores| with leave-one-out, |p(y | x) - p(y | x without x_i)|

where k is 1%, 5%, 10%, 20% and 50% of the words, rounded up: the area over the perturbation curve (AOPC). A word is
taken away by deleting it; special tokens stay. The probability of a word of several pieces is that of all of them.
The same deletions serve all methods that are compared, and each is run once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from sightline.errors import InputError, check_names
from sightline.measures.correlation import kendall_tau
from sightline.measures.rows import Summary, summarize
from sightline.methods import METHODS, RANDOM, find_method, resolved
from sightline.methods.scored import to_attributions
from sightline.models.budget import positions_that_fit
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.text.words import Source, Text

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)
MEASURES = ("comprehensiveness", "sufficiency", "correlation")


@dataclass(frozen=True)
class Faithfulness:
    """How faithful a method is: one value for every output, NaN where it is undefined."""

    method: str
    comprehensiveness: Float[np.ndarray, " output"]
    sufficiency: Float[np.ndarray, " output"]
    correlation: Float[np.ndarray, " output"]

    def summary(self) -> dict[str, Summary]:
        """Return mean and deviation of each measure, and how many outputs have it and have not."""
        return {name: summarize(getattr(self, name)) for name in MEASURES}

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python data, ready for JSON; what is undefined everywhere is None."""
        return to_plain(self.method, self.summary())


def to_plain(method: str, summaries: Mapping[str, Summary]) -> dict[str, Any]:
    """Return summaries of a method's measures as plain data."""
    measures = {name: summary._asdict() for name, summary in summaries.items()}
    for measure in measures.values():
        measure |= {name: None for name, value in measure.items() if math.isnan(value)}
    return {"method": method} | measures


def summarize_texts(
    texts: Iterable[Mapping[str, Sequence[Sequence[float]]]], methods: Sequence[str]
) -> dict[str, dict[str, Summary]]:
    """Summarise the measures of many texts, each as `measure_text` returned it, without holding them.

    Mean and deviation are brought up to date with each value (Welford 1962).
    """
    found = {}
    running = {method: np.zeros((len(MEASURES), 4)) for method in methods}  # defined, mean, squares, undefined
    for text in texts:
        for method, outputs in text.items():
            for output in outputs:
                for state, value in zip(running[method], output, strict=True):
                    _take_in(state, value)
    for method, states in running.items():
        found[method] = {
            name: Summary(
                state[1] if state[0] else math.nan,
                math.sqrt(state[2] / state[0]) if state[0] else math.nan,
                int(state[0]),
                int(state[3]),
            )
            for name, state in zip(MEASURES, states.tolist(), strict=True)
        }
    return found


def _take_in(state: Float[np.ndarray, " 4"], value: float) -> None:
    if math.isnan(value):
        state[3] += 1
        return
    state[0] += 1
    step = value - state[1]
    state[1] += step / state[0]
    state[2] += step * (value - state[1])


def measure_faithfulness(
    model: Any,
    sources: Sequence[Source],
    targets: Sequence[Text] | None = None,
    *,
    methods: Sequence[str] = ("attention", "gradient", "erasure"),
    seed: int = 0,
) -> list[Faithfulness]:
    """Compare attribution methods by what deleting words does to the outputs of a classifier or a translation model.

    Without targets the model gives its own. The method `random` ranks words by chance.
    """
    loaded = load(model)
    check_measurable(loaded, methods)
    if targets is not None and len(sources) != len(targets):
        raise InputError(f"There are {len(sources)} sources and {len(targets)} targets: give as many of each.")
    values: dict[str, list[Measures]] = {method: [] for method in methods}
    for number, source in enumerate(sources, start=1):
        target = None if targets is None else targets[number - 1]
        for method, rows in measure_text(loaded, source, target, methods, number=number, seed=seed).items():
            values[method] += rows
    return [Faithfulness(method, *np.array(rows, dtype=float).reshape(-1, 3).T) for method, rows in values.items()]


def check_measurable(model: LoadedModel, methods: Sequence[str]) -> None:
    """Refuse models and methods that faithfulness is not measured of."""
    if not (model.translates or model.classifies):
        raise InputError(
            f"Faithfulness is measured on translation models and classifiers, not on {model.task!r} models."
        )
    check_names("method", methods, (*METHODS, RANDOM))


Measures = tuple[float, float, float]
"""Comprehensiveness, sufficiency and correlation of one output."""


def measure_text(
    model: LoadedModel, source: Source, target: Text | None, methods: Sequence[str], *, number: int = 1, seed: int = 0
) -> dict[str, list[Measures]]:
    """Measure methods on one text, by its number in the input: for each method, its measures of every output."""
    rng = np.random.default_rng([seed, number])
    with model.evaluating():
        example = model.facing(source, target).encode(source, target, name=f"source {number}")
        if not example.labels:
            example = model.with_output(example, model.answer([example])[0])
        scores = {method: _word_scores(model, example, method, rng) for method in methods}
        deletions = _Deletions(model, example)
        deletions.run({chosen for matrix in scores.values() for chosen in _needed(matrix)})
        return {method: _measure(matrix, deletions) for method, matrix in scores.items()}


def _word_scores(
    model: LoadedModel, example: Example, method: str, rng: np.random.Generator
) -> Float[np.ndarray, "target source"]:
    """Return a method's scores from source words to target words; a label is one word."""
    source_words = [word for word in dict.fromkeys(example.source.word_ids) if word is not None]
    target_words = [word for word in dict.fromkeys(example.label_tokens.word_ids) if word is not None]
    if method == RANDOM:
        return rng.random((len(target_words), len(source_words)))
    chosen = find_method(method)
    settings = chosen.settings(method, {})
    batch = model.batch([example])
    (found,) = to_attributions(model, batch, chosen.run(model, batch, settings), method, resolved(settings))
    if found.target.words != example.label_tokens.words or not len(found.source):
        raise InputError(f"The method {method} does not say which source words each output used: compare others.")
    words = found.flat().without_prefix().words().without_special()
    scores = np.full((len(target_words), len(source_words)), np.nan)
    rows = [target_words.index(word) for word in words.target.word_ids if word is not None]
    columns = [source_words.index(word) for word in words.source.word_ids if word is not None]
    scores[np.ix_(rows, columns)] = words.scores
    return scores


class _Deletions:
    """The probabilities of an example's target words without some of its source words."""

    def __init__(self, model: LoadedModel, example: Example) -> None:
        self.model = model
        self.example = example
        self.words = [word for word in dict.fromkeys(example.source.word_ids) if word is not None]
        self.found: dict[frozenset[int], Float[np.ndarray, " target"] | None] = {}

    def __getitem__(self, deleted: Iterable[int]) -> Float[np.ndarray, " target"] | None:
        """Return the probabilities without the words with these numbers; None if nothing would be left."""
        return self.found[frozenset(deleted)]

    @torch.no_grad()
    def run(self, wanted: set[frozenset[int]]) -> None:
        """Run the model without each of these sets of words, and as it is."""
        wanted = {frozenset(), *wanted, *(frozenset([word]) for word in range(len(self.words)))}
        variants = {deleted: self._without(deleted) for deleted in wanted}
        self.found = dict.fromkeys(variants)
        possible = [(deleted, variant) for deleted, variant in variants.items() if variant is not None]
        possible.sort(key=lambda pair: len(pair[1]))
        at_a_time = max(1, positions_that_fit(self.model, len(self.example)) // len(self.example))
        for start in range(0, len(possible), at_a_time):
            chunk = possible[start : start + at_a_time]
            log_probs = self.model.log_probs(self.model.batch([variant for _, variant in chunk])).double().cpu().numpy()
            for (deleted, _), row in zip(chunk, log_probs, strict=True):
                self.found[deleted] = self._by_word(row)

    def _without(self, deleted: frozenset[int]) -> Example | None:
        gone = {self.words[number] for number in deleted}
        kept = [place for place, word in enumerate(self.example.source.word_ids) if word is None or word not in gone]
        return self.example.keeping(kept) if kept else None

    def _by_word(self, log_probs: Float[np.ndarray, " label"]) -> Float[np.ndarray, " target"]:
        words = self.example.label_tokens.word_ids
        sums = {word: 0.0 for word in words if word is not None}
        for word, log_prob in zip(words, log_probs, strict=False):
            if word is not None:
                sums[word] += float(log_prob)
        return np.exp(np.array(list(sums.values())))


def _tops(scores: Float[np.ndarray, " source"]) -> list[frozenset[int]]:
    """List the highest words for each fraction; among equals the earlier ones."""
    order = np.argsort(-scores, kind="stable")
    return [frozenset(order[: math.ceil(fraction * len(scores))].tolist()) for fraction in FRACTIONS]


def _needed(matrix: Float[np.ndarray, "target source"]) -> Iterable[frozenset[int]]:
    """List the sets of words that must be deleted to measure some scores."""
    everything = frozenset(range(matrix.shape[1]))
    for scores in matrix:
        if not np.isnan(scores).any():
            for top in _tops(scores):
                yield from (top, everything - top)


def _measure(matrix: Float[np.ndarray, "target source"], deletions: _Deletions) -> list[Measures]:
    """Return comprehensiveness, sufficiency and correlation for every target word."""
    everything = frozenset(range(matrix.shape[1]))
    whole = deletions[()]
    assert whole is not None
    measured = []
    for target, scores in enumerate(matrix):
        if np.isnan(scores).any():  # a method that reads the next step has none after the last word
            measured.append((math.nan, math.nan, math.nan))
            continue
        tops = _tops(scores)
        without, alone = (
            [_drop(deletions, chosen, target) for chosen in sets] for sets in (tops, [everything - top for top in tops])
        )
        one_out = np.array([_drop(deletions, (word,), target) for word in range(len(scores))])
        known = ~np.isnan(one_out)
        correlation = kendall_tau(np.abs(scores[known]), np.abs(one_out[known])) if known.any() else math.nan
        measured.append((float(np.mean(without)), float(np.mean(alone)), float(correlation)))
    return measured


def _drop(deletions: _Deletions, deleted: Iterable[int], target: int) -> float:
    """Return p(y | x) - p(y | x without some words); undefined where nothing would be left."""
    whole, rest = deletions[()], deletions[deleted]
    return math.nan if whole is None or rest is None else float(whole[target] - rest[target])
