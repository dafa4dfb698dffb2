"""The hidden Markov model of word alignment: where a target word comes from depends on where the one before came from.

Vogel, Ney and Tillmann 1996, with the NULL words of Och and Ney 2003; the model is written out in `forward_backward`.
It is trained in both directions at once by `agreement`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, no_type_check

import numpy as np
from jaxtyping import Float64
from numba import prange

from sightline.alignment.bitext import Bitext
from sightline.alignment.forward_backward import JUMPS, forward_backward
from sightline.alignment.lexicon import find_value
from sightline.alignment.one_way import UNSEEN, Posteriors, StatisticalAligner
from sightline.compilation import njit


@dataclass(frozen=True, eq=False)
class HmmAligner(StatisticalAligner):
    """A hidden Markov model of one direction."""

    jumps: Float64[np.ndarray, " jump"]
    null_prior: float

    joined_null: ClassVar[float | None] = 0.2

    def _fill(self, text: Bitext, posteriors: Posteriors) -> None:
        _fill_posteriors(
            text.source.ids,
            text.source.starts,
            text.target.ids,
            text.target.starts,
            self.lexicon.starts,
            self.lexicon.targets,
            self.lexicon.values,
            self.null,
            self.jumps,
            self.null_prior,
            posteriors.starts,
            posteriors.cells,
        )


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
    jumps,
    null_prior,
    cell_starts,
    cells,
):
    for pair in prange(len(source_starts) - 1):
        xs = source_ids[source_starts[pair] : source_starts[pair + 1]]
        ys = target_ids[target_starts[pair] : target_starts[pair + 1]]
        matrix = cells[cell_starts[pair] : cell_starts[pair + 1]].reshape(len(ys), len(xs) + 1)
        if len(xs) == 0:
            matrix[:] = 1.0
            continue
        emissions = np.empty((len(ys), len(xs)))
        of_null = np.empty(len(ys))
        for j in range(len(ys)):
            for i in range(len(xs)):
                probability = find_value(row_starts, row_targets, probabilities, xs[i], ys[j])
                emissions[j, i] = max(probability, UNSEEN)
            of_null[j] = max(null[ys[j]] if ys[j] >= 0 else 0.0, UNSEEN)
        forward_backward(emissions, of_null, jumps, null_prior, emissions, of_null, np.zeros(JUMPS))
        matrix[:, :-1] = emissions
        matrix[:, -1] = of_null
