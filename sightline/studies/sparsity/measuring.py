"""What is measured on a classifier of the study, over documents that it was not trained on.

From Meister et al. 2021, section 3.1:

    tau      Kendall's tau-b of attention with the importance of inputs x and of states h, by gradients (eq. 4) and by
             leave-one-out (eq. 6)
    entropy  the normalised entropy of the importance of inputs, and of inputs for each state (eq. 5)
    support  the fraction of positions that get any attention
    facets   of states: tau-b of the inputs' importance for the norm of a state (eq. 5) with that for the state itself,
             and the difference of their entropies (appendix A)

Leave-one-out is computed in double precision, and differences that are only rounding count as none: a state without
weight changes nothing, and positions that change nothing must tie.

A correlation that is undefined, since a row is constant, is skipped and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from sightline.attribution import Attribution
from sightline.measures import entropy, kendall_tau, normalize, summarize, support_size
from sightline.measures.rows import PerRow
from sightline.models.loading import load
from sightline.studies.sparsity.settings import Settings
from sightline.verbs.explaining import explain

ROUNDING = 1e-6
"""Of a row's largest score: scores are kept in single precision."""


@dataclass(frozen=True)
class Importances:
    """One row of scores for each document, over its words."""

    values: Float[np.ndarray, "document word"]
    mask: Bool[np.ndarray, "document word"]

    @classmethod
    def of(cls, attributions: Sequence[Attribution]) -> Importances:
        """Stack the only row of each attribution, without special tokens."""
        rows = [np.asarray(one.flat().scores, dtype=float)[0, ~one.source.special] for one in attributions]
        lengths = np.array([len(row) for row in rows])
        mask = np.arange(lengths.max()) < lengths[:, None]
        values = np.zeros(mask.shape)
        values[mask] = np.concatenate(rows)
        return cls(values, mask)

    def without_rounding(self) -> Importances:
        """Return the same with zeros for what is no more than rounding of the row's largest score."""
        largest = np.abs(self.values).max(axis=1, keepdims=True)
        return replace(self, values=np.where(np.abs(self.values) > ROUNDING * largest, self.values, 0.0))


def read_attention(model: Any, documents: Sequence[str]) -> Importances:
    """Read a model's attention to the words of documents."""
    return Importances.of(explain(load(model), list(documents), method="attention", progress=False))


def measure_model(folder: Path, documents: Sequence[str], settings: Settings, projection: str) -> dict[str, Any]:
    """Measure a trained model on documents that it has not seen."""
    model, precise = load(folder), load(folder, dtype="float64")
    attention = read_attention(model, documents[: settings.explained])
    ways = {
        "gradient x": ("gradient", {"norm": "l2"}, settings.explained),
        "gradient h": ("hidden_gradient", {}, settings.explained),
        "loo x": ("erasure", {}, settings.erased),
        "loo h": ("hidden_erasure", {}, settings.erased),
    }
    measured: dict[str, Any] = {
        "support": _share(support_size(attention.values, attention.mask) / attention.mask.sum(-1)),
        "attention entropy": _share(entropy(attention.values, attention.mask, normalized=True)),
    }
    for name, (method, changes, count) in ways.items():
        reader = precise if method in ("erasure", "hidden_erasure") else model
        importances = Importances.of(explain(reader, list(documents[:count]), method=method, progress=False, **changes))
        if reader is precise:
            importances = importances.without_rounding()
        rows = slice(len(importances.values))
        width = importances.values.shape[1]
        correlation = kendall_tau(attention.values[rows, :width], importances.values, importances.mask)
        measured[f"tau {name}"] = _share(correlation)
        shares = normalize(importances.values, importances.mask)
        measured[f"entropy {name}"] = _share(entropy(shares, importances.mask, normalized=True))
    if projection in ("softmax", "sparsemax"):
        measured["entropy state"] = _share(_dispersions(model, documents[: settings.dispersed]))
        taus, differences = _compare_facets(model, _beginnings(documents[: settings.facets], settings.facet_words))
        measured |= {"facets tau": _share(taus), "facets difference": _share(differences)}
    return measured


def _dispersions(model: Any, documents: Sequence[str]) -> PerRow:
    """Return, for each document, the mean over its states of the entropy of the inputs' importance for the state."""
    return np.array([_mean_entropy(rows) for rows in _importances_for_states(model, documents, "state")])


def _compare_facets(model: Any, documents: Sequence[str]) -> tuple[PerRow, PerRow]:
    """Compare the importance for a state's norm with that for the state itself: tau-b, and difference of entropies."""
    pairs = list(
        zip(*(_importances_for_states(model, documents, toward) for toward in ("state", "jacobian")), strict=True)
    )
    taus = np.array([summarize(kendall_tau(norm, whole)).mean for norm, whole in pairs])
    return taus, np.array([_mean_entropy(norm) - _mean_entropy(whole) for norm, whole in pairs])


def _beginnings(documents: Sequence[str], words: int) -> list[str]:
    return [" ".join(document.split()[:words]) for document in documents]


def _importances_for_states(model: Any, documents: Sequence[str], toward: str) -> list[Float[np.ndarray, "state word"]]:
    """Return the importance of each word for each state, document by document."""
    found = explain(model, list(documents), method="hidden_gradient", toward=toward, progress=False)
    words = [~one.source.special for one in found]
    return [np.asarray(one.flat().scores, dtype=float)[some][:, some] for one, some in zip(found, words, strict=True)]


def _mean_entropy(importances: Float[np.ndarray, "state word"]) -> float:
    return summarize(entropy(normalize(importances), normalized=True)).mean


def _share(values: PerRow) -> list[float | int]:
    """Return mean and deviation, then how many values were defined and undefined."""
    return list(summarize(values))
