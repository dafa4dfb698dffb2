"""Aligning files with a statistical aligner: trained on them, or trained before and saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sightline.alignment.bitext import Words, build_bitext
from sightline.alignment.eflomal import align_with_eflomal
from sightline.alignment.formats import Path
from sightline.alignment.links import Alignment
from sightline.alignment.parallel import read_pairs
from sightline.alignment.statistical import ALIGNERS, load_aligner, train_aligner
from sightline.alignment.symmetrization import DEFAULT_RULE, symmetrize_all
from sightline.errors import InputError, unknown_name
from sightline.files import STANDARD_INPUT

EFLOMAL = "eflomal"


def align_files(
    source: Path,
    target: Path | None = None,
    *,
    aligner: str | None = None,
    rule: str | None = None,
    iterations: int = 5,
    save: Path | None = None,
    load: Path | None = None,
) -> Iterator[Alignment]:
    """Align parallel text (see `read_pairs`) in both directions, joined by a rule.

    `aligner` is ibm1, diagonal or eflomal, trained on this text and, except eflomal, perhaps saved; `load` names one
    that was saved before, which takes any text.
    """
    rule = rule or DEFAULT_RULE
    if aligner is not None and aligner not in (EFLOMAL, *ALIGNERS):
        raise unknown_name("aligner", aligner, [*ALIGNERS, EFLOMAL])
    if (aligner is None) == (load is None):
        raise InputError("Name either an aligner to train on this text, or a saved one to load.")
    if save is not None and aligner in (None, EFLOMAL):
        raise InputError(f"Only an aligner that is trained here can be saved: {' or '.join(ALIGNERS)}.")
    if load is not None:
        return load_aligner(load).align(_words(read_pairs(source, target)), rule)
    read = _reader(source, target)
    if aligner == EFLOMAL:
        forward, reverse = zip(*align_with_eflomal(_words(read())), strict=True)
        return symmetrize_all(forward, reverse, rule)
    assert aligner is not None
    trained = train_aligner(build_bitext(_words(read())), aligner, iterations)
    if save is not None:
        trained.save(save)
    return trained.align(_words(read()), rule)


def _reader(source: Path, target: Path | None) -> Callable[[], Iterable[tuple[str, str]]]:
    """Give what reads the pairs as often as needed; standard input is held, since it is read but once."""
    if STANDARD_INPUT in (str(source), str(target)):
        held = list(read_pairs(source, target))
        return lambda: held
    return lambda: read_pairs(source, target)


def _words(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[Words, Words]]:
    for source, target in pairs:
        yield source.split(), target.split()
