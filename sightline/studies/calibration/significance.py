"""Whether one system translates better than another: a paired bootstrap over sentences, pooled over seeds.

For every drawn sample of test sentences (with replacement), each system has one BLEU: that of all its seeds'
translations of them together. As in sacreBLEU's paired bootstrap (Koehn 2004), p is the share of samples whose
difference, less the mean difference, is at least as great as the one observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from sacrebleu.metrics import BLEU

Statistics = Int[np.ndarray, "seed sentence statistic"]


@dataclass(frozen=True)
class Gain:
    """The BLEU that a system has above a baseline: pooled over seeds, with its p, and seed by seed."""

    pooled: float
    p: float
    by_seed: tuple[float, ...]

    def __str__(self) -> str:
        single = " / ".join(f"{gain:+.1f}" for gain in self.by_seed)
        return f"{self.pooled:+.2f} BLEU (p {self.p:.3f}; seed by seed {single})"


def measure_gain(
    baseline: Sequence[Sequence[str]],
    system: Sequence[Sequence[str]],
    references: Sequence[str],
    samples: int,
    seed: int,
) -> Gain:
    """Compare the translations of two systems, one list for each seed."""
    several = [_statistics(one, references) for one in (baseline, system)]
    before, after = (_bleu(one.sum((0, 1))) for one in several)
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(references), size=(samples, len(references)), replace=True)
    pooled = [one.sum(0) for one in several]
    sampled = np.array([[_bleu(one[rows].sum(0)) for one in pooled] for rows in drawn])
    gains = sampled[:, 1] - sampled[:, 0]
    extreme = int((np.abs(gains - gains.mean()) >= abs(after - before)).sum())
    by_seed = [_bleu(b.sum(0)) - _bleu(a.sum(0)) for a, b in zip(*several, strict=False)]
    return Gain(after - before, (extreme + 1) / (samples + 1), tuple(by_seed))


def _statistics(translations: Sequence[Sequence[str]], references: Sequence[str]) -> Statistics:
    metric = BLEU(force=True)  # else it warns that text is tokenised, which here it may be
    return np.array([metric._extract_corpus_statistics(one, [references]) for one in translations])


def _bleu(statistics: Int[np.ndarray, " statistic"]) -> float:
    return BLEU()._compute_score_from_stats(statistics.tolist()).score
