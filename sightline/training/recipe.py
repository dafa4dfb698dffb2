"""Recipes: what a training run is, as YAML.

Every key is a field of one of the settings below; a key that is none of them is refused, with the nearest valid one.
A file may begin with `extends: another.yaml`, which is in the same folder, and say only what differs.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from sightline.attend.settings import CalibrationSettings
from sightline.data.language import LanguageSettings
from sightline.errors import InputError, unknown_name
from sightline.limits import DEEPEST_YAML, LARGEST_COUNT, LARGEST_SEED, MOST_BEAMS, MOST_YAML_NODES
from sightline.training.architectures import ARCHITECTURES

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
EXTENDS = "extends"
CORPUS_KINDS = {"source", "target", "pairs", "labelled", "generated", "held_out"}
"""The keys of a corpus that say where it comes from."""


@dataclass(frozen=True)
class CorpusSettings:
    """Where sentence pairs, or labelled texts, come from.

    Two files, one file with columns, a set of labelled texts, a generated language, or the training text. A file is
    looked for next to the recipe, then in the folder of corpora (`SIGHTLINE_DATA`); `.gz` is unpacked.
    """

    source: str | None = None
    """A file with one source sentence per line; needs `target`."""
    target: str | None = None
    """The file with the translations, line by line."""
    pairs: str | None = None
    """One tab-separated file with both sides."""
    columns: tuple[Count, Count] = (0, 1)
    """The columns of source and target in `pairs`, counted from 0."""
    labelled: str | None = None
    """Labelled text for a classifier: a set by its name (`sst`, `generated`, ...; `sightline.data.labelled` lists
    them), or a `.jsonl` or `.csv` file with `text` and `label`."""
    generated: LanguageSettings | None = None
    """A generated language; needs `sentences`."""
    held_out: Positive | None = None
    """The number of source sentences held out of the training text, out of each corpus where there are several; every
    pair that has one of them is left out of training."""
    sentences: Positive | None = None
    """Read only this many pairs, from the beginning."""
    times: Positive = 1
    """How many times each epoch repeats a training corpus, so that a small one is not drowned by a large one."""

    @property
    def name(self) -> str:
        """Return what people call the text: the folder of its file, or the file's own name where it has none."""
        path = self.pairs or self.source or self.labelled
        if path is None:
            return "generated"
        return Path(path).parent.name or Path(path).name.partition(".")[0]

    def kind(self) -> Literal["files", "pairs", "labelled", "generated", "held_out"] | None:
        """Return which of the ways is chosen; None if it is not exactly one."""
        chosen = {
            "files": self.source is not None and self.target is not None,
            "pairs": self.pairs is not None,
            "labelled": self.labelled is not None,
            "generated": self.generated is not None,
            "held_out": self.held_out is not None,
        }
        names = [name for name, is_chosen in chosen.items() if is_chosen]
        return typing.cast(Any, names[0]) if len(names) == 1 else None


@dataclass(frozen=True)
class DataSettings:
    """The text."""

    train: CorpusSettings | tuple[CorpusSettings, ...]
    """One corpus, or a list of them."""
    dev: CorpusSettings
    """What checkpoints are evaluated on."""
    test: CorpusSettings | None = None
    """What the finished model is evaluated on, once."""
    languages: tuple[str, str] = ("source", "target")
    """The languages of source and target, as `[en, es]`."""
    bidirectional: bool = False
    """Translate both ways with one model: the source begins with the target's language, as `>>es<<`."""
    clean: Literal["hansard", "europarl"] | None = None
    """Bring the text to the form of a test set with gold alignments: WPT 2003 for the Hansards, RWTH for Europarl."""
    max_words: Positive = 100
    """Skip pairs with a longer side; of a longer labelled text keep the beginning."""
    joined: Share = 0.0
    """The fraction of pairs that are concatenated into longer training texts, of at most `max_words`."""
    spaced: Share = 0.0
    """The fraction of training texts whose punctuation is set apart, as in tokenised text."""
    renamed: Share = 0.0
    """The fraction of pairs with a name or number on both sides in which it is replaced by an invented one, so that the
    model learns to copy what it has never seen."""

    @property
    def training_corpora(self) -> tuple[CorpusSettings, ...]:
        """Return the corpora to train on as a tuple, also where there is one."""
        return (self.train,) if isinstance(self.train, CorpusSettings) else self.train


@dataclass(frozen=True)
class TokenizerSettings:
    """The vocabulary: pieces by byte-pair encoding, or the text's most frequent words."""

    kind: Literal["pieces", "words"] = "pieces"
    """Byte-pair `pieces`, or the most frequent `words`."""
    vocabulary: Positive = 8000
    """Number of entries, special tokens included."""
    joint: bool = True
    """Learn the pieces from both languages at once; otherwise learn `vocabulary` pieces from each and merge them."""


@dataclass(frozen=True)
class TrainingSettings:
    """The optimisation."""

    steps: Positive
    """Maximum number of updates."""
    minutes: Annotated[float, Field(gt=0)] | None = None
    """Maximum time for the updates; time used before an interruption counts."""
    start: str | None = None
    """A trained model of the same `model:`, by folder or name, whose weights and vocabulary training starts from."""
    batch_tokens: Positive = 4096
    """Number of pieces on the longer side of one update, padding included; divided among processes."""
    batch_texts: Positive | None = None
    """Maximum number of pairs or texts in one update."""
    accumulate: Positive = 1
    """Number of passes that one update is split into, to save memory."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """The highest rate of the schedule."""
    attention_rate: Annotated[float, Field(gt=0)] = 1.0
    """Learning rate of a classifier's attention, relative to that of the rest (Meister et al. 2021: 1 or 10)."""
    schedule: Literal["inverse_sqrt", "cosine", "trapezoid", "constant"] = "inverse_sqrt"
    """How the rate falls after the warm-up: inverse_sqrt, cosine, trapezoid (only at the end), or constant."""
    warmup: Count = 1000
    """Number of steps over which the rate rises to its maximum."""
    betas: tuple[Share, Share] = (0.9, 0.98)
    """Decay rates of Adam's two moments."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """AdamW's; 0 is Adam."""
    amsgrad: bool = False
    """Adam's second moment never falls (Reddi et al. 2018)."""
    clip: Annotated[float, Field(gt=0)] | None = 1.0
    """Maximum norm of the gradient; null for no clipping."""
    label_smoothing: Share = 0.1
    """Fraction of the probability that is spread over all labels."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto` takes 16 bits where the device computes faster with them."""
    log_every: Positive = 50
    """Number of steps between two lines of the log."""
    checkpoint_every: Positive = 500
    """Number of steps between two evaluations, each with a checkpoint."""
    average: Positive = 5
    """Number of last checkpoints that are kept, and whose weights are averaged at the end."""
    patience: Positive | None = None
    """Stop after this many evaluations without a better loss."""


@dataclass(frozen=True)
class CalibratedTrainingSettings(CalibrationSettings):
    """Calibrated cross-attention (Lu et al. 2021), trained together with the model, or for one that is trained."""

    base: str | None = None
    """A trained model of the same `model:`, by folder or name, that stays as it is: only mask and gate learn."""


@dataclass(frozen=True)
class AlignmentSettings:
    """An alignment adapter, which is trained on the finished translation model (`sightline adapt`)."""

    pairs: Positive = 50_000
    """Number of training pairs, drawn at random, that it learns from."""
    rounds: Positive = 3
    """Number of times that the adapter learns from its own links."""


@dataclass(frozen=True)
class AdversarySettings:
    """Which model an adversary is trained against, and how."""

    of: str
    """The folder of the base model, a classifier of ours; its vocabulary is used."""
    strength: float = 1.0
    """Weight of the divergence of attention, relative to that of predictions."""
    divergence: Literal["jsd", "kl"] = "jsd"
    """Divergence of attention: Jensen-Shannon (jsd) or Kullback-Leibler (kl)."""
    frozen: bool = False
    """Keep the base model's parameters and train only those of attention, from scratch."""


@dataclass(frozen=True)
class EvaluationSettings:
    """The measurements: loss and accuracy on all held-out pairs at every checkpoint, BLEU at the end."""

    beam: Annotated[int, Field(ge=1, le=MOST_BEAMS)] = 4
    """Number of hypotheses kept in beam search; 1 is greedy."""
    length_penalty: float = 1.0
    """Power of the length by which a hypothesis's log-probability is divided."""
    bleu_sentences: Count = 0
    """Number of sentences that are also translated greedily, and scored, at every checkpoint."""


@dataclass(frozen=True)
class Recipe:
    """All that determines a model: data, vocabulary, model, optimisation, seed."""

    data: DataSettings
    training: TrainingSettings
    architecture: str = "transformer"
    model: Any = None
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    calibration: CalibratedTrainingSettings | None = None
    alignment: AlignmentSettings | None = None
    adversary: AdversarySettings | None = None
    seed: Seed = 1
    folder: Path = Path()
    """Where files of the data are looked for first."""

    @property
    def classifies(self) -> bool:
        """Return whether the model gives a text a label; else it translates."""
        return ARCHITECTURES[self.architecture].classifies

    def to_dict(self) -> dict[str, Any]:
        """Return every setting, as JSON has it; it can be read as a recipe again."""
        plain = dataclasses.asdict(self)
        del plain["folder"]
        plain["model"] = {"architecture": plain.pop("architecture")} | plain["model"]
        return json.loads(json.dumps(plain))


@dataclass(frozen=True)
class _WrittenRecipe:
    """A recipe as it is written, where `model` also names the architecture."""

    data: DataSettings
    training: TrainingSettings
    model: dict[str, Any] = field(default_factory=dict)
    tokenizer: TokenizerSettings = field(default_factory=TokenizerSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    calibration: CalibratedTrainingSettings | None = None
    alignment: AlignmentSettings | None = None
    adversary: AdversarySettings | None = None
    seed: Seed = 1


def read_recipe(recipe: str | Path | Mapping[str, Any], changes: Sequence[str] | Mapping[str, Any] = ()) -> Recipe:
    """Read a recipe from a file, or from a mapping, with some keys changed.

    Changes are `["training.steps=100", ...]` or `{"training.steps": 100}`.
    """
    if isinstance(recipe, Mapping):
        name, folder, written = "the recipe", Path(), _copy(recipe)
    else:
        path = Path(recipe)
        name, folder, written = str(path), path.parent, _read_file(path)
    for key, value in _as_mapping(changes).items():
        _set_key(written, key, value)
    _check_numbers(written, name)
    checked = _validated(_WrittenRecipe, written, name)
    model = dict(checked.model)
    architecture = model.pop("architecture", "transformer")
    if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
        raise unknown_name("architecture", str(architecture), ARCHITECTURES)
    settings = _validated(ARCHITECTURES[architecture].settings, model, name, "model")
    _check_data(checked.data, name)
    if not checked.tokenizer.joint and (checked.data.bidirectional or checked.tokenizer.kind == "words"):
        raise InputError(f"{name}: tokenizer.joint: false is for pieces, and for models of one direction.")
    complete = Recipe(
        data=checked.data,
        training=checked.training,
        architecture=architecture,
        model=settings,
        tokenizer=checked.tokenizer,
        evaluation=checked.evaluation,
        calibration=checked.calibration,
        alignment=checked.alignment,
        adversary=checked.adversary,
        seed=checked.seed,
        folder=folder,
    )
    _check_task(complete, name)
    return complete


def _read_file(path: Path, extending: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Read a file, and first the one that it extends."""
    written = _read_yaml(path)
    base = written.pop(EXTENDS, None)
    if base is None:
        return written
    if not isinstance(base, str):
        raise InputError(f"{path}: {EXTENDS} takes the name of a file, and it is {base!r}.")
    if path in extending:
        raise InputError(f"{path} extends itself.")
    return _merged(_read_file(path.parent / base, (*extending, path)), written)


def _merged(base: Any, changes: Any) -> Any:
    """Put changes over a base, section by section; a corpus that comes from elsewhere replaces that of the base."""
    if not (isinstance(base, dict) and isinstance(changes, dict)) or changes.keys() & CORPUS_KINDS:
        return changes
    return base | {key: _merged(base.get(key), value) for key, value in changes.items()}


def _read_yaml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"There is no recipe {path}: give the path of a YAML file.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: this is not UTF-8 text.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        written = _parse_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{path}{line}: this is not YAML ({getattr(error, 'problem', error)}).") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}.") from error
    if not isinstance(written, dict) or not all(isinstance(key, str) for key in written):
        raise InputError(f"{path}: a recipe is a list of `key: value`, with at least `data` and `training`.")
    return written


def _parse_yaml(text: str) -> Any:
    """Parse YAML; aliases that repeat too much, deep nesting and odd numbers are a ValueError that says so."""
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _count_nodes(node, {}, 0)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except RecursionError:
        raise ValueError(f"it is nested more than {DEEPEST_YAML} deep") from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        # What PyYAML makes of dates, numbers and tags that are none.
        raise ValueError(f"a value cannot be read ({error})") from error


def _count_nodes(node: yaml.Node, known: dict[int, int], depth: int) -> int:
    """Count the values below a node, what an alias repeats each time anew."""
    if depth > DEEPEST_YAML:  # an alias to what it is part of never ends
        raise yaml.YAMLError(f"it is nested more than {DEEPEST_YAML} deep")
    if id(node) not in known:
        inner = node.value if isinstance(node, yaml.CollectionNode) else ()
        children = [child for one in inner for child in (one if isinstance(one, tuple) else (one,))]
        count = 1 + sum(_count_nodes(child, known, depth + 1) for child in children)
        if count > MOST_YAML_NODES:
            raise yaml.YAMLError(f"it has more than {MOST_YAML_NODES:,} values, aliases included")
        known[id(node)] = count
    return known[id(node)]


def _check_numbers(value: Any, name: str, where: str = "") -> None:
    """Refuse numbers that are none, infinite or huge, wherever they are."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_numbers(inner, name, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_numbers(inner, name, where)
    elif isinstance(value, int | float) and not abs(value) <= LARGEST_COUNT:
        raise InputError(f"{name}: {where} is {value}: it should be a number up to {LARGEST_COUNT:,}.")


def _copy(recipe: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in recipe.items()}


def _as_mapping(changes: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(changes, Mapping):
        return dict(changes)
    pairs = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key:
            raise InputError(f"The setting {change!r} should look like key=value, for example training.steps=100.")
        try:
            pairs[key] = _parse_yaml(value)
        except (yaml.YAMLError, ValueError) as error:
            raise InputError(f"The value of {change!r} is not YAML that a recipe can have.") from error
    return pairs


def _set_key(written: dict[str, Any], key: str, value: Any) -> None:
    """Set `a.b.c` in nested mappings; sections that are not there, or are empty, are made."""
    *sections, last = key.split(".")
    place = written
    for section in sections:
        inner = place.get(section)
        if inner is None:
            inner = place[section] = {}
        if not isinstance(inner, dict):
            raise InputError(f"{key} cannot be set: {section} holds the value {inner!r}, not keys.")
        place = inner
    place[last] = value


def _validated(settings: type, written: Mapping[Any, Any], name: str, where: str = "") -> Any:
    """Check keys and values, and make the settings."""
    _check_keys(settings, written, name, where)
    try:
        return _type_adapter(settings).validate_python(dict(written))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([*([where] if where else []), *(str(part) for part in first["loc"])])
        given = "" if first["type"] == "missing" else f" (it is {first['input']!r})"
        raise InputError(f"{name}: {place}: {first['msg'][0].lower()}{first['msg'][1:]}{given}.") from error
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


@cache
def _type_adapter(settings: type) -> Any:
    return TypeAdapter(settings)


def _check_keys(settings: type, written: Mapping[Any, Any], name: str, where: str) -> None:
    """Refuse keys that are no field, here and in the sections below."""
    hints = typing.get_type_hints(settings)
    prefix = f"{where}." if where else ""
    valid = [prefix + entry.name for entry in dataclasses.fields(settings)]
    for key, value in written.items():
        full = f"{prefix}{key}"
        if full not in valid:
            raise InputError(f"{name}: {unknown_name('key', full, valid)}")
        inner = _section_of(hints[key])
        if inner is None:
            continue
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Mapping):
                _check_keys(inner, part, name, full)


def _section_of(hint: Any) -> type | None:
    """Find the settings that a key holds, if it holds any."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return next((option for option in options if dataclasses.is_dataclass(option)), None)  # type: ignore[return-value]


def _check_data(data: DataSettings, name: str) -> None:
    if not data.training_corpora:
        raise InputError(f"{name}: data.train is an empty list: name at least one corpus.")
    roles = [("train", corpus) for corpus in data.training_corpora] + [("dev", data.dev), ("test", data.test)]
    for role, corpus in roles:
        if corpus is None:
            continue
        kind = corpus.kind()
        if kind is None or (role == "train" and kind == "held_out"):
            ways = "`source` and `target`, `pairs`, `labelled`, or `generated`" + (
                "" if role == "train" else ", or `held_out`"
            )
            raise InputError(f"{name}: data.{role} needs exactly one of {ways}.")
        if kind == "generated" and corpus.sentences is None:
            raise InputError(f"{name}: data.{role}.generated needs data.{role}.sentences: how many to make.")
    if data.bidirectional and data.languages[0] == data.languages[1]:
        raise InputError(f"{name}: data.bidirectional needs two languages, as `languages: [en, es]`.")
    cleaned = {"hansard": ("en", "fr"), "europarl": ("de", "en")}
    if data.clean is not None and set(data.languages) != set(cleaned[data.clean]):
        one, other = cleaned[data.clean]
        raise InputError(f"{name}: data.clean: {data.clean} is for `languages: [{one}, {other}]` or [{other}, {one}].")


def _check_task(recipe: Recipe, name: str) -> None:
    """Refuse what is for classifiers in a translation model's recipe, and the other way round."""
    if any((corpus.kind() == "labelled") != recipe.classifies for corpus in recipe.data.training_corpora):
        needs = "labelled text: data.train.labelled" if recipe.classifies else "sentence pairs, not data.train.labelled"
        raise InputError(f"{name}: the architecture {recipe.architecture} needs {needs}.")
    if recipe.calibration is not None and recipe.classifies:
        raise InputError(f"{name}: calibration is for models that translate.")
    if recipe.alignment is not None and recipe.classifies:
        raise InputError(f"{name}: alignment is for models that translate.")
    if recipe.adversary is not None and not recipe.classifies:
        raise InputError(f"{name}: adversary is for the architecture classifier.")
