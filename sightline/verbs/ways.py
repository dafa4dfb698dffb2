"""Ways to read alignments off a model: what the user asks for, what was tried, what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sightline.alignment.extraction import EXTRACTIONS, THRESHOLDED, extract_alignment
from sightline.alignment.links import Alignment
from sightline.attribution import Attribution
from sightline.errors import InputError, unknown_name
from sightline.methods import METHODS, find_method
from sightline.methods.similarity import SIMILARITY, SimilaritySettings
from sightline.values import check_share

AUTO = "auto"
LAYERED_METHODS = ("norms", "attention")


@dataclass(frozen=True)
class Asked:
    """What the user fixed of how to read alignments; the rest is open."""

    method: str = AUTO
    extraction: str | None = None
    threshold: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method == SIMILARITY:
            SimilaritySettings.of(self.settings)
        elif self.method not in (AUTO, *METHODS):
            raise unknown_name("method", self.method, [AUTO, SIMILARITY, *METHODS])
        for name in LAYERED_METHODS if self.method == AUTO else {self.method} & METHODS.keys():
            find_method(name).settings(name, self.settings)
        if self.extraction is not None and self.extraction not in EXTRACTIONS:
            raise unknown_name("extraction", self.extraction, EXTRACTIONS)
        if self.threshold is not None and self.extraction not in THRESHOLDED:
            raise InputError(f"A threshold belongs to the extractions {' and '.join(THRESHOLDED)}: name one of them.")
        if self.threshold is not None:
            check_share("threshold", self.threshold)

    @property
    def is_open(self) -> bool:
        """Say whether there is something to choose."""
        named = {"layer", "reading"} <= self.settings.keys() and self.extraction is not None
        return self.method == AUTO or (self.method in LAYERED_METHODS and not named)


@dataclass(frozen=True)
class Way:
    """One way to read alignments off a model."""

    method: str
    settings: Mapping[str, Any]
    extraction: str
    threshold: float | None = None

    def __str__(self) -> str:
        settings = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return " ".join(filter(None, (self.method, settings, f"extraction={self.extraction}")))

    def extract(self, attribution: Attribution) -> Alignment:
        """Read the links off an attribution."""
        return extract_alignment(attribution, self.extraction, self.threshold)

    @property
    def settings_of_all_layers(self) -> dict[str, Any]:
        """Give the settings of a pass that serves every layer."""
        return {**self.settings, "layer": "all"} if "layer" in self.settings else dict(self.settings)

    def extract_from_all_layers(self, attribution: Attribution) -> Alignment:
        """Read the links off what such a pass gave."""
        layer = self.settings.get("layer")
        if isinstance(layer, int):
            attribution = attribution.layer(layer)
        elif layer == "mean":
            attribution = attribution.mean("layer")
        return self.extract(attribution)


@dataclass(frozen=True)
class Candidate:
    """A way that was tried, the direction that it reads, and how well its links agreed."""

    direction: str
    way: Way
    score: float


@dataclass(frozen=True)
class Choice:
    """How each direction is read, and why."""

    forward: Way
    backward: Way | None = None
    criterion: str = "the user"
    pairs: int = 0
    candidates: tuple[Candidate, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give plain Python data, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Choice:
        """Build a choice from what `to_dict` gave."""
        return cls(
            Way(**plain["forward"]),
            None if plain["backward"] is None else Way(**plain["backward"]),
            plain["criterion"],
            plain["pairs"],
            tuple(Candidate(one["direction"], Way(**one["way"]), one["score"]) for one in plain["candidates"]),
        )
