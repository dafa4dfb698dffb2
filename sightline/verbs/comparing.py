"""A calibrated model's attention before and after calibration, and its mask, side by side (Lu et al. 2021, fig. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline.attribution import Attribution
from sightline.errors import InputError
from sightline.models.loading import load
from sightline.text.words import Text
from sightline.verbs.explaining import explain

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ComparedCalibration:
    """What calibration does to one sentence pair, by layer and averaged over heads (Lu et al. 2021, figure 1)."""

    before: Attribution
    """The original cross-attention."""
    after: Attribution
    """The same after calibration."""
    mask: Attribution
    """1 - m: how much of each weight the mask takes away; the greater, the more decisive the input."""

    def frames(self) -> dict[str, Any]:
        """Return the three side by side, layer by layer, as `sightline.view.frames` draws them."""
        titles = {"before calibration": self.before, "after calibration": self.after, "1 - m, by the mask": self.mask}
        frames = [
            {
                "name": str(layer),
                "tables": [
                    {
                        "title": title,
                        "rows": list(one.target.pieces),
                        "columns": list(one.source.pieces),
                        "values": np.asarray(one.scores[layer], dtype=float).round(4).tolist(),
                    }
                    for title, one in titles.items()
                ],
            }
            for layer in range(len(self.before.scores))
        ]
        return {
            "kind": "frames",
            "title": "Attention before and after calibration, and the mask",
            "label": "layer",
            "frames": frames,
            "note": "Means over heads. A picture's darkest cell is the greatest value that it has in any layer.",
        }

    def to_html(self) -> str:
        """Return a self-contained page with the three side by side; buttons choose the layer."""
        from sightline.view.side_by_side import render_side_by_side

        return render_side_by_side(self.frames())

    def to_dict(self) -> dict[str, Any]:
        """Return the three attributions as plain data."""
        return {name: getattr(self, name).to_dict() for name in ("before", "after", "mask")}

    def words(self) -> ComparedCalibration:
        """Merge the pieces of each word: weights are summed over source pieces, masks averaged."""
        return ComparedCalibration(self.before.words(), self.after.words(), self.mask.words(source="mean"))

    def show(self, console: Console | None = None, layer: int = -1) -> None:
        """Print one layer's heat maps to the terminal: before, after, mask."""
        for one in (self.before, self.after, self.mask):
            one.layer(layer).show(console)


def compare_calibration(model: Any, source: Text, target: Text | None = None) -> ComparedCalibration:
    """Compare a calibrated model's cross-attention before and after calibration, with its mask, on a sentence pair.

    The target is by default the model's own translation.
    """
    loaded = load(model)
    if loaded.calibration is None:
        raise InputError(
            f"{type(loaded.module).__name__} is not calibrated: load a folder with a calibration, or en-es-calibrated."
        )
    if target is None:
        target = loaded.text_of(loaded.answer([loaded.encode(source, None)])[0])

    def by_layer(method: str, **options: Any) -> Attribution:
        (found,) = explain(loaded, [source], [target], method=method, progress=False, **options)
        return found.mean("head")

    before, after = (by_layer("attention", head="all", original=original) for original in (True, False))
    return ComparedCalibration(before, after, by_layer("perturbation_mask"))
