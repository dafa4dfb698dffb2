"""Rows of scores taken while a model decodes: those that a teacher-forced pass over the finished target would give.

Attention and norms are computed at every step of `generate` anyway. The row of the step that gives a piece (read by
output) is there with the piece, the row of the step that is given it (read by input) one step later. An adapter looks
at both steps, in all layers, which `generate` does not keep: it runs a pass over what has been decoded, once a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sightline.attend.projections import precise
from sightline.attend.watch import Record, watch
from sightline.methods import find_method
from sightline.methods.adapter import read_both_ways
from sightline.methods.attention import choose_head, read_layers
from sightline.methods.norms import gram_matrices, norms_by_head, norms_of_sum
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.verbs.readout import Readout

Rows = Float[np.ndarray, "piece source"]


class LayerRows:
    """The rows of attention or norms, taken at every step."""

    def __init__(self, model: LoadedModel, example: Example, readout: Readout) -> None:
        self.model, self.example, self.method = model, example, readout.method
        self._settings = find_method(readout.method).settings(readout.method, readout.settings)
        self._layers = read_layers(model, self._settings).layers
        self._later = self._settings.reading == "input"
        self._grams: dict[tuple[nn.Module, int], Tensor] = {}
        self._watching = ExitStack()
        self._rows: list[Float[np.ndarray, " source"]] = []

    def begin(self) -> None:
        """Watch the layers from now on."""
        parts = ("weights", "values") if self.method == "norms" else ("weights",)
        self._seen = self._watching.enter_context(
            watch(self.model.module, [layer.module for layer in self._layers], record=parts, keep=self._last_row)
        )

    def stop(self) -> None:
        """Leave the layers as they were."""
        self._watching.close()

    def take_step(self) -> None:
        """Take the row of the step that was just made."""
        rows = [layer.seen_by(self._seen).cpu().numpy() for layer in self._layers]
        self._seen.calls.clear()
        self._rows.append(np.mean(rows, axis=0))

    @torch.no_grad()
    def finish(self, output: Example) -> None:
        """Run the step that is given the last piece, if the translation was cut short: `generate` had no need of it."""
        if self._later and len(output.decoder_ids) > len(output.labels):
            self.model.run(self.model.batch([output]))
            self.take_step()

    def of(self, positions: Sequence[int], _output: Example) -> Rows:
        """Return the rows of some positions of the target, as far as they are there."""
        there = [position + self._later for position in positions if position + self._later < len(self._rows)]
        return np.array([self._rows[step] for step in there]).reshape(len(there), len(self.example.source))

    @torch.no_grad()
    def _last_row(self, module: nn.Module, record: Record) -> Float[Tensor, " source"]:
        """Score the source for the last step of a layer, as the method does."""
        assert record.weights is not None
        weights = record.weights[:, :, -1:]
        if self.method == "attention":
            scores = choose_head(weights, self._settings.head)
        else:
            assert record.values is not None
            key = (module, len(self._seen.calls[module]))
            if key not in self._grams:  # the source's values are the same in every step
                layer = next(layer for layer in self._layers if layer.module is module)
                self._grams[key] = gram_matrices(layer, precise(record.values))
            gram, head = self._grams[key], self._settings.head
            by_head = head != "sum"
            scores = choose_head(norms_by_head(weights, gram), head) if by_head else norms_of_sum(weights, gram)
        return scores[0, 0].float()


class AdapterRows:
    """The rows of an alignment adapter, from a pass over what has been decoded so far."""

    def __init__(self, model: LoadedModel, example: Example, _readout: Readout) -> None:
        self.model, self.example = model, example

    def begin(self) -> None:
        """Nothing is watched."""

    def stop(self) -> None:
        """Nothing was watched."""

    def take_step(self) -> None:
        """A step leaves nothing behind."""

    def finish(self, _output: Example) -> None:
        """The pass over the whole translation has all steps."""

    def of(self, positions: Sequence[int], output: Example) -> Rows:
        """Return the rows of some positions of the target."""
        (both,) = read_both_ways(self.model, self.model.batch([output]))
        return both.forward.scores[np.asarray(positions, dtype=int)]
