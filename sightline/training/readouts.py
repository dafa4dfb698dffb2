"""How alignments are read off a model that was just trained: chosen on its dev pairs, and kept next to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sightline.data.corpora import TextPair
from sightline.models.loaded import LoadedModel
from sightline.verbs.aligning import explain_choice
from sightline.verbs.choosing import ENOUGH_PAIRS, SAMPLE
from sightline.verbs.readout import Choice


def keep_readouts(model: LoadedModel, pairs: Sequence[TextPair]) -> list[Choice]:
    """Choose how each direction of a translation model is read, by pairs from all over its dev set."""
    if len(pairs) < ENOUGH_PAIRS:
        return []
    step = max(1, len(pairs) // SAMPLE)
    sources, targets = ([pair[side] for pair in pairs[::step]] for side in (0, 1))
    choices: list[Choice] = []
    options: dict[str, Any] = {"use_adapter": False, "on_choice": choices.append}
    explain_choice(model, sources, targets, **options)
    if model.other_way is not None:
        explain_choice(model.other_way, targets, sources, **options)
    return choices
