"""Layers whose calibration mask is dead: it takes nothing away, or everything, and so says nothing about the inputs.

A mask dies when the penalty pushes it to 1 before attention has formed, or when alpha exceeds the harm that the layer's
mask can do; and it takes everything away when alpha is far too low. Either shows in its mean over a whole epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sightline.attend.settings import CalibrationSettings
from sightline.training.calibration import mask_names

MARGIN = 0.001
"""How near to its greatest value the mean of a dead mask is: without a bound on its logits, above 0.999."""
SHARE = 0.1
"""The fraction of a run's steps that stands for an epoch where a whole one is longer."""


class MaskWatch:
    """Follows the mean mask of every layer through the log, and reports those that are dead for an epoch."""

    def __init__(self, settings: CalibrationSettings, layers: int, epoch: int, steps: int) -> None:
        """Watch a run of this many steps, with this many in an epoch."""
        self.greatest = settings.greatest_mask
        self.patience = min(epoch, max(int(SHARE * steps), 1))
        self.alive: dict[str, int] = dict.fromkeys(mask_names(layers), 0)
        """The last step at which each layer's mask was alive."""
        self.reported: set[str] = set()

    def observe(self, step: int, figures: Mapping[str, Any]) -> list[str]:
        """Take note of the means since the last report; return a sentence for every layer that is found to be dead."""
        found = []
        for number, name in enumerate(self.alive):
            ending = self._ending(figures[name])
            if ending is None:
                self.alive[name] = step
                self.reported.discard(name)
            elif name not in self.reported and step - self.alive[name] >= self.patience:
                self.reported.add(name)
                found.append(
                    f"The mask of cross-attention layer {number} is dead: its mean is {figures[name]:.4f} since step "
                    f"{self.alive[name]:,}. {ending}"
                )
        return found

    def _ending(self, mean: float) -> str | None:
        """Return what a mean shows and what to change, or None if the mask is alive."""
        if mean > self.greatest - MARGIN:
            return "It takes nothing away: lower calibration.alpha or raise calibration.alpha_warmup."
        if mean < 1 - self.greatest + MARGIN:
            return "It takes everything away: raise calibration.alpha."
        return None
