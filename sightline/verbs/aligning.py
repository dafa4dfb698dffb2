"""Word alignments out of a translation model: text -> Attribution -> Alignment.

Each target word is explained by the source; with a model of the reverse direction, each source word by the target too,
and the two alignments are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, tee
from typing import Any, NamedTuple, overload

from sightline.alignment.joining import join_scores
from sightline.alignment.links import Alignment
from sightline.alignment.symmetrization import DEFAULT_RULE, RULES, symmetrize_all
from sightline.attribution import Attribution
from sightline.errors import InputError, unknown_name
from sightline.methods.adapter import ADAPTER, BothWays, read_both_ways
from sightline.methods.similarity import SIMILARITY, SimilaritySettings, similarity
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.models.loading import load
from sightline.text.words import Source, Text
from sightline.verbs.choosing import SAMPLE, choose
from sightline.verbs.explaining import Pair, explain_pairs, in_the_form_of, map_examples, pair_up, recognise_directions
from sightline.verbs.remembering import ENOUGH_PAIRS, recall
from sightline.verbs.ways import AUTO, Asked, Choice, Way

JOINS = ("scores", "links")
"""What of two directions is joined: their scores and then their links, or their links alone."""

Explained = tuple[Pair, Attribution | None]


@overload
def align(model: Any, sources: str, targets: str, **options: Any) -> Alignment: ...
@overload
def align(model: Any, sources: Sequence[Text], targets: Sequence[Text], **options: Any) -> list[Alignment]: ...
@overload
def align(model: Any, sources: Iterator[Text], targets: Iterable[Text], **options: Any) -> Iterator[Alignment]: ...


def align(
    model: Any, sources: Any, targets: Any, *, progress: bool | None = None, **options: Any
) -> Alignment | list[Alignment] | Iterator[Alignment]:
    """Link each target word to the source words that it came from, each link with its confidence.

    One pair of texts gives an Alignment, lists give a list, iterators an iterator that holds only a window of pairs at
    a time. A text is a string, or in a list also a list of words; a pair with an empty side has no links. The options
    are those of `build_aligner`.
    """
    if targets is None:
        raise InputError("There are no targets to align with: `translate` with align=True makes them.")
    align_pairs = build_aligner(model, **options)
    return in_the_form_of(sources, align_pairs(pair_up(sources, targets)), "Aligning", progress)


def build_aligner(
    model: Any,
    *,
    reverse: Any = None,
    method: str = AUTO,
    symmetrize: str | None = None,
    join: str = "scores",
    extraction: str | None = None,
    threshold: float | None = None,
    use_adapter: bool = True,
    on_choice: Callable[[Choice], None] | None = None,
    **settings: Any,
) -> Callable[[Iterator[Pair]], Iterator[Alignment]]:
    """Check the options of `align`, and give the function that aligns pairs.

    `reverse` is a model of the other direction: the scores of both are joined before links are read off them each way
    (with join="links" they are not), and the links by the rule `symmetrize`. A model that translates both ways is its
    own reverse; with reverse=False only its one direction counts. Unless a language was named when it was loaded, the
    texts of each pair decide which way it goes. Of method, layer, reading and extraction, what is not named is chosen
    by a sample of the pairs, without gold, and told to `on_choice` (see `sightline.verbs.choosing`). The method may
    also be `similarity` or any of METHODS; the other settings are that method's. A model with an alignment adapter
    (`sightline adapt`) is read by it, unless a method is named or `use_adapter` is False.
    """
    if join not in JOINS:
        raise unknown_name("way to join directions", join, JOINS)
    forward = load(model)
    backward = load_reverse(forward, reverse, method)
    if method == AUTO and use_adapter and forward.adapter is not None:
        method = ADAPTER
    asked = Asked(method, extraction, threshold, settings)
    if asked.method == SIMILARITY or asked.extraction == "softmax":  # these read scores of either sign
        join = "links"
    rule = symmetrize or DEFAULT_RULE
    if rule not in RULES:
        raise unknown_name("symmetrisation rule", rule, RULES)
    if symmetrize is not None and backward is None and method != ADAPTER:
        raise InputError(f"The rule {symmetrize!r} joins two directions: give the model of the other one as reverse.")
    return partial(_align_pairs, forward, backward, asked, join, rule, on_choice)


def load_reverse(forward: LoadedModel, reverse: Any, method: str = AUTO) -> LoadedModel | None:
    """Load the model of the other direction; one that translates both ways is its own, for methods with a direction."""
    if reverse is None:
        return None if method == SIMILARITY else forward.other_way
    if reverse is False:
        return None
    backward = load(reverse)
    same_direction = backward.prompt.target_lang == forward.prompt.target_lang
    return (backward.other_way or backward) if same_direction else backward


def explain_choice(model: Any, sources: Any, targets: Any, **options: Any) -> Choice:
    """Say how `align` reads alignments off these models and why: the candidates and their scores.

    A choice that is remembered is given as it is; otherwise the first pairs decide.
    """
    choices: list[Choice] = []
    align_pairs = build_aligner(model, **options, on_choice=choices.append)
    next(align_pairs(pair_up(sources, targets)), None)
    return choices[0]


def _align_pairs(
    model: LoadedModel,
    reverse: LoadedModel | None,
    asked: Asked,
    join: str,
    rule: str,
    on_choice: Callable[[Choice], None] | None,
    pairs: Iterator[Pair],
) -> Iterator[Alignment]:
    """Align pairs in one direction, or in both and join them; in order, as they come."""
    choice, pairs = _choose_for(model, reverse, asked, recognise_directions(model, pairs))
    if on_choice is not None:
        on_choice(choice)
    if reverse is None and choice.forward.method != ADAPTER:
        for pair, why in _explain_each(model, pairs, choice.forward):
            yield _read_links(pair, why, choice.forward)
        return
    to_read, every_pair = tee(pairs)
    one, other = tee(_link_both_ways(_read_both_ways(model, reverse, choice, to_read), choice, join))
    joined = symmetrize_all((links for links, _ in one), (links.flipped() for _, links in other), rule)
    for pair, links in zip(every_pair, joined, strict=True):
        yield links.flipped() if pair.turned else links


class Readings(NamedTuple):
    """What is known of a pair: attributions with rows of target words, and attributions with rows of source words."""

    forward: list[Attribution]
    backward: list[Attribution]


def _read_both_ways(
    model: LoadedModel, reverse: LoadedModel | None, choice: Choice, pairs: Iterator[Pair]
) -> Iterator[tuple[Pair, Readings | None]]:
    """Read every pair in both directions; a pair without words on a side has no reading."""
    forward_pairs, backward_pairs, every_pair = tee(pairs, 3)
    ahead = map(Pair.one_way, filter(_has_words, forward_pairs))
    back = map(Pair.other_way, filter(_has_words, backward_pairs))
    readings: Iterator[Readings]
    if choice.forward.method != ADAPTER:
        assert reverse is not None
        assert choice.backward is not None
        forward, backward = _explain(model, ahead, choice.forward), _explain(reverse, back, choice.backward)
        readings = (Readings([one], [other]) for one, other in zip(forward, backward, strict=True))
    elif reverse is None:
        readings = (Readings([one.forward], [one.backward]) for one in _read_adapter(model, ahead))
    else:
        readings = (
            Readings([one.forward, other.backward], [one.backward, other.forward])
            for one, other in zip(_read_adapter(model, ahead), _read_adapter(reverse, back), strict=True)
        )
    for pair in every_pair:
        yield pair, next(readings) if _has_words(pair) else None


def _read_adapter(model: LoadedModel, pairs: Iterable[Pair]) -> Iterator[BothWays]:
    def read(examples: list[Example]) -> list[BothWays]:
        with model.evaluating():
            return read_both_ways(model, model.batch(examples))

    return map_examples(model, (pair.encode(model) for pair in pairs), read)


def _link_both_ways(
    pairs: Iterator[tuple[Pair, Readings | None]], choice: Choice, join: str
) -> Iterator[tuple[Alignment, Alignment]]:
    for pair, readings in pairs:
        if readings is None:
            why, why_back = None, None
        elif join == "scores":
            why, why_back = join_scores(*readings)
        else:
            why, why_back = readings.forward[0], readings.backward[0]
        yield (
            _read_links(pair.one_way(), why, choice.forward),
            _read_links(pair.other_way(), why_back, choice.backward or choice.forward),
        )


def _choose_for(
    model: LoadedModel, reverse: LoadedModel | None, asked: Asked, pairs: Iterator[Pair]
) -> tuple[Choice, Iterator[Pair]]:
    """Give the choice remembered, or made by the first pairs; and all pairs, those included."""
    choice = recall(model, reverse, asked)
    if choice is not None and choice.pairs >= ENOUGH_PAIRS:
        return choice, pairs
    sample = list(islice(pairs, SAMPLE)) if asked.is_open else []
    with_words = list(filter(_has_words, sample))
    if choice is None or len(with_words) > 2 * choice.pairs:  # more pairs know better
        facing = with_words if reverse is None else [pair.one_way() for pair in with_words]
        choice = choose(model, reverse, facing, asked)
    return choice, chain(sample, pairs)


def _explain_each(model: LoadedModel, pairs: Iterable[Pair], way: Way) -> Iterator[Explained]:
    """Explain every pair; one without words on a side has no explanation."""
    to_explain, every_pair = tee(pairs)
    attributions = _explain(model, filter(_has_words, to_explain), way)
    for pair in every_pair:
        yield pair, next(attributions) if _has_words(pair) else None


def _read_links(pair: Pair, why: Attribution | None, way: Way) -> Alignment:
    if why is None:
        return Alignment((), (), _count_words(pair.source), _count_words(pair.target))
    return way.extract(why)


def _explain(model: LoadedModel, pairs: Iterable[Pair], way: Way) -> Iterator[Attribution]:
    if way.method != SIMILARITY:
        return explain_pairs(model, pairs, way.method, way.settings)
    settings = SimilaritySettings.of(way.settings)

    def compare(sides: list[tuple[Example, Example]]) -> list[Attribution]:
        return similarity(model, [source for source, _ in sides], [target for _, target in sides], settings)

    return map_examples(model, map(partial(_encode_apart, model), pairs), compare, lambda sides: max(map(len, sides)))


def _encode_apart(model: LoadedModel, pair: Pair) -> tuple[Example, Example]:
    """Encode both sides as sources."""
    assert pair.target is not None
    facing = pair.facing(model)
    return (
        facing.encode(pair.source, None, name=f"source {pair.number}"),
        facing.encode(pair.target, None, name=f"target {pair.number}"),
    )


def _has_words(pair: Pair) -> bool:
    return _count_words(pair.source) > 0 and _count_words(pair.target) > 0


def _count_words(text: Source | None) -> int:
    return len(text.split() if isinstance(text, str) else text or ())
