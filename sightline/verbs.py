"""The line, once: text -> tokens -> model -> Attribution.

The command line, the studies and notebooks call these functions; none of them has logic of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, overload

from sightline.attribution import Attribution
from sightline.errors import InputError
from sightline.methods import find_method, resolved
from sightline.methods.scored import to_attributions
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.models.memory import positions_that_fit
from sightline.text.batches import map_in_batches
from sightline.text.words import Text

MAX_BATCH_SIZE = 64
# So many texts are held at a time, to be sorted by length.
WINDOW = 1024


@overload
def explain(model: Any, source: str, target: str | None = ..., **options: Any) -> Attribution: ...
@overload
def explain(
    model: Any, source: Sequence[Text], target: Sequence[Text] | None = ..., **options: Any
) -> list[Attribution]: ...
@overload
def explain(
    model: Any, source: Iterator[Text], target: Iterable[Text] | None = ..., **options: Any
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
    a time. A text is a string, or in a list also a list of words. Without a target the model gives its own: it
    translates, continues, classifies or fills in, with `generation` as the options of `generate`. `positions` names
    the outputs to explain, by their number among the target's tokens. The other settings are the method's.
    """
    loaded = load(model)
    if isinstance(source, str):
        if target is not None and not isinstance(target, str):
            raise InputError("The source is one text, so the target should be one text too.")
        pairs: Iterable[tuple[Text, Text | None]] = [(source, target)]
    else:
        if isinstance(target, str):
            raise InputError("The source is many texts and the target is one: give as many targets as sources.")
        pairs = _pairs(source, target)
    results = _explain_pairs(loaded, pairs, method, positions, generation or {}, settings)
    if isinstance(source, str):
        return next(results)
    if isinstance(source, Sequence):
        return list(_with_progress(results, len(source), progress))
    return results


def _pairs(sources: Iterable[Text], targets: Iterable[Text] | None) -> Iterator[tuple[Text, Text | None]]:
    if targets is None:
        yield from ((source, None) for source in sources)
        return
    if isinstance(sources, Sequence) and isinstance(targets, Sequence) and len(sources) != len(targets):
        raise InputError(f"There are {len(sources)} sources and {len(targets)} targets: give as many of each.")
    missing = object()
    for number, (source, target) in enumerate(itertools.zip_longest(sources, targets, fillvalue=missing), 1):
        if source is missing or target is missing:
            longer, shorter = ("targets", "sources") if source is missing else ("sources", "targets")
            raise InputError(f"There are more {longer} than {shorter}: the {shorter} end after {number - 1}.")
        yield source, target  # type: ignore[misc]


def _explain_pairs(
    model: LoadedModel,
    pairs: Iterable[tuple[Text, Text | None]],
    name: str,
    positions: Sequence[int] | None,
    generation: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> Iterator[Attribution]:
    method = find_method(name)
    settings = method.settings(name, changes)

    def explain_batch(examples: list[Example]) -> list[Attribution]:
        with model.evaluating():
            batch = model.batch(_answered(model, examples, positions, generation))
            scored = method.run(model, batch, settings)
            return to_attributions(model, batch, scored, name, resolved(settings))

    examples = (
        model.encode(source, target, name=f"source {number}") for number, (source, target) in enumerate(pairs, 1)
    )
    return map_in_batches(
        examples,
        explain_batch,
        len,
        max_positions=partial(positions_that_fit, model),
        max_size=MAX_BATCH_SIZE,
        window=WINDOW,
    )


def _answered(
    model: LoadedModel, examples: list[Example], positions: Sequence[int] | None, generation: Mapping[str, Any]
) -> list[Example]:
    """Let the model answer the examples that have no target, and keep the outputs asked for."""
    open_ones = [i for i, example in enumerate(examples) if not example.labels]
    if open_ones and model.task != "represent":
        answers = model.answer([examples[i] for i in open_ones], **generation)
        for i, ids in zip(open_ones, answers, strict=True):
            examples[i] = model.with_output(examples[i], ids)
    return examples if positions is None else [example.at(positions) for example in examples]


def _with_progress(results: Iterable[Attribution], total: int, progress: bool | None) -> Iterable[Attribution]:
    """Show a progress bar on a terminal's standard error; never in a file."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    shown = console.is_terminal if progress is None else progress
    return track(results, "Explaining", total=total, console=console, transient=True, disable=not shown)
