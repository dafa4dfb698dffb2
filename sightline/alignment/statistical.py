"""Statistical word aligners: IBM Model 1 and the diagonal model; trained once, saved, used on any sentences.

- `ibm1`: Brown et al. 1993, with a NULL word, maximum likelihood.
- `diagonal`: Dyer, Chahuneau and Smith 2013 ("A simple, fast, and effective reparameterization of IBM Model 2"), the
  model of fast_align: a prior for the diagonal whose tension is learned, NULL with probability 0.08, and
  variational Bayes with a sparse Dirichlet prior (alpha 0.01) on the translation probabilities.

A model aligns each target word to one source word or to none; `TwoWayAligner` holds a model for each direction and
symmetrises. The confidence of a link is its posterior probability.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import no_type_check

import numpy as np
from jaxtyping import Float32, Float64, Int64
from numba import prange

from sightline.alignment.bitext import Bitext, Words
from sightline.alignment.diagonal import bin_positions, fit_tension, normalisers
from sightline.alignment.expectation import (
    estimate,
    find_cooccurrences,
    find_occurrences,
    gather_evidence,
    replace_rows,
    share_work,
    weigh_evidence,
)
from sightline.alignment.lexicon import Lexicon, find_value, number_words
from sightline.alignment.links import Alignment
from sightline.alignment.symmetrization import DEFAULT_RULE, symmetrize_all
from sightline.compilation import njit
from sightline.errors import InputError, unknown_name
from sightline.forking import begin_threads

INITIAL_TENSION = 4.0
DIAGONAL_NULL = 0.08
DIAGONAL_ALPHA = 0.01
UNSEEN = 1e-9  # the translation probability of words that never met; what is less likely is not stored
PAIRS_AT_ONCE = 2048
FILE_FORMAT = 1


@dataclass(frozen=True, eq=False)
class StatisticalAligner:
    """A trained model of one direction: it explains each target word by a source word, or by NULL."""

    lexicon: Lexicon
    null: Float32[np.ndarray, " word"]  # t(y | NULL)
    tension: float
    null_prior: float | None  # None: NULL counts as one more source word
    log_likelihoods: tuple[float, ...] = ()  # per target word, under the parameters before each round

    def posteriors(self, pairs: Iterable[tuple[Words, Words]]) -> Iterator[Float64[np.ndarray, "target source_1"]]:
        """Give, for each pair, p(target word j comes from source word i); the last column is NULL."""
        for chunk in _chunks(pairs):
            cells, starts = self._posteriors_of_chunk(chunk)
            for (begin, end), (source, target) in zip(pairwise(starts), chunk, strict=True):
                yield cells[begin:end].reshape(len(target), len(source) + 1)

    def align(self, pairs: Iterable[tuple[Words, Words]]) -> Iterator[Alignment]:
        """Link each target word to the source word that most likely gave rise to it, unless NULL did.

        Any number of pairs, in order, as they come.
        """
        for chunk in _chunks(pairs):
            cells, _ = self._posteriors_of_chunk(chunk)
            rows = np.array([(len(target), len(source) + 1) for source, target in chunk])
            best, confidence = (column.tolist() for column in _choose_best(cells, rows))
            begin = 0
            for source, target in chunk:
                end, sources = begin + len(target), len(source)
                chosen = zip(best[begin:end], range(len(target)), confidence[begin:end], strict=True)
                yield Alignment({(i, j): value for i, j, value in chosen if i < sources}, (), sources, len(target))
                begin = end

    def _posteriors_of_chunk(
        self, chunk: list[tuple[Words, Words]]
    ) -> tuple[Float64[np.ndarray, " cell"], Int64[np.ndarray, " pair_1"]]:
        """Give the posteriors of all pairs one behind the other, and where each pair's start."""
        lexicon = self.lexicon
        source_starts = np.cumsum([0] + [len(source) for source, _ in chunk])
        target_starts = np.cumsum([0] + [len(target) for _, target in chunk])
        starts = np.cumsum([0] + [(len(source) + 1) * len(target) for source, target in chunk])
        cells = np.empty(starts[-1])
        _fill_posteriors(
            number_words([word for source, _ in chunk for word in source], lexicon.source_numbers),
            source_starts,
            number_words([word for _, target in chunk for word in target], lexicon.target_numbers),
            target_starts,
            lexicon.starts,
            lexicon.targets,
            lexicon.values,
            self.null,
            _null_priors(self.null_prior, np.diff(source_starts)),
            self.tension,
            starts,
            cells,
        )
        return cells, starts


@dataclass(frozen=True, eq=False)
class TwoWayAligner:
    """A model for each direction: `forward` explains target words by source words, `backward` the reverse."""

    forward: StatisticalAligner
    backward: StatisticalAligner

    def align(self, pairs: Iterable[tuple[Words, Words]], rule: str = DEFAULT_RULE) -> Iterator[Alignment]:
        """Align pairs in both directions and symmetrise them; any number of pairs, in order, as they come."""
        for chunk in _chunks(pairs):
            backward = self.backward.align([(target, source) for source, target in chunk])
            yield from symmetrize_all(self.forward.align(chunk), (alignment.flipped() for alignment in backward), rule)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write both models to one compressed file, which appears under its name only when it is complete."""
        arrays: dict[str, np.ndarray] = {}
        for name, model in (("forward", self.forward), ("backward", self.backward)):
            arrays |= {
                f"{name}.starts": model.lexicon.starts,
                f"{name}.targets": model.lexicon.targets,
                f"{name}.values": model.lexicon.values,
                f"{name}.null": model.null,
            }
        about = {
            "format": FILE_FORMAT,
            "source": self.forward.lexicon.source_vocabulary,
            "target": self.forward.lexicon.target_vocabulary,
            **{
                name: {
                    "tension": model.tension,
                    "null_prior": model.null_prior,
                    "log_likelihoods": model.log_likelihoods,
                }
                for name, model in (("forward", self.forward), ("backward", self.backward))
            },
        }
        arrays["about"] = np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), np.uint8)
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        try:
            with partial.open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **arrays)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def load_aligner(path: str | os.PathLike[str]) -> TwoWayAligner:
    """Read what `TwoWayAligner.save` wrote."""
    if not Path(path).is_file():
        raise InputError(f"There is no file {path}.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays["about"].tobytes())
        assert about["format"] == FILE_FORMAT
        source, target = tuple(about["source"]), tuple(about["target"])
        models = []
        for name, vocabularies in (("forward", (source, target)), ("backward", (target, source))):
            table = (arrays[f"{name}.{part}"] for part in ("starts", "targets", "values"))
            settings = about[name]
            models.append(
                StatisticalAligner(
                    Lexicon(*vocabularies, *table),
                    arrays[f"{name}.null"],
                    settings["tension"],
                    settings["null_prior"],
                    tuple(settings["log_likelihoods"]),
                )
            )
    except (zipfile.BadZipFile, ValueError, KeyError, OSError, AssertionError) as error:
        raise InputError(f"{path} is not an aligner that Sightline saved ({error}).") from None
    return TwoWayAligner(*models)


def train_ibm1(bitext: Bitext, iterations: int = 5) -> StatisticalAligner:
    """Train IBM Model 1 in one direction: every source word, and NULL, is as likely as any other."""
    return _train(bitext, iterations, tension=0.0, null_prior=None, alpha=0.0)


def train_diagonal(bitext: Bitext, iterations: int = 5) -> StatisticalAligner:
    """Train the diagonal model in one direction, learning its tension."""
    return _train(bitext, iterations, INITIAL_TENSION, DIAGONAL_NULL, DIAGONAL_ALPHA)


ALIGNERS: dict[str, Callable[..., StatisticalAligner]] = {"ibm1": train_ibm1, "diagonal": train_diagonal}


def train_aligner(bitext: Bitext, model: str = "diagonal", iterations: int = 5) -> TwoWayAligner:
    """Train a model in both directions.

    >>> from sightline.alignment.bitext import build_bitext
    >>> pairs = [(["the", "house"], ["la", "maison"]), (["the", "door"], ["la", "porte"])]
    >>> list(train_aligner(build_bitext(pairs), "ibm1").align([(["house"], ["maison"])], "intersection"))
    [Alignment(0-0:0.87)]
    """
    if model not in ALIGNERS:
        raise unknown_name("statistical aligner", model, ALIGNERS)
    train = ALIGNERS[model]
    return TwoWayAligner(train(bitext, iterations), train(bitext.flipped(), iterations))


def _train(
    bitext: Bitext, iterations: int, tension: float, null_prior: float | None, alpha: float
) -> StatisticalAligner:
    """Run expectation-maximisation from uniform translation probabilities.

    Memory: 8 bytes for each pair of words that ever met, 24 for each source and 24 for each target word of the text.
    """
    begin_threads("A statistical aligner")
    target, vocabulary = bitext.target, len(bitext.target.vocabulary)
    occurrences = find_occurrences(bitext)
    shares = share_work(bitext, occurrences)
    starts, targets = find_cooccurrences(bitext, occurrences, shares)
    bins = bin_positions(bitext)

    probabilities = np.full(len(targets), 1 / vocabulary, np.float32)
    null = np.full(vocabulary, 1 / vocabulary)
    null_priors = _null_priors(null_prior, bins.source_length)
    evidence, distance = np.empty(len(target.ids)), np.empty(len(target.ids))
    log_likelihoods = []
    for _ in range(iterations):
        table = (target.ids, occurrences, shares, starts, targets, probabilities, vocabulary, tension)
        gather_evidence(*table, evidence, distance)
        word_priors = (1 - null_priors) / normalisers(bins, tension)
        null_counts, bin_weights = np.zeros(vocabulary), np.zeros(len(bins.position))
        log_likelihood, expected_distance = weigh_evidence(
            target.ids, bins.of_token, word_priors, null_priors, null, evidence, distance, null_counts, bin_weights
        )
        log_likelihoods.append(log_likelihood)
        replace_rows(*table, evidence, alpha)
        estimate(null_counts, alpha, null)
        if tension:
            tension = fit_tension(bins, bin_weights, expected_distance, tension)
    lexicon = Lexicon(bitext.source.vocabulary, target.vocabulary, starts, targets, probabilities)
    return StatisticalAligner(
        lexicon.pruned(UNSEEN), null.astype(np.float32), tension, null_prior, tuple(log_likelihoods)
    )


def _null_priors(null_prior: float | None, source_lengths: Int64[np.ndarray, " pair"]) -> Float64[np.ndarray, " pair"]:
    """Give p0 of each pair."""
    if null_prior is None:
        return 1.0 / (source_lengths + 1.0)
    return np.full(len(source_lengths), null_prior)


def _chunks(pairs: Iterable[tuple[Words, Words]]) -> Iterator[list[tuple[Words, Words]]]:
    remaining = iter(pairs)
    while chunk := list(islice(remaining, PAIRS_AT_ONCE)):
        yield chunk


@njit(cache=True)
@no_type_check
def _choose_best(cells, shapes):
    """Find the most likely column of each row of matrices that lie one behind the other, and its probability."""
    rows = shapes[:, 0].sum()
    best, value = np.empty(rows, np.int64), np.empty(rows)
    row, cell = 0, 0
    for target_words, columns in shapes:
        for _ in range(target_words):
            posterior = cells[cell : cell + columns]
            best[row] = posterior.argmax()
            value[row] = min(posterior[best[row]], 1.0)
            row, cell = row + 1, cell + columns
    return best, value


@njit(parallel=True, cache=True)
@no_type_check
def _fill_posteriors(
    source_ids,
    source_starts,
    target_ids,
    target_starts,
    row_starts,
    row_targets,
    probabilities,
    null,
    null_priors,
    tension,
    cell_starts,
    cells,
):
    for pair in prange(len(source_starts) - 1):
        xs = source_ids[source_starts[pair] : source_starts[pair + 1]]
        ys = target_ids[target_starts[pair] : target_starts[pair + 1]]
        n, m = len(xs), len(ys)
        for j in range(m):
            row = cells[cell_starts[pair] + j * (n + 1) : cell_starts[pair] + (j + 1) * (n + 1)]
            normaliser = 0.0
            for i in range(n):
                weight = math.exp(-tension * abs((i + 1) / n - (j + 1) / m))
                normaliser += weight
                probability = find_value(row_starts, row_targets, probabilities, xs[i], ys[j])
                row[i] = weight * max(probability, UNSEEN)
            for i in range(n):
                row[i] *= (1 - null_priors[pair]) / normaliser
            row[n] = null_priors[pair] * max(null[ys[j]] if ys[j] >= 0 else 0.0, UNSEEN)
            row /= row.sum()
