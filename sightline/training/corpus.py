"""The sentence pairs, or labelled texts, of a recipe: read, cleaned, and split so that none held out is trained on."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from sightline.alignment.parallel import read_pairs
from sightline.data import europarl, hansard
from sightline.data.corpora import TextPair, data_folder, read_tab_separated
from sightline.data.labelled import SETS, Labelled, read_labelled, read_labelled_file
from sightline.data.language import GeneratedLanguage
from sightline.errors import InputError
from sightline.training.augmentation import augment
from sightline.training.recipe import CorpusSettings, DataSettings

Cleaner = Callable[[str], str]
CLEANERS: dict[str, dict[str, Cleaner]] = {
    "hansard": {"en": hansard.clean_english, "fr": hansard.clean_french},
    "europarl": {"de": europarl.clean, "en": europarl.clean},
}
HELD_OUT_ROLES = ("dev", "test")


@dataclass(frozen=True)
class Corpora:
    """The texts to train on, made of this many pairs, and the pairs held out; `test` may be empty.

    `skipped` counts what was left out, and why; `tests` has the test pairs by the name of their corpus.
    """

    train: list[TextPair]
    dev: list[TextPair]
    test: list[TextPair]
    train_pairs: int
    skipped: dict[str, int]
    tests: dict[str, list[TextPair]] = field(default_factory=dict)

    def summary(self) -> str:
        """Return in words how many pairs there are and how many were left out."""
        joined = f" in {len(self.train):,} texts" if len(self.train) != self.train_pairs else ""
        kept = f"{self.train_pairs:,} pairs to train on{joined}, {len(self.dev):,} for dev, {len(self.test):,} for test"
        left_out = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.items())
        return f"{kept}; left out: {left_out}" if left_out else kept


def read_corpora(data: DataSettings, folder: Path, seed: int) -> Corpora:
    """Read all pairs of a recipe whose files are in `folder`."""
    skipped: Counter[str] = Counter()
    read = partial(_read_corpus, data=data, folder=folder, skipped=skipped)
    parts = [_distinct(read(corpus, "train"), skipped) for corpus in data.training_corpora]
    train = parts[0] if len(parts) == 1 else _distinct(itertools.chain.from_iterable(parts), skipped)
    if not train:
        raise InputError(f"The training text has no usable pair: {_count(skipped) or 'it is empty'}.")
    held_out: dict[str, list[TextPair]] = {"dev": [], "test": []}
    tests: dict[str, list[TextPair]] = {}
    wanted: dict[str, int] = {}
    for role in HELD_OUT_ROLES:
        corpus: CorpusSettings | None = getattr(data, role)
        if corpus is not None and corpus.held_out is not None:
            wanted[role] = corpus.held_out
        elif corpus is not None:
            held_out[role] = list(read(corpus, role))
            if not held_out[role]:
                raise InputError(f"data.{role} has no usable pair: {_count(skipped) or 'it is empty'}.")
            if role == "test":
                tests[corpus.name] = held_out[role]
    for corpus, part in zip(data.training_corpora, parts, strict=True):
        for role, pairs in _hold_out(part, wanted, seed).items():
            held_out[role] += pairs
            if role == "test":
                tests[corpus.name] = tests.get(corpus.name, []) + pairs
    train = _without_seen(train, [*held_out["dev"], *held_out["test"]], data.bidirectional, skipped)
    if not train:
        raise InputError("Nothing is left to train on: every pair has a held-out sentence. Hold out fewer.")
    kept = set(train)
    for corpus, part in zip(data.training_corpora, parts, strict=True):
        train += [pair for pair in part if pair in kept] * (corpus.times - 1)
    texts = augment(train, data.joined, data.spaced, data.renamed, data.max_words, seed)
    return Corpora(texts, held_out["dev"], held_out["test"], len(train), dict(skipped), tests)


def _read_corpus(
    corpus: CorpusSettings, role: str, data: DataSettings, folder: Path, skipped: Counter[str]
) -> Iterator[TextPair]:
    """Yield the pairs of one corpus that are neither empty nor too long."""
    clean_source, clean_target = _cleaners(data)
    for source, target in islice(_raw_pairs(corpus, role, folder), corpus.sentences):
        source, target = clean_source(source), clean_target(target)
        if corpus.labelled is not None:
            source = " ".join(source.split()[: data.max_words])
        words = len(source.split()), len(target.split())
        if not all(words):
            skipped["with an empty side"] += 1
        elif max(words) > data.max_words:
            skipped[f"longer than {data.max_words} words"] += 1
        else:
            yield source, target


def _raw_pairs(corpus: CorpusSettings, role: str, folder: Path) -> Iterator[TextPair]:
    if corpus.source is not None and corpus.target is not None:
        return read_pairs(find_file(corpus.source, folder), find_file(corpus.target, folder))
    if corpus.pairs is not None:
        return read_tab_separated(find_file(corpus.pairs, folder), corpus.columns)
    if corpus.labelled is not None:
        return iter(_labelled(corpus.labelled, role, folder))
    assert corpus.generated is not None, "the recipe was checked"
    return ((pair.source, pair.target) for pair in GeneratedLanguage(corpus.generated).stream(role))


def _labelled(name: str, split: str, folder: Path) -> list[Labelled]:
    """Read a set of labelled texts by its name or folder, or a file."""
    path = Path(name)
    if path.name not in SETS:
        return read_labelled_file(find_file(name, folder))
    if path.name == "generated":
        return read_labelled(path.name, split, folder)
    place = folder / path if (folder / path).is_dir() else data_folder() / path
    return read_labelled(path.name, split, place.parent)


def find_file(name: str, folder: Path) -> Path:
    """Find a file of a recipe: next to the recipe, else in the folder of corpora."""
    beside = folder / name
    if beside.is_file():
        return beside
    try:
        places = [folder, data_folder()]
    except InputError as error:
        raise InputError(f"There is no file {beside}. {error}") from error
    found = places[1] / name
    if not found.is_file():
        raise InputError(f"There is no file {name}, neither in {places[0].resolve()} nor in {places[1]}.")
    return found


def _cleaners(data: DataSettings) -> tuple[Cleaner, Cleaner]:
    if data.clean is None:
        return str.strip, str.strip
    cleaners = CLEANERS[data.clean]
    return cleaners[data.languages[0]], cleaners[data.languages[1]]


def _distinct(pairs: Iterable[TextPair], skipped: Counter[str]) -> list[TextPair]:
    seen: dict[TextPair, None] = {}
    repeated = 0
    for pair in pairs:
        repeated += pair in seen
        seen[pair] = None
    if repeated:
        skipped["repeated"] += repeated
    return list(seen)


def sentence_key(sentence: str) -> str:
    """Reduce a sentence to what makes it the same one: its letters and digits, whatever their case."""
    return "".join(letter for letter in sentence.casefold() if letter.isalnum()) or sentence


def _hold_out(pairs: list[TextPair], wanted: dict[str, int], seed: int) -> dict[str, list[TextPair]]:
    """Choose source sentences by their hash, so that neither their order nor the rest of the text matters.

    Of a sentence with several translations the first is taken.
    """
    if not wanted:
        return {}
    first_pairs: dict[str, TextPair] = {}
    for pair in pairs:
        first_pairs.setdefault(sentence_key(pair[0]), pair)
    if sum(wanted.values()) >= len(first_pairs):
        raise InputError(
            f"{sum(wanted.values()):,} source sentences cannot be held out of {len(first_pairs):,} different ones."
        )
    order = iter(sorted(first_pairs, key=lambda key: hashlib.blake2b(f"{seed} {key}".encode()).digest()))
    return {role: [first_pairs[key] for key in islice(order, count)] for role, count in wanted.items()}


def _without_seen(
    pairs: list[TextPair], held_out: list[TextPair], bidirectional: bool, skipped: Counter[str]
) -> list[TextPair]:
    """Drop pairs whose source (for both directions also: whose target) is a held-out sentence."""
    sides = (0, 1) if bidirectional else (0,)
    keys = [{sentence_key(pair[side]) for pair in held_out} for side in sides]
    kept = [
        pair for pair in pairs if all(sentence_key(pair[side]) not in keys[number] for number, side in enumerate(sides))
    ]
    if len(kept) < len(pairs):
        skipped["of a held-out sentence"] = len(pairs) - len(kept)
    return kept


def _count(skipped: Counter[str]) -> str:
    return ", ".join(f"{count:,} are left out, {reason}" for reason, count in skipped.items())
