"""What is measured on a classifier of the study, over documents that it was not trained on.

From Meister et al. 2021, section 3.1:

    tau      Kendall's tau-b of attention with the importance of inputs x and of states h, by gradients (eq. 4) and by
             leave-one-out (eq. 6)
    entropy  the normalised entropy of the importance of inputs, and of inputs for each state (eq. 5)
    support  the fraction of positions that get any attention

A correlation that is undefined, since a row is constant, is skipped and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


def read_attention(model: Any, documents: Sequence[str]) -> Importances:
    """Read a model's attention to the words of documents."""
    return Importances.of(explain(load(model), list(documents), method="attention", progress=False))


def measure_model(folder: Path, documents: Sequence[str], settings: Settings, projection: str) -> dict[str, Any]:
    """Measure a trained model on documents that it has not seen."""
    model = load(folder)
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
        importances = Importances.of(explain(model, list(documents[:count]), method=method, progress=False, **changes))
        rows = slice(len(importances.values))
        width = importances.values.shape[1]
        correlation = kendall_tau(attention.values[rows, :width], importances.values, importances.mask)
        measured[f"tau {name}"] = _share(correlation)
        shares = normalize(importances.values, importances.mask)
        measured[f"entropy {name}"] = _share(entropy(shares, importances.mask, normalized=True))
    if projection in ("softmax", "sparsemax"):
        measured["entropy state"] = _share(_dispersions(model, documents[: settings.dispersed]))
    return measured


def _dispersions(model: Any, documents: Sequence[str]) -> PerRow:
    """Return, for each document, the mean over its states of the entropy of the inputs' importance for the state."""
    found = explain(model, list(documents), method="hidden_gradient", toward="state", progress=False)
    means = []
    for one in found:
        words = ~one.source.special
        importances = np.asarray(one.flat().scores, dtype=float)[words][:, words]
        means.append(summarize(entropy(normalize(importances), normalized=True)).mean)
    return np.array(means)


def _share(values: PerRow) -> list[float | int]:
    """Return mean and deviation, then how many values were defined and undefined."""
    return list(summarize(values))
