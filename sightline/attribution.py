"""The value that methods make and that alignments, measures and pictures take.

An `Attribution` holds, for one example, how much each input position counted for each output position.
It is immutable: every operation returns a new one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from sightline.errors import InputError, missing_package, unknown_name
from sightline.json_files import check_fields
from sightline.sealed import read_arrays

if TYPE_CHECKING:
    import pandas
    from rich.console import Console

TARGET, COLUMNS = ("target",), ("source", "prefix")
REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {"sum": np.sum, "mean": np.mean, "max": np.max}


@dataclass(frozen=True)
class Tokens:
    """The positions of one side: their pieces, and the word that each piece belongs to.

    A position without a word (`None`) is special: a begin, end, language or separator token.
    """

    pieces: tuple[str, ...] = ()
    word_ids: tuple[int | None, ...] = ()
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.pieces) == len(self.word_ids), "every piece has a word id, or None"
        assert all(word is None or 0 <= word < len(self.words) for word in self.word_ids)

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def special(self) -> Bool[np.ndarray, " position"]:
        """Return which positions are special."""
        return np.array([word is None for word in self.word_ids], dtype=bool)

    def take(self, positions: Sequence[int] | np.ndarray) -> Tokens:
        """Keep some positions; words keep their numbers."""
        return Tokens(tuple(self.pieces[i] for i in positions), tuple(self.word_ids[i] for i in positions), self.words)

    def groups(self) -> list[list[int]]:
        """List the positions of each word in order of appearance; a special position stands alone."""
        groups: dict[object, list[int]] = {}
        for position, word in enumerate(self.word_ids):
            key = ("special", position) if word is None else word
            groups.setdefault(key, []).append(position)
        return list(groups.values())

    def as_words(self) -> Tokens:
        """Return one position for each word (and for each special position), in the order of `groups`."""
        firsts = [group[0] for group in self.groups()]
        word_ids = tuple(self.word_ids[i] for i in firsts)
        pieces = tuple(
            self.pieces[i] if word is None else self.words[word] for i, word in zip(firsts, word_ids, strict=True)
        )
        return Tokens(pieces, word_ids, self.words)

    def to_dict(self) -> dict[str, list[Any]]:
        return {"tokens": list(self.pieces), "words": list(self.words), "word_ids": list(self.word_ids)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Tokens:
        return cls(tuple(plain["tokens"]), tuple(plain["word_ids"]), tuple(plain["words"]))


NO_TOKENS = Tokens()


class Top(NamedTuple):
    """One of the highest-scoring inputs of an output: its column, its token, its score."""

    column: int
    token: str
    score: float


@dataclass(frozen=True, eq=False)
class Attribution:
    """Scores from input positions (columns) to output positions (rows) of one example.

    The columns are the source and, where the method gives it, the target prefix after it. Where the method ran the
    vocabulary layer on the input as it is, `probabilities` and `ranks` (from 1) are those of the outputs; otherwise
    they are empty. `defaults` are the method's settings where nobody changed them.
    """

    scores: Float[np.ndarray, "*axes target column"]
    source: Tokens
    target: Tokens
    prefix: Tokens = NO_TOKENS
    axes: tuple[str, ...] = ()
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    probabilities: tuple[float, ...] = ()
    ranks: tuple[int, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float32)  # a copy: nobody else can change it
        scores.flags.writeable = False
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        object.__setattr__(self, "defaults", MappingProxyType(dict(self.defaults)))
        assert len(self.probabilities) == len(self.ranks)
        assert len(self.ranks) in (0, len(self.target)), "every output has a probability and a rank, or none has"
        expected = (len(self.target), len(self.source) + len(self.prefix))
        assert scores.shape[-2:] == expected, f"scores are {scores.shape}, tokens say {expected}"
        assert scores.ndim == len(self.axes) + 2, f"scores are {scores.shape}, axes are {self.axes}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attribution):
            return NotImplemented
        return self._plain() == other._plain() and np.array_equal(self.scores, other.scores)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Attribution.from_dict, (self._picture(),)  # a read-only mapping cannot be pickled as it is

    def __repr__(self) -> str:
        shape = ", ".join(
            f"{name}={size}" for name, size in zip((*self.axes, "target", "column"), self.scores.shape, strict=True)
        )
        return f"Attribution({self.method or 'scores'}: {shape})"

    # Choosing and merging

    def layer(self, index: int) -> Attribution:
        """Select one layer, counted from 0; negative numbers count from the last."""
        return self._select("layer", index)

    def heads(self, *indices: int) -> Attribution:
        """Average the heads named, or all of them; one number selects that head."""
        if len(indices) == 1:
            return self._select("head", indices[0])
        axis = self._axis("head")
        chosen = [self._index("head", index) for index in indices] or list(range(self.scores.shape[axis]))
        return self._without_axis(axis, self.scores.take(chosen, axis).mean(axis))

    def mean(self, axis_name: str) -> Attribution:
        """Average over a leading axis."""
        axis = self._axis(axis_name)
        return self._without_axis(axis, self.scores.mean(axis))

    def flat(self) -> Attribution:
        """Average over every leading axis, so that one matrix is left."""
        return replace(self, scores=self.scores.mean(tuple(range(len(self.axes)))), axes=()) if self.axes else self

    def words(self, source: str = "sum", target: str = "mean") -> Attribution:
        """Merge the pieces of each word: by default the sum over source pieces, the mean over target pieces.

        Special positions stay as they are; `without_special` drops them. The prefix is merged as the source is. The
        probability of a word is that of all its pieces, its rank that of the first.
        """
        groups = self.target.groups() if self.ranks else []
        scores = _merge(self.scores, self.target.groups(), -2, target)
        boundary = len(self.source)
        prefix_groups = [[boundary + position for position in group] for group in self.prefix.groups()]
        scores = _merge(scores, self.source.groups() + prefix_groups, -1, source)
        return replace(
            self,
            scores=scores,
            source=self.source.as_words(),
            target=self.target.as_words(),
            prefix=self.prefix.as_words(),
            probabilities=tuple(math.prod(self.probabilities[i] for i in group) for group in groups),
            ranks=tuple(self.ranks[group[0]] for group in groups),
        )

    def without_special(self) -> Attribution:
        """Drop special positions (begin, end, language and separator tokens) on both sides."""
        return self.take(
            np.flatnonzero(~self.target.special),
            np.flatnonzero(~np.concatenate([self.source.special, self.prefix.special])),
        )

    def without_prefix(self) -> Attribution:
        """Drop the columns of the target prefix."""
        return self.take(range(len(self.target)), range(len(self.source)))

    def take(self, rows: Sequence[int] | np.ndarray, columns: Sequence[int] | np.ndarray) -> Attribution:
        """Keep some rows and columns."""
        columns = np.asarray(columns, dtype=int)
        boundary = len(self.source)
        return replace(
            self,
            scores=self.scores[..., np.asarray(rows, dtype=int), :][..., columns],
            source=self.source.take(columns[columns < boundary]),
            prefix=self.prefix.take(columns[columns >= boundary] - boundary),
            target=self.target.take(rows),
            probabilities=tuple(self.probabilities[row] for row in rows) if self.ranks else (),
            ranks=tuple(self.ranks[row] for row in rows) if self.ranks else (),
        )

    def normalized(self, by: str = "sum") -> Attribution:
        """Make every row comparable.

        `sum` divides by the sum of absolute values (signs stay), `clamp` sets negative scores to zero and divides
        by the sum, `softmax` exponentiates. A row without any mass becomes zeros, never NaN.
        """
        scores = self.scores.astype(np.float64)
        if by == "sum":
            mass = np.abs(scores)
        elif by == "clamp":
            mass = scores = np.maximum(scores, 0)
        elif by == "softmax":
            top = scores.max(-1, keepdims=True) if scores.shape[-1] else 0
            mass = scores = np.exp(scores - top)
        else:
            raise unknown_name("normalisation", by, ["sum", "clamp", "softmax"])
        total = mass.sum(-1, keepdims=True)
        return replace(self, scores=np.divide(scores, total, out=np.zeros_like(scores), where=total > 0))

    def top(self, k: int = 1) -> list[list[Top]]:
        """List, for each row, its k highest-scoring inputs, best first; ties go to the earlier column."""
        if self.axes:
            raise InputError(f"top() needs one matrix: choose or average {' and '.join(self.axes)} first.")
        names = self.source.pieces + self.prefix.pieces
        order = np.argsort(-self.scores, axis=-1, kind="stable")[:, :k]
        return [
            [Top(int(column), names[column], float(row[column])) for column in best]
            for row, best in zip(self.scores, order, strict=True)
        ]

    def _axis(self, name: str) -> int:
        if name not in self.axes:
            raise InputError(f"This attribution has no axis {name!r}; it has {', '.join(self.axes) or 'none'}.")
        return self.axes.index(name)

    def _index(self, name: str, index: int) -> int:
        size = self.scores.shape[self._axis(name)]
        if not -size <= index < size:
            raise InputError(f"There is no {name} {index}: this attribution has {size}, numbered 0 to {size - 1}.")
        return index % size

    def _select(self, name: str, index: int) -> Attribution:
        return self._without_axis(self._axis(name), self.scores.take(self._index(name, index), self._axis(name)))

    def _without_axis(self, axis: int, scores: np.ndarray) -> Attribution:
        return replace(self, scores=scores, axes=self.axes[:axis] + self.axes[axis + 1 :])

    # Giving it to others

    def labels(self) -> dict[str, Any]:
        """Return everything but the scores as plain Python data."""
        return {
            "method": self.method,
            "settings": dict(self.settings),
            "axes": list(self.axes),
            "source": self.source.to_dict(),
            "target": self.target.to_dict(),
            "prefix": self.prefix.to_dict(),
        }

    def _plain(self) -> dict[str, Any]:
        """Return the labels, and what is known of the outputs and the method besides."""
        more = {
            "probabilities": list(self.probabilities),
            "ranks": list(self.ranks),
            "defaults": dict(self.defaults),
        }
        return self.labels() | {name: value for name, value in more.items() if value}

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python data, ready for JSON."""
        return self._plain() | {"scores": self.scores.tolist()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Attribution:
        """Build an Attribution from what `to_dict` gave."""
        try:
            scores = np.asarray(plain["scores"], dtype=np.float32)
            if scores.size == 0:  # nested lists cannot say how long an empty axis is after another empty one
                rows, columns = (sum(len(plain[side]["tokens"]) for side in sides) for sides in (TARGET, COLUMNS))
                scores = scores.reshape(*scores.shape[: len(plain["axes"])], rows, columns)
            _check_labels(plain, scores.shape)
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"This is not the plain data of an attribution: {error}.") from None
        sides = {side: Tokens.from_dict(plain[side]) for side in (*TARGET, *COLUMNS)}
        return cls(
            scores=scores,
            axes=tuple(plain["axes"]),
            method=plain["method"],
            settings=plain["settings"],
            probabilities=tuple(map(float, plain.get("probabilities", ()))),
            ranks=tuple(plain.get("ranks", ())),
            defaults=plain.get("defaults", {}),
            **sides,
        )

    def to_dataframe(self) -> pandas.DataFrame:
        """Return one row per score, with the names of its target and column (needs pandas: the extra `plot`)."""
        try:
            import pandas
        except ImportError as error:
            raise missing_package("to_dataframe()", error) from None
        indices = np.indices(self.scores.shape).reshape(self.scores.ndim, -1)
        names = np.array(self.source.pieces + self.prefix.pieces, dtype=object)
        sides = np.array(["source"] * len(self.source) + ["prefix"] * len(self.prefix), dtype=object)
        return pandas.DataFrame(
            {name: indices[i] for i, name in enumerate(self.axes)}
            | {
                "target": indices[-2],
                "target_token": np.array(self.target.pieces, dtype=object)[indices[-2]],
                "column": indices[-1],
                "column_token": names[indices[-1]],
                "side": sides[indices[-1]],
                "score": self.scores.reshape(-1),
            }
        )

    def to_bertviz(self) -> dict[str, Any]:
        """Return what BertViz takes as it is: `head_view(**why.to_bertviz())`, and so for `model_view`.

        One tensor (1, head, target, source) for each layer, and the tokens of both sides.
        """
        scores = self.scores
        for position, name in enumerate(("layer", "head")):
            if name not in self.axes:
                scores = np.expand_dims(scores, position)
        if scores.ndim != 4:
            raise InputError(f"BertViz shows layers and heads only: choose or average {', '.join(self.axes)} first.")
        # Values need no torch, so it is imported by name, and only for those who have it anyway.
        as_tensor = import_module("torch").tensor
        return {
            "cross_attention": [as_tensor(layer[None]) for layer in scores],
            "decoder_tokens": list(self.target.pieces),
            "encoder_tokens": list(self.source.pieces + self.prefix.pieces),
        }

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write this attribution to a file in the format that its suffix, or `format`, names.

        parquet (exact, with a checksum), json, jsonl, csv, html, svg, png
        """
        save_attributions([self], path, format)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Attribution:
        """Read the one attribution of a file."""
        several = list(load_attributions(path))
        if len(several) != 1:
            raise InputError(f"{path} holds {len(several)} attributions: read it with load_attributions.")
        return several[0]

    # Looking at it

    def _picture(self) -> dict[str, Any]:
        """Return what views draw; the scores stay an array, since nested lists of them would be large."""
        return self._plain() | {"scores": self.scores}

    def show(self, console: Console | None = None) -> None:
        """Print a heat map and the strongest links to the terminal; leading axes are averaged."""
        from sightline.view.terminal import show

        show(self._picture(), console)

    def to_html(self) -> str:
        """Return a self-contained page."""
        from sightline.view.html import render_page

        return render_page([self._picture()], title=f"Sightline: {self.method}")

    def to_svg(self, view: str = "heat_map") -> str:
        """Return a vector graphic: the `heat_map`, or the `links`."""
        from sightline.view.svg import render_svg

        return render_svg(self._picture(), view)

    def widget(self) -> Any:
        """Return a widget for notebooks (needs anywidget: the extra `notebook`)."""
        from sightline.view.notebook import build_widget

        return build_widget(self._picture())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return the widget where a notebook can show it, and always the HTML that needs none."""
        from sightline.view.notebook import widget_bundle

        plain = {"text/plain": repr(self), "text/html": self._repr_html_()}
        return plain if (bundle := widget_bundle(self._picture())) is None else bundle | plain

    def _repr_html_(self) -> str:
        from sightline.view.html import render_fragment

        return render_fragment(self._picture())


def _merge(scores: np.ndarray, groups: list[list[int]], axis: int, how: str) -> np.ndarray:
    if how not in REDUCTIONS:
        raise unknown_name("way to merge pieces", how, REDUCTIONS)
    if not groups:
        return scores
    return np.stack([REDUCTIONS[how](scores.take(group, axis), axis=axis) for group in groups], axis)


def save_attributions(
    attributions: Iterable[Attribution], path: str | os.PathLike[str], format: str | None = None
) -> int:
    """Write attributions to one file as they come, whole or not at all, and return how many there were.

    The suffix, or `format`, is the format: parquet (which `load_attributions` reads), jsonl, csv, or html for a page.
    """
    from sightline.saving import save_plain

    return save_plain((one._picture() for one in attributions), path, format)


def load_attributions(path: str | os.PathLike[str]) -> Iterator[Attribution]:
    """Read the attributions of a Parquet file one by one; memory does not grow with the file.

    The file is verified by its checksum first.
    """
    for labels, scores in read_arrays(path, _check_labels):
        yield Attribution.from_dict(labels | {"scores": scores})


def _check_labels(labels: Any, shape: Sequence[int]) -> None:
    """Raise a ValueError if labels are not those of an attribution with scores of this shape."""
    sides = dict.fromkeys(("source", "target", "prefix"), dict)
    check_fields(labels, {"method": str, "settings": dict, "axes": list, **sides})
    lengths = {}
    for side in sides:
        plain = check_fields(labels[side], {"tokens": list, "words": list, "word_ids": list})
        pieces, words, word_ids = plain["tokens"], plain["words"], plain["word_ids"]
        lengths[side] = len(pieces)
        if not all(isinstance(text, str) for text in (*pieces, *words)) or len(word_ids) != len(pieces):
            raise ValueError(f"its {side} is not made of texts with a word each")
        if not all(word is None or (type(word) is int and 0 <= word < len(words)) for word in word_ids):
            raise ValueError(f"its {side} has pieces of words that it lacks")
    expected = (lengths["target"], lengths["source"] + lengths["prefix"])
    if not all(isinstance(axis, str) for axis in labels["axes"]) or len(shape) != len(labels["axes"]) + 2:
        raise ValueError("its axes are not those of its scores")
    probabilities, ranks = labels.get("probabilities", []), labels.get("ranks", [])
    if not (isinstance(probabilities, list) and isinstance(ranks, list) and len(probabilities) == len(ranks)):
        raise ValueError("its probabilities and ranks do not belong together")
    if len(ranks) not in (0, expected[0]) or not all(type(rank) is int and rank > 0 for rank in ranks):
        raise ValueError("its ranks are not those of its outputs")
    if not all(type(value) in (int, float) and 0 <= value <= 1 for value in probabilities):
        raise ValueError("its probabilities are not between 0 and 1")
    if not isinstance(labels.get("defaults", {}), dict):
        raise ValueError("its defaults are no settings")
    if tuple(shape[-2:]) != expected or min(shape) < 0:
        raise ValueError(f"its scores are {tuple(shape)}, its tokens {expected}")
