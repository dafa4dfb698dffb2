"""Readouts: how alignments are read off a model, and the readings that they give of encoded pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sightline.alignment.confidence import Knots
from sightline.attribution import Attribution
from sightline.methods.adapter import ADAPTER, BothWays, read_both_ways
from sightline.methods.similarity import SIMILARITY, SimilaritySettings, similarity
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.text.words import Source, split_segments, split_words
from sightline.verbs.explaining import Pair, explain_pairs, map_examples


@dataclass(frozen=True)
class Readout:
    """One way to read a direction: a method with its settings, alone or times another one."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    times: Readout | None = None

    def __str__(self) -> str:
        settings = " ".join(f"{name}={value}" for name, value in self.settings.items())
        own = " ".join(filter(None, (self.method, settings)))
        return own if self.times is None else f"{own}, times {self.times}"

    @property
    def parts(self) -> list[Readout]:
        """List the readouts whose scores are multiplied."""
        return [self] if self.times is None else [self, *self.times.parts]

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Readout:
        """Build a readout from what `dataclasses.asdict` returned."""
        times = plain["times"]
        return cls(str(plain["method"]), dict(plain["settings"]), None if times is None else cls.from_dict(times))


@dataclass(frozen=True)
class Candidate:
    """A readout that was tried, the direction that it reads, and its score: alone and, of the best, joined."""

    direction: str
    readout: Readout
    score: float
    joined: float | None = None


BY_USER = "the user"


@dataclass(frozen=True)
class Choice:
    """How each direction is read, and why."""

    forward: Readout
    backward: Readout | None = None
    criterion: str = BY_USER
    pairs: int = 0
    sample: str = ""
    """The first source of the pairs that it was chosen on."""
    candidates: tuple[Candidate, ...] = ()
    confidence: Knots = ()
    """What the confidences of links mean (`sightline.alignment.confidence`)."""
    is_remembered: bool = field(default=False, compare=False)
    kept_in: Path | None = field(default=None, compare=False)
    """The file that it was just written to."""

    def __str__(self) -> str:
        back = "" if self.backward in (None, self.forward) else f"; backward: {self.backward}"
        if not self.pairs:
            return f"Read by {self.forward}{back}: {self.criterion}."
        how = "remembered: chosen" if self.is_remembered else "chosen"
        return (
            f"Read by {self.forward}{back} ({how} by {self.criterion}, on {self.pairs} pairs, the first of them "
            f"{self.sample!r})." + ("" if self.kept_in is None else f" That is kept in {self.kept_in}.")
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python data, ready for JSON."""
        plain = asdict(self)
        del plain["is_remembered"], plain["kept_in"]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Choice:
        """Build a choice from what `to_dict` returned."""
        return cls(
            Readout.from_dict(plain["forward"]),
            None if plain["backward"] is None else Readout.from_dict(plain["backward"]),
            str(plain["criterion"]),
            int(plain["pairs"]),
            str(plain["sample"]),
            tuple(
                Candidate(
                    str(one["direction"]),
                    Readout.from_dict(one["readout"]),
                    float(one["score"]),
                    None if one["joined"] is None else float(one["joined"]),
                )
                for one in plain["candidates"]
            ),
            tuple((float(before), float(after)) for before, after in plain["confidence"]),
        )


class Facing(NamedTuple):
    """A pair as each direction reads it, encoded once; None where it is not read, for lack of words or of a model."""

    pair: Pair
    ahead: Pair | None
    back: Pair | None

    @property
    def is_read(self) -> bool:
        return self.ahead is not None


def face(model: LoadedModel, reverse: LoadedModel | None, pair: Pair, *, one_way: bool) -> Facing:
    """Turn a pair the way that each model reads it, and encode it; with `one_way`, the first one as it was loaded."""
    if not has_words(pair):
        return Facing(pair, None, None)
    ahead = pair.one_way() if one_way else pair
    ahead = ahead._replace(example=ahead.encode(model))
    if reverse is None:
        return Facing(pair, ahead, None)
    back = pair.other_way()
    return Facing(pair, ahead, back._replace(example=back.encode(reverse)))


def has_words(pair: Pair) -> bool:
    """Return whether both sides have words."""
    return count_words(pair.source) > 0 and count_words(pair.target) > 0


def count_words(text: Source | None) -> int:
    """Count the words of a text."""
    return len(text.split() if isinstance(text, str) else text or ())


def words_of(pair: Pair) -> tuple[Sequence[str], Sequence[str]]:
    """Split both sides of a pair into words."""
    return split_segments(pair.source, "source")[0], split_words(pair.target or "", "target")


class Readings(NamedTuple):
    """What is known of a pair: attributions with rows of target words, and attributions with rows of source words."""

    forward: list[Attribution]
    backward: list[Attribution]


def read_pairs(
    model: LoadedModel, reverse: LoadedModel | None, choice: Choice, pairs: Sequence[Facing]
) -> Iterator[Readings]:
    """Read pairs that have words, in both directions where there are two."""
    ahead = [one.ahead for one in pairs if one.ahead is not None]
    back = [one.back for one in pairs if one.back is not None]
    if choice.forward.method != ADAPTER:
        forward = read_one_way(model, choice.forward, ahead)
        if reverse is None:
            return (Readings(readings, []) for readings in forward)
        assert choice.backward is not None
        return map(Readings, forward, read_one_way(reverse, choice.backward, back))
    ahead_readings = _read_adapter(model, ahead)
    if reverse is None:
        return (Readings([one.forward], [one.backward]) for one in ahead_readings)
    return (
        Readings([one.forward, other.backward], [one.backward, other.forward])
        for one, other in zip(ahead_readings, _read_adapter(reverse, back), strict=True)
    )


def read_one_way(model: LoadedModel, readout: Readout, pairs: Sequence[Pair]) -> Iterator[list[Attribution]]:
    """Read pairs by each part of a readout; in order, as they come."""
    streams = [_read(model, part, pairs) for part in readout.parts]
    return map(list, zip(*streams, strict=True))


def _read(model: LoadedModel, readout: Readout, pairs: Iterable[Pair]) -> Iterator[Attribution]:
    if readout.method != SIMILARITY:
        return explain_pairs(model, pairs, readout.method, readout.settings)
    settings = SimilaritySettings.of(readout.settings)

    def compare(sides: list[tuple[Example, Example]]) -> list[Attribution]:
        return similarity(model, [source for source, _ in sides], [target for _, target in sides], settings)

    return map_examples(
        model, (_encode_apart(model, pair) for pair in pairs), compare, lambda sides: max(map(len, sides))
    )


def _encode_apart(model: LoadedModel, pair: Pair) -> tuple[Example, Example]:
    """Encode both sides as sources."""
    assert pair.target is not None
    facing = pair.facing(model)
    return (
        facing.encode(pair.source, None, name=f"source {pair.number}"),
        facing.encode(pair.target, None, name=f"target {pair.number}"),
    )


def _read_adapter(model: LoadedModel, pairs: Iterable[Pair]) -> Iterator[BothWays]:
    def read(examples: list[Example]) -> list[BothWays]:
        with model.evaluating():
            return read_both_ways(model, model.batch(examples))

    return map_examples(model, (pair.encode(model) for pair in pairs), read)
