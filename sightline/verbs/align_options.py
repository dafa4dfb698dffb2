"""The options of `align`: what the user fixes about how alignments are made; what is left open is chosen."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sightline.alignment.extraction import DEFAULT_EXTRACTION, EXTRACTIONS, THRESHOLDED
from sightline.alignment.symmetrization import DEFAULT_RULE, RULES
from sightline.errors import InputError, unknown_name
from sightline.methods import METHODS, find_method
from sightline.methods.similarity import SIMILARITY, SimilaritySettings
from sightline.values import check_share

AUTO = "auto"
LAYERED_METHODS = ("norms", "attention")
"""The methods that `auto` chooses from: each gives every layer in one pass."""
EFFORTS = ("fast", "best")
JOINS = ("scores", "links")
OTHER_NAMES = ("reverse", "use_adapter", "with_aligner", "choose_again", "min_confidence", "choice", "progress")
"""The other arguments of `align`, which a misspelt one may mean."""


@dataclass(frozen=True)
class AlignOptions:
    """What the user fixed of how alignments are read and joined; see `sightline.align`."""

    method: str = AUTO
    effort: str = "fast"
    extraction: str | None = None
    threshold: float | None = None
    symmetrize: str | None = None
    join: str = "scores"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise unknown_name("effort", self.effort, EFFORTS)
        if self.join not in JOINS:
            raise unknown_name("way to join directions", self.join, JOINS)
        if self.symmetrize is not None and self.symmetrize not in RULES:
            raise unknown_name("symmetrisation rule", self.symmetrize, RULES)
        if self.method not in (AUTO, SIMILARITY, *METHODS):
            raise unknown_name("method", self.method, [AUTO, SIMILARITY, *METHODS])
        self._check_settings()
        if self.extraction is not None and self.extraction not in EXTRACTIONS:
            raise unknown_name("extraction", self.extraction, EXTRACTIONS)
        if self.threshold is not None and self.extraction not in THRESHOLDED:
            raise InputError(f"A threshold belongs to the extractions {' and '.join(THRESHOLDED)}: name one of them.")
        if self.threshold is not None:
            check_share("threshold", self.threshold)

    def _check_settings(self) -> None:
        own = [one.name for one in fields(self)]
        for name in self.settings:
            meant = difflib.get_close_matches(name, [*own, *OTHER_NAMES], n=1, cutoff=0.8)
            if meant:
                raise InputError(f"There is no option {name!r} of align. Did you mean {meant[0]!r}?")
        if self.method == SIMILARITY:
            SimilaritySettings.of(self.settings)
            return
        for name in LAYERED_METHODS if self.method == AUTO else [self.method]:
            find_method(name).settings(name, self.settings)

    @property
    def is_open(self) -> bool:
        """Return whether there is something to choose: a method, a layer or a reading."""
        return self.method == AUTO or (
            self.method in LAYERED_METHODS and not {"layer", "reading"} <= set(self.settings)
        )

    @property
    def rule(self) -> str:
        """Return the rule that joins the links of two directions."""
        return self.symmetrize or DEFAULT_RULE

    @property
    def reads_either_sign(self) -> bool:
        """Return whether scores below zero count, so that they cannot be joined as shares."""
        return self.method == SIMILARITY or self.extraction == "softmax"

    @property
    def chosen_extraction(self) -> str:
        """Return the extraction that was named, or the default one."""
        # What similarity compares has no direction, so that its links are those that both sides choose (SimAlign).
        return self.extraction or ("mutual-pieces" if self.method == SIMILARITY else DEFAULT_EXTRACTION)

    def of_the_choice(self) -> dict[str, Any]:
        """Return what a choice depends on, as plain data."""
        return {"method": self.method, "effort": self.effort, "settings": dict(self.settings)}
