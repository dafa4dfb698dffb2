"""Aligning files with a statistical aligner: trained on them, or trained before and saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sightline.alignment.bitext import Words, build_bitext
from sightline.alignment.columns import Alignments
from sightline.alignment.eflomal import align_with_eflomal
from sightline.alignment.parallel import read_pairs
from sightline.alignment.saved import load_aligner, save_aligner
from sightline.alignment.statistical import ALIGNERS, count_passes, train_aligner
from sightline.alignment.steps import Steps, Unseen, count_lines
from sightline.alignment.symmetrization import DEFAULT_RULE, RULES, symmetrize_in_columns
from sightline.errors import InputError, unknown_name
from sightline.files import FilePath, Position, check_writable

EFLOMAL = "eflomal"


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
    steps = steps or Unseen()
    position = Position()
    steps.begin("Aligning" if load is not None else "Reading")
    pairs = _words(count_lines(read_pairs(source, target, position=position), position, steps))
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


def _then_train(pairs: Iterable[tuple[Words, Words]], steps: Steps) -> Iterator[tuple[Words, Words]]:
    yield from pairs
    steps.begin(f"Training {EFLOMAL}")  # which does not say how far it is


def _count_aligned(aligned: Iterable[Alignments], steps: Steps) -> Iterator[Alignments]:
    for some in aligned:
        yield some
        steps.advance(len(some))
