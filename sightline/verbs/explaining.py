"""The line, once: text -> tokens -> model -> Attribution.

The other verbs, the command line, the studies and notebooks call these functions; none of them has logic of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

from sightline.attribution import Attribution
from sightline.errors import InputError
from sightline.methods import find_method, resolved
from sightline.methods.attention import read_layers
from sightline.methods.outputs import noting_odds
from sightline.methods.scored import to_attributions
from sightline.methods.settings import LayerSettings
from sightline.models.budget import positions_that_fit
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.text.batches import map_in_batches
from sightline.text.words import Source, Text

AUTO = "auto"
"""The name of the method that suits the model."""
MAX_BATCH_SIZE = 64
WINDOW = 1024
"""Number of texts that are held at a time, to be sorted by length."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@overload
def explain(model: Any, source: str | tuple[Text, Text], target: str | None = ..., **options: Any) -> Attribution: ...
@overload
def explain(
    model: Any, source: Sequence[Source], target: Sequence[Text] | None = ..., **options: Any
) -> list[Attribution]: ...
@overload
def explain(
    model: Any, source: Iterator[Source], target: Iterable[Text] | None = ..., **options: Any
) -> Iterator[Attribution]: ...


def explain(
    model: Any,
    source: Any,
    target: Any = None,
    *,
    method: str = "attention",
    positions: Sequence[int] | None = None,
    generation: Mapping[str, Any] | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Attribution | list[Attribution] | Iterator[Attribution]:
    """Show which inputs the model used for each output.

    One text gives an Attribution, a list of texts a list, an iterator an iterator that holds only a window of texts at
    a time. A text is a string, or in a list also a list of words; a tuple `(first, second)` is one text of two
    segments, for encoders such as BERT. Without a target the model gives its own: it translates, continues, classifies
    or fills in, with `generation` as the options of `generate`. `positions` names the outputs to explain, by their
    number among the target's tokens. The other settings are the method's. The method `auto` is `norms`, or `attention`
    where a model's output projection is not known, of a layer two thirds of the way up, where attention reads best.
    """
    loaded = load(model)
    method, settings = resolve_method(loaded, method, settings)
    pairs = recognise_directions(loaded, pair_up(source, target))
    results = explain_pairs(loaded, pairs, method, settings, positions=positions, generation=generation or {})
    return in_the_form_of(source, results, "Explaining", progress)


def resolve_method(model: LoadedModel, method: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a method and its settings, with those that `auto` stands for."""
    if method != AUTO:
        return method, settings
    method, usual = usual_method(model)
    return method, usual | settings


def usual_method(model: LoadedModel) -> tuple[str, dict[str, Any]]:
    """Return the method and the settings that `auto` stands for: one pass, one readable matrix."""
    layers = read_layers(model, LayerSettings()).layers
    has_norms = all(layer.output is not None for layer in layers)
    # Of 12 layers the ninth, as in SimAlign and awesome-align; of two or three the last.
    return "norms" if has_norms else "attention", {"layer": 2 * len(layers) // 3}


class Pair(NamedTuple):
    """A source and a target with their number in the input, from 1.

    `example` is the encoding where the model itself gave the target, whose pieces need not be the tokenizer's choice.
    `turned` says that the pair goes the model's other way; None, that this is not decided yet.
    """

    number: int
    source: Source
    target: Text | None
    example: Example | None = None
    turned: bool | None = None

    def encode(self, model: LoadedModel) -> Example:
        """Return the pair as the model reads it."""
        return self.example or self.facing(model).encode(self.source, self.target, name=f"source {self.number}")

    def facing(self, model: LoadedModel) -> LoadedModel:
        """Return the model for the direction of the pair."""
        if not self.turned:
            return model
        assert model.other_way is not None
        return model.other_way

    def flipped(self) -> Pair:
        """Exchange source and target."""
        assert self.target is not None
        assert not isinstance(self.source, tuple)
        return Pair(self.number, self.target, self.source, turned=False)

    def one_way(self) -> Pair:
        """Return the pair as a model of the first direction reads it: a turned one flipped."""
        return self.flipped() if self.turned else self

    def other_way(self) -> Pair:
        """Return the pair as a model of the reverse direction reads it: a turned one as it is."""
        return self._replace(turned=False) if self.turned else self.flipped()


MANY_AS_A_LIST = "A tuple (first, second) is one text of two segments: give many texts as a list."


def pair_up(source: Any, target: Any) -> Iterator[Pair]:
    """Number the sources and targets that a verb was given: one text each, or many."""
    if _is_one(source):
        if (isinstance(source, tuple) and len(source) != 2) or isinstance(target, tuple):
            raise InputError(MANY_AS_A_LIST)
        if target is not None and not isinstance(target, str):
            raise InputError("The source is one text, so the target should be one text too.")
        return iter([Pair(1, source, target)])
    if isinstance(target, str):
        raise InputError("The source is many texts and the target is one: give as many targets as sources.")
    if isinstance(source, Sequence) and isinstance(target, Sequence) and len(source) != len(target):
        raise InputError(f"There are {len(source)} sources and {len(target)} targets: give as many of each.")
    return _pairs(source, target)


def _is_one(source: Any) -> bool:
    """Return whether this is one text, perhaps of two segments, and not many."""
    return isinstance(source, str | tuple)


def _pairs(sources: Iterable[Source], targets: Iterable[Text] | None) -> Iterator[Pair]:
    if targets is None:
        yield from (Pair(number, source, None) for number, source in enumerate(sources, 1))
        return
    missing: Any = object()
    for number, (source, target) in enumerate(itertools.zip_longest(sources, targets, fillvalue=missing), 1):
        if source is missing or target is missing:
            longer, shorter = ("targets", "sources") if source is missing else ("sources", "targets")
            raise InputError(f"There are more {longer} than {shorter}: the {shorter} end after {number - 1}.")
        yield Pair(number, source, target)


def recognise_directions(model: LoadedModel, pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Decide about each pair which way it goes, where the model goes both and nobody has decided."""
    if model.guess is None:
        return pairs
    return (
        pair._replace(turned=model.facing(pair.source, pair.target) is not model) if pair.turned is None else pair
        for pair in pairs
    )


def in_the_form_of(source: Any, results: Iterator[Result], label: str, progress: bool | None) -> Any:
    """Return results in the form that the sources had: one for a text, a list for a list, else the iterator."""
    if _is_one(source):
        return next(results)
    if isinstance(source, Sequence):
        return list(_with_progress(results, len(source), label, progress))
    return results


def explain_pairs(
    model: LoadedModel,
    pairs: Iterable[Pair],
    name: str,
    changes: Mapping[str, Any],
    *,
    positions: Sequence[int] | None = None,
    generation: Mapping[str, Any] | None = None,
) -> Iterator[Attribution]:
    """Explain pairs by a method with some settings changed; in order, as they come."""
    method = find_method(name)
    settings = method.settings(name, changes)

    def explain_batch(examples: list[Example]) -> list[Attribution]:
        with model.evaluating():
            batch = model.batch(_answered(model, examples, positions, generation or {}))
            with noting_odds() as noted:
                scored = method.run(model, batch, settings)
            odds = noted[0] if noted else None
            return to_attributions(model, batch, scored, name, resolved(settings), resolved(method.defaults), odds)

    return map_examples(model, (pair.encode(model) for pair in pairs), explain_batch)


def map_examples(
    model: LoadedModel,
    examples: Iterable[Item],
    function: Callable[[list[Item]], Sequence[Result]],
    length: Callable[[Item], int] = len,  # type: ignore[assignment]
    copies: int = 1,
) -> Iterator[Result]:
    """Apply a function to batches of examples that fit into the model's memory; in order, as they come.

    `copies` says of how many hypotheses about each example the model holds states at once.
    """
    return map_in_batches(
        examples,
        function,
        length,
        max_positions=lambda length: positions_that_fit(model, length) // copies,
        max_size=MAX_BATCH_SIZE,
        window=WINDOW,
    )


def _answered(
    model: LoadedModel, examples: list[Example], positions: Sequence[int] | None, generation: Mapping[str, Any]
) -> list[Example]:
    """Let the model answer the examples that have no target, and keep the outputs asked for."""
    open_ones = [i for i, example in enumerate(examples) if not example.labels]
    if open_ones and model.has_output:
        answers = model.answer([examples[i] for i in open_ones], **generation)
        for i, ids in zip(open_ones, answers, strict=True):
            examples[i] = model.with_output(examples[i], ids)
    return examples if positions is None else [example.at(positions) for example in examples]


def _with_progress(results: Iterable[Result], total: int, label: str, progress: bool | None) -> Iterable[Result]:
    """Show a progress bar on a terminal's standard error; never in a file."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    shown = console.is_terminal if progress is None else progress
    return track(results, label, total=total, console=console, transient=True, disable=not shown)
