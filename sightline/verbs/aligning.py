"""Word alignments out of a translation model: text -> Attribution -> Alignment.

Each target word is explained by the source; with a model of the reverse direction, each source word by the target too,
and the two are joined.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, overload

import numpy as np
from jaxtyping import Float64

from sightline.alignment.bitext import build_bitext
from sightline.alignment.confidence import Knots, fit_confidences, set_confidences
from sightline.alignment.extraction import extract_alignment
from sightline.alignment.joining import join_one_way, join_scores
from sightline.alignment.links import Alignment
from sightline.alignment.saved import load_aligner
from sightline.alignment.sentences import Part
from sightline.alignment.statistical import ALIGNERS, TwoWayAligner, train_aligner
from sightline.alignment.symmetrization import symmetrize_all
from sightline.attribution import Attribution
from sightline.errors import InputError
from sightline.methods.adapter import ADAPTER
from sightline.methods.similarity import SIMILARITY
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.text.words import Text
from sightline.values import check_share
from sightline.verbs import explaining
from sightline.verbs.align_options import AUTO, AlignOptions
from sightline.verbs.choosing import find_choice, take_sample
from sightline.verbs.explaining import Pair, in_the_form_of, pair_up, recognise_directions
from sightline.verbs.long_texts import cut_texts, join_parts, list_words
from sightline.verbs.readout import Choice, Facing, Readings, count_words, face, has_words, read_pairs, words_of
from sightline.verbs.saved_choice import remember

_log = logging.getLogger("sightline")

Posteriors = Float64[np.ndarray, "_ _"]
"""What a statistical aligner says of one pair: target words, source words."""


@overload
def align(model: Any, sources: str, targets: str, **options: Any) -> Alignment: ...
@overload
def align(model: Any, sources: Sequence[Text], targets: Sequence[Text], **options: Any) -> list[Alignment]: ...
@overload
def align(model: Any, sources: Iterator[Text], targets: Iterable[Text], **options: Any) -> Iterator[Alignment]: ...


def align(
    model: Any,
    sources: Any,
    targets: Any,
    *,
    reverse: Any = None,
    method: str = AUTO,
    effort: str = "fast",
    choose_again: bool = False,
    use_adapter: bool = True,
    with_aligner: str | os.PathLike[str] | TwoWayAligner | None = None,
    join: str = "scores",
    extraction: str | None = None,
    threshold: float | None = None,
    symmetrize: str | None = None,
    min_confidence: float = 0.0,
    choice: Choice | None = None,
    on_choice: Callable[[Choice], None] | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Alignment | list[Alignment] | Iterator[Alignment]:
    """Link each target word to the source words that it came from, each link with its confidence.

    One pair of texts gives an Alignment, lists give a list, iterators an iterator that holds only a window of pairs at
    a time. A text is a string, or in a list also a list of words; a pair with an empty side has no links. Texts of more
    than 30 words are aligned sentence by sentence, as far as both sides have sentences that match.

    reverse: a model of the other direction; the two are joined. A model that translates both ways is its own reverse;
        with False only its one direction counts. Unless a language was named when it was loaded, the texts of each
        pair decide which way it goes.
    method: `auto` reads the alignment adapter where the model has one (`sightline adapt`) and no setting such as a
        layer is named. Otherwise it chooses between norms and attention, layers, heads and readings on the first
        pairs, without gold (`explain_choice`).
        `similarity` compares states of any encoder; or any of `sightline methods`.
    effort: `fast` chooses from what one pass gives; `best` tries SmoothGrad saliency too, which takes 30 times as long.
    choose_again: choose anew where a choice is remembered.
    use_adapter: False to leave an adapter aside.
    with_aligner: join the model with a statistical aligner, by the product of their probabilities: `diagonal`, `hmm` or
        `ibm1` to train one on these pairs (all of them are held then), or a saved aligner or its file.
    join: `scores` joins the scores of both directions before links are read off them each way, `links` the links alone.
    extraction: how links are read off scores, one of `sightline.alignment.extraction`; by default `argmax-words`.
    threshold: of the extractions `threshold` and `softmax`.
    symmetrize: the rule that joins the links of two directions, `grow-diag-strict` by default. `intersection` has the
        surest links, `grow-diag-final` and `union` the most.
    min_confidence: leave out links that are less sure.
    choice: how to read the models, as `explain_choice` returned it for the same models and options: nothing is chosen.
    on_choice: called with the `Choice` that is made or remembered, before the first pair is aligned.
    progress: show a progress bar; by default on a terminal.

    The other settings are the method's: layer, head, reading, smoothgrad and so on.
    """
    if targets is None:
        raise InputError("There are no targets to align with: `translate` with align=True makes them.")
    aligner = build_aligner(
        model,
        reverse=reverse,
        method=method,
        effort=effort,
        choose_again=choose_again,
        use_adapter=use_adapter,
        with_aligner=with_aligner,
        join=join,
        extraction=extraction,
        threshold=threshold,
        symmetrize=symmetrize,
        min_confidence=min_confidence,
        choice=choice,
        on_choice=on_choice,
        **settings,
    )
    return in_the_form_of(sources, aligner.align(pair_up(sources, targets)), "Aligning", progress)


def explain_choice(model: Any, sources: Any, targets: Any, **options: Any) -> Choice:
    """Return how `align` reads alignments off these models and why: the candidates and their scores.

    A choice that is remembered is returned as it is; otherwise the first pairs decide.
    """
    return build_aligner(model, **options).choose(pair_up(sources, targets))


def build_aligner(
    model: Any,
    *,
    reverse: Any = None,
    method: str = AUTO,
    use_adapter: bool = True,
    choose_again: bool = False,
    with_aligner: str | os.PathLike[str] | TwoWayAligner | None = None,
    min_confidence: float = 0.0,
    choice: Choice | None = None,
    on_choice: Callable[[Choice], None] | None = None,
    **options: Any,
) -> ModelAligner:
    """Check the options of `align`, and build what aligns pairs."""
    forward = load(model)
    backward = load_reverse(forward, reverse, method)
    names = ("effort", "extraction", "threshold", "symmetrize", "join")
    named = {name: options.pop(name) for name in names if name in options}
    # Who names a layer, or more effort, asks for another reading than the adapter's, which has neither.
    asks_for_more = options or named.get("effort", "fast") != "fast"
    if method == AUTO and use_adapter and forward.adapter is not None and not asks_for_more:
        method = ADAPTER
    chosen = AlignOptions(method=method, settings=options, **named)
    check_share("min_confidence", min_confidence)
    if chosen.method != SIMILARITY and not forward.generates:
        raise InputError(
            f"{type(forward.module).__name__} makes no target from a source: align with the method {SIMILARITY}, "
            "which any encoder allows, or take a translation model."
        )
    if chosen.symmetrize is not None and backward is None and method != ADAPTER:
        raise InputError(
            f"The rule {chosen.symmetrize!r} joins two directions: give the model of the other one as reverse."
        )
    with_aligner = find_aligner(with_aligner)
    if with_aligner is not None and chosen.reads_either_sign:
        raise InputError("Similarities are no probabilities, which an aligner could be joined with: name a method.")
    return ModelAligner(forward, backward, chosen, with_aligner, min_confidence, choose_again, choice, on_choice)


def find_aligner(with_aligner: str | os.PathLike[str] | TwoWayAligner | None) -> TwoWayAligner | str | None:
    """Return the aligner that a model is joined with: its name where it is yet to be trained, else the saved one."""
    if with_aligner is None or isinstance(with_aligner, TwoWayAligner):
        return with_aligner
    if with_aligner in ALIGNERS:
        return str(with_aligner)
    if not os.path.exists(with_aligner):
        raise InputError(f"{with_aligner} is no file of a saved aligner, and none of {', '.join(ALIGNERS)}.")
    return load_aligner(with_aligner)


def load_reverse(forward: LoadedModel, reverse: Any, method: str = AUTO) -> LoadedModel | None:
    """Load the model of the other direction; one that translates both ways is its own, for methods with a direction."""
    if reverse is None:
        return None if method == SIMILARITY else forward.other_way
    if reverse is False:
        return None
    backward = load(reverse)
    same_direction = backward.prompt.target_lang == forward.prompt.target_lang
    return (backward.other_way or backward) if same_direction else backward


@dataclass(frozen=True)
class ModelAligner:
    """A model, perhaps its reverse, and how to align with them."""

    model: LoadedModel
    reverse: LoadedModel | None
    options: AlignOptions
    with_aligner: TwoWayAligner | str | None
    min_confidence: float
    choose_again: bool
    choice: Choice | None
    on_choice: Callable[[Choice], None] | None

    def align(self, pairs: Iterator[Pair]) -> Iterator[Alignment]:
        """Align pairs, in order, a window of them at a time."""
        statistical, pairs = self._statistical(recognise_directions(self.model, pairs))
        texts: deque[tuple[Pair, list[Part]]] = deque()
        aligned = self._align_parts(cut_texts(pairs, texts), statistical)
        for first in aligned:
            pair, parts = texts.popleft()
            if len(parts) == 1:
                yield first
            else:
                yield join_parts(pair, parts, [first, *islice(aligned, len(parts) - 1)])

    def _align_parts(self, pairs: Iterator[Pair], statistical: TwoWayAligner | None) -> Iterator[Alignment]:
        choice = self.choice
        for window in self._windows(pairs):
            if choice is None:
                choice = self._choose(window)
            yield from self._align_window(window, choice, statistical)

    def choose(self, pairs: Iterator[Pair]) -> Choice:
        """Return how pairs are read, by the first of them."""
        parts = cut_texts(recognise_directions(self.model, pairs), deque())
        return self._choose(next(self._windows(parts), []))

    def _choose(self, window: Sequence[Facing]) -> Choice:
        choice = find_choice(self.model, self.reverse, self.options, window, choose_again=self.choose_again)
        if choice.pairs and not choice.is_remembered:
            choice = replace(choice, confidence=self._fit_confidences(take_sample(window), choice))
            choice = replace(choice, kept_in=remember(self.model, self.reverse, self.options, choice))
        if self.on_choice is not None:
            self.on_choice(choice)
        elif choice.kept_in is not None:
            _log.warning("How to read alignments off this model is kept in %s.", choice.kept_in)
        return choice

    def _fit_confidences(self, sample: Sequence[Facing], choice: Choice) -> Knots:
        """Find out what confidences mean, by an aligner that is trained on the sample."""
        words = [words_of(one.pair) for one in sample]
        others = list(train_aligner(build_bitext(words), "diagonal").align(words, "union"))
        return fit_confidences(list(self._align_window(sample, choice, None)), others)

    def _windows(self, pairs: Iterator[Pair]) -> Iterator[list[Facing]]:
        while window := [self._face(pair) for pair in islice(pairs, explaining.WINDOW)]:
            yield window

    def _face(self, pair: Pair) -> Facing:
        if self.options.method == SIMILARITY:
            return Facing(pair, pair if has_words(pair) else None, None)
        return face(self.model, self.reverse, pair, one_way=self._reads_one_way)

    @property
    def _reads_one_way(self) -> bool:
        """Return whether every pair is read the way that the model was loaded for, and then turned back."""
        return self.reverse is not None or self.options.method == ADAPTER

    def _statistical(self, pairs: Iterator[Pair]) -> tuple[TwoWayAligner | None, Iterator[Pair]]:
        """Return the statistical aligner, trained on all pairs if it is not yet, and the pairs."""
        if not isinstance(self.with_aligner, str):
            return self.with_aligner, pairs
        every = list(pairs)
        words = list(self.words_to_train_on(iter(every)))
        return train_aligner(build_bitext(words), self.with_aligner) if words else None, iter(every)

    def words_to_train_on(self, pairs: Iterator[Pair]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """Yield the words of the pairs that have some, each pair turned the way that the model was loaded for."""
        for pair in recognise_directions(self.model, pairs):
            if has_words(pair):
                yield words_of(pair.one_way())

    def _align_window(
        self, window: Sequence[Facing], choice: Choice, statistical: TwoWayAligner | None
    ) -> Iterator[Alignment]:
        read = [one for one in window if one.is_read]
        readings = read_pairs(self.model, self.reverse, choice, read)
        posteriors: Iterable[Posteriors | None] = [None] * len(read)
        if statistical is not None:
            found = statistical.posteriors([words_of(one.pair.one_way()) for one in read])
            turned = (one.pair.turned and not self._reads_one_way for one in read)
            posteriors = [one.T if is_turned else one for one, is_turned in zip(found, turned, strict=True)]
        linked = self._link(readings, posteriors)
        for one in window:
            links = next(linked) if one.is_read else _no_links(one.pair)
            if one.is_read and one.pair.turned and self._reads_one_way:
                links = links.flipped()
            if statistical is None:
                links = set_confidences(links, choice.confidence)
            links = links.threshold(self.min_confidence) if self.min_confidence else links
            yield links.with_words(list_words(one.pair.source), list_words(one.pair.target))

    def _link(self, readings: Iterator[Readings], posteriors: Iterable[Posteriors | None]) -> Iterator[Alignment]:
        both = [self._join(*one) for one in zip(readings, posteriors, strict=True)]
        forward = map(self._extract, (ahead for ahead, _ in both))
        if not both or both[0][1] is None:
            return forward
        backward = (self._extract(back).flipped() for _, back in both if back is not None)
        return symmetrize_all(forward, backward, self.options.rule)

    def _join(self, readings: Readings, posteriors: Posteriors | None) -> tuple[Attribution, Attribution | None]:
        if not readings.backward:
            return join_one_way(readings.forward, posteriors), None
        if posteriors is None and (self.options.join == "links" or self.options.reads_either_sign):
            # The second reading of an adapter is the other model's, which speaks for itself.
            own = slice(1) if self.options.method == ADAPTER else slice(None)
            return join_one_way(readings.forward[own]), join_one_way(readings.backward[own])
        return join_scores(readings.forward, readings.backward, posteriors)

    def _extract(self, attribution: Attribution) -> Alignment:
        return extract_alignment(attribution, self.options.chosen_extraction, self.options.threshold)


def _no_links(pair: Pair) -> Alignment:
    return Alignment((), (), count_words(pair.source), count_words(pair.target))
