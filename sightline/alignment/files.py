"""Aligning files with a statistical aligner: trained on them, or trained before and saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from sightline.alignment.bitext import Words, build_bitext
from sightline.alignment.columns import Alignments
from sightline.alignment.eflomal import align_with_eflomal
from sightline.alignment.parallel import read_pairs
from sightline.alignment.saved import load_aligner, save_aligner
from sightline.alignment.statistical import ALIGNERS, count_passes, train_aligner
from sightline.alignment.symmetrization import DEFAULT_RULE, RULES, symmetrize_in_columns
from sightline.errors import InputError, unknown_name
from sightline.files import FilePath, Position, check_writable

EFLOMAL = "eflomal"
LINES_AT_ONCE = 1000
"""Lines that are read before the count goes on."""


@runtime_checkable
class Steps(Protocol):
    """What shows how far the work is."""

    def begin(self, label: str, total: int | None = None) -> None:
        """Begin another step, of so many lines where that is known."""

    def advance(self, rows: int, share: float | None = None) -> None:
        """Count lines that are done; `share` says how much of the input they and those before them are."""


def align_files(
    source: FilePath,
    target: FilePath | None = None,
    *,
    aligner: str | None = None,
    rule: str | None = None,
    iterations: int | None = None,
    save: FilePath | None = None,
    load: FilePath | None = None,
    steps: Steps | None = None,
) -> Iterator[Alignments]:
    """Align parallel text (see `read_pairs`) in both directions, joined by a rule; yield many alignments at a time.

    `aligner` is ibm1, diagonal, hmm or eflomal, trained on this text and, except eflomal, saved where `save` says;
    `load` names one that was saved before, which takes any text. `steps` is told how far reading,
    training and aligning are.
    """
    rule = rule or DEFAULT_RULE
    if aligner is not None and aligner not in (EFLOMAL, *ALIGNERS):
        raise unknown_name("aligner", aligner, [*ALIGNERS, EFLOMAL])
    if (aligner is None) == (load is None):
        raise InputError("Name either an aligner to train on this text, or a saved one to load.")
    if save is not None and aligner in (None, EFLOMAL):
        raise InputError(f"Only an aligner that is trained here can be saved: {' or '.join(ALIGNERS)}.")
    if rule not in RULES:
        raise unknown_name("symmetrisation rule", rule, RULES)
    steps = steps or _Unseen()
    position = Position()
    steps.begin("Aligning" if load is not None else "Reading")
    pairs = _words(_count_lines(read_pairs(source, target, position=position), position, steps))
    if load is not None:
        return load_aligner(load).align_in_columns(pairs, rule)
    if aligner == EFLOMAL:
        forward, reverse = zip(*align_with_eflomal(_then_train(pairs, steps)), strict=True)
        return symmetrize_in_columns(forward, reverse, rule)
    assert aligner is not None
    if save is not None:
        check_writable(save)
    bitext = build_bitext(pairs)
    steps.begin(f"Training {aligner}", len(bitext) * count_passes(aligner, iterations))
    trained = train_aligner(bitext, aligner, iterations, steps.advance)
    if save is not None:
        save_aligner(trained, save)
    steps.begin("Aligning", len(bitext))
    return _count_aligned(trained.align_bitext(bitext, rule), steps)


def _words(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[Words, Words]]:
    for source, target in pairs:
        yield source.split(), target.split()


def _count_lines(pairs: Iterable[tuple[str, str]], position: Position, steps: Steps) -> Iterator[tuple[str, str]]:
    for number, pair in enumerate(pairs, start=1):
        yield pair
        if number % LINES_AT_ONCE == 0:
            steps.advance(LINES_AT_ONCE, position.share)


def _then_train(pairs: Iterable[tuple[Words, Words]], steps: Steps) -> Iterator[tuple[Words, Words]]:
    yield from pairs
    steps.begin(f"Training {EFLOMAL}")  # which does not say how far it is


def _count_aligned(aligned: Iterable[Alignments], steps: Steps) -> Iterator[Alignments]:
    for some in aligned:
        yield some
        steps.advance(len(some))


class _Unseen:
    """Steps that nobody follows."""

    def begin(self, label: str, total: int | None = None) -> None:
        pass

    def advance(self, rows: int, share: float | None = None) -> None:
        pass
