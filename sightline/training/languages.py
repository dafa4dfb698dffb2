"""Learning which of two languages a text is in, from the parallel text that a model is trained on.

Every word has odds, by how often each language has it: log (n2 + PRIOR) / (n1 + PRIOR), with counts scaled to texts of
one length. Character n-grams learn them by logistic regression over the words, a word weighted by the square root of
its count, so that words that the text lacks have a score too. The words that the n-grams get wrong are then listed with
their own odds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sightline.data.corpora import TextPair
from sightline.text.languages import LIMIT, UNIT, LanguageGuess, listed_words, pieces_of

MOST_PAIRS = 200_000
"""Of a longer text this many pairs, evenly spread, are read."""
MOST_PIECES, MOST_WORDS = 3000, 3000
FEWEST_WORDS_OF_A_PIECE = 3
PRIOR = 0.1
PENALTY = 0.5
ROUNDS = 40


def learn_languages(pairs: Sequence[TextPair], languages: tuple[str, str]) -> LanguageGuess:
    """Learn to tell the two sides of parallel text apart."""
    step = -(-len(pairs) // MOST_PAIRS)
    counts = [Counter(word for pair in pairs[::step] for word in listed_words(pair[side])) for side in (0, 1)]
    words = sorted(counts[0] | counts[1])
    if not words:
        return LanguageGuess(languages, {}, {})
    totals = [max(counted.total(), 1) for counted in counts]
    first, second = (
        torch.tensor([counted[word] * (max(totals) / total) for word in words], dtype=torch.float64)
        for counted, total in zip(counts, totals, strict=True)
    )
    odds = torch.log((second + PRIOR) / (first + PRIOR))
    weights = (first + second).sqrt()
    pieces, scores = _learn_pieces(words, odds.sigmoid(), weights)
    wrong = weights * (
        _cross_entropy(scores.clamp(-LIMIT, LIMIT), odds.sigmoid()) - _cross_entropy(odds, odds.sigmoid())
    )
    listed = wrong.topk(min(MOST_WORDS, len(words))).indices.tolist()
    own = odds.clamp(-LIMIT, LIMIT).tolist()
    return LanguageGuess(languages, {words[i]: _rounded(own[i]) for i in sorted(listed)}, pieces)


def _learn_pieces(words: Sequence[str], targets: Tensor, weights: Tensor) -> tuple[dict[str, float], Tensor]:
    """Learn the weights of pieces, of which the most useful are kept; return them, and the scores of the words."""
    by_word = [sorted(pieces_of(word)) for word in words]
    found = Counter(piece for pieces in by_word for piece in pieces)
    names = sorted(piece for piece, count in found.items() if count >= FEWEST_WORDS_OF_A_PIECE)
    if not names:  # a handful of words
        return {}, torch.zeros_like(targets)
    numbers = {piece: number for number, piece in enumerate(names)}
    known = [[numbers[piece] for piece in pieces if piece in numbers] for pieces in by_word]
    columns = torch.tensor([number for row in known for number in row], dtype=torch.long)
    rows = torch.from_numpy(np.repeat(np.arange(len(words)), [len(row) for row in known]))
    usual = torch.zeros(len(names), dtype=torch.float64).index_add(0, columns, weights[rows])
    learnt = _fit(torch.ones_like(usual), rows, columns, targets, weights)
    kept = torch.zeros_like(usual)
    kept[(learnt.abs() * usual.sqrt()).topk(min(MOST_PIECES, len(names))).indices] = 1
    learnt = _fit(kept, rows, columns, targets, weights)
    pieces = {name: _rounded(weight) for name, weight in zip(names, learnt.tolist(), strict=True) if _rounded(weight)}
    return pieces, _scores(learnt, rows, columns, len(words))


def _fit(kept: Tensor, rows: Tensor, columns: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Minimise the weighted cross-entropy of the words' odds, with a penalty on large weights of pieces."""
    learnt = torch.zeros_like(kept, requires_grad=True)
    optimizer = torch.optim.LBFGS([learnt], max_iter=ROUNDS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        missed = weights * _cross_entropy(_scores(learnt * kept, rows, columns, len(targets)), targets)
        value = (missed.sum() + PENALTY * (learnt * kept).square().sum()) / weights.sum()
        value.backward()
        return value

    optimizer.step(loss)
    return (learnt * kept).detach()


def _scores(learnt: Tensor, rows: Tensor, columns: Tensor, words: int) -> Tensor:
    return torch.zeros(words, dtype=learnt.dtype).index_add(0, rows, learnt[columns])


def _cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(scores, targets, reduction="none")


def _rounded(weight: float) -> float:
    return round(weight * UNIT) / UNIT
