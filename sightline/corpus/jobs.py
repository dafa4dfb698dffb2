"""What can be done with each line of a corpus: a job names models and options, and is sent to every worker as it is.

`open` loads the models, once in each process. Everything heavy is imported there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from sightline.alignment.steps import Steps
from sightline.corpus.shards import Row, Shard, Work, readable_rows, run_shard
from sightline.errors import InputError
from sightline.models.box import BOX_MODEL

if TYPE_CHECKING:
    from sightline.alignment.links import Alignment
    from sightline.models.loaded import LoadedModel
    from sightline.verbs.aligning import ModelAligner
    from sightline.verbs.explaining import Pair
    from sightline.verbs.readout import Choice

SHARD_ROWS = 1024
"""Rows of a shard: enough to sort them by length, few enough that not much is lost when a run is killed."""
SLOW_SHARD_ROWS = 128
"""Rows of a shard where each takes many passes of the model."""
QUICK_METHODS = ("auto", "attention", "norms", "adapter", "similarity")
"""The methods that take one pass."""
SETTLING_ROWS = 200
"""Rows that are translated to choose how alignments are read off the translations."""


@dataclass(frozen=True)
class ModelName:
    """A model and how to load it."""

    name: str = BOX_MODEL
    source_lang: str | None = None
    target_lang: str | None = None
    prefix: str = ""
    chat: bool = False
    dtype: str | None = None

    def load(self) -> LoadedModel:
        """Load the model."""
        from sightline.models.loading import load

        return load(
            self.name,
            dtype=self.dtype,
            source_lang=self.source_lang,
            target_lang=self.target_lang,
            prefix=self.prefix,
            chat=self.chat,
        )

    def reverse(self, name: str) -> ModelName:
        """Return another model for the reverse direction."""
        return ModelName(name, self.target_lang, self.source_lang, self.prefix, dtype=self.dtype)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is done with each row; plain data, but for the function that shows the user a choice."""

    model: ModelName = ModelName()
    reverse: ModelName | None = None
    align: Mapping[str, Any] = field(default_factory=dict)
    """The options of `sightline.align`, where words are aligned."""
    on_choice: Callable[[Choice], None] | None = None

    label = "Working"
    """What is being done, for the user to see."""
    blank = "\n"
    """What is written for a row that is skipped, so that lines of input and output stay side by side."""

    @property
    def shard_rows(self) -> int:
        """Return how many rows a shard has."""
        is_quick = self.align.get("method", "auto") in QUICK_METHODS and self.align.get("effort", "fast") == "fast"
        return SHARD_ROWS if is_quick else SLOW_SHARD_ROWS

    def describe(self) -> dict[str, Any]:
        """Return what the output depends on, except models and input, as plain data."""
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "on_choice"}
        plain: dict[str, Any] = json.loads(json.dumps({"job": type(self).__name__} | named, default=_describe))
        return plain

    def open(self) -> Work:
        """Load the models."""
        raise NotImplementedError

    def build_aligner(self, model: LoadedModel) -> ModelAligner:
        """Build what aligns words, from the job's options."""
        from sightline.verbs.aligning import build_aligner

        options = dict(self.align) | ({} if self.reverse is None else {"reverse": self.reverse.load()})
        return build_aligner(model, **options, on_choice=self.on_choice)


@dataclass(frozen=True, kw_only=True)
class AlignJob(Job):
    """Align the words of sentence pairs with a model."""

    format: str = "pharaoh"
    confidences: bool = False

    label = "Aligning"

    @property
    def blank(self) -> str:  # type: ignore[override]
        return "" if self.format == "naacl" else "\n"  # that format names the sentence of each link

    def open(self) -> AlignWork:
        return AlignWork(self)

    def with_aligner_trained_on(self, rows: Iterable[Row | InputError], steps: Steps, *, skip: bool) -> AlignJob:
        """Return the job with its statistical aligner: read from its file, or trained on all rows.

        Shards are aligned each by itself: an aligner that is only named would be trained on every one of them anew.
        """
        from sightline.alignment.bitext import build_bitext
        from sightline.alignment.statistical import count_passes, train_aligner
        from sightline.verbs.aligning import find_aligner

        found = find_aligner(self.align["with_aligner"])
        if isinstance(found, str):
            aligner = self.build_aligner(self.model.load())
            bitext = build_bitext(aligner.words_to_train_on(_pairs(readable_rows(rows, skip=skip))))
            steps.begin(f"Training {found}", len(bitext) * count_passes(found))
            found = train_aligner(bitext, found, on_pass=steps.advance)
        return replace(self, align={**self.align, "with_aligner": found})

    def draw(self, settled: Mapping[str, Any], rows: Iterable[Row | InputError], *, skip: bool) -> str:
        """Return a page with the pictures of some rows, aligned as `settled` says, without those that are skipped."""
        from sightline.alignment.links import draw_page

        work = _DrawWork(self)
        run_shard(work, settled, Shard(1, list(rows)), skip=skip)
        return draw_page(work.drawn)


def _describe(value: object) -> str:
    """Describe a setting that is no plain data: a statistical aligner by a checksum."""
    from sightline.alignment.statistical import TwoWayAligner

    if isinstance(value, TwoWayAligner):
        from sightline.alignment.saved import digest_aligner

        return digest_aligner(value)
    return str(value)


class AlignWork:
    """Models that align, loaded."""

    def __init__(self, job: AlignJob) -> None:
        self.job, self.blank = job, job.blank
        self.aligner = job.build_aligner(job.model.load())
        self.models = _loaded(self.aligner.model, self.aligner.reverse)

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        return self.aligner.choose(_pairs(rows)).to_dict()

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        alignments = _with_choice(self.aligner, settled).align(_pairs(rows, numbers))
        return [_render(self.job, alignment, number) for number, alignment in zip(numbers, alignments, strict=True)]


class _DrawWork(AlignWork):
    """Models that align, for pictures: alignments are kept instead of written."""

    def __init__(self, job: AlignJob) -> None:
        super().__init__(job)
        self.drawn: list[Alignment] = []

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        alignments = list(_with_choice(self.aligner, settled).align(_pairs(rows, numbers)))
        self.drawn += alignments
        return [self.blank] * len(alignments)


def _render(job: AlignJob, alignment: Alignment, number: int) -> str:
    from sightline.alignment.formats import render_alignments

    return "".join(render_alignments([alignment], job.format, confidences=job.confidences, first=number))


@dataclass(frozen=True, kw_only=True)
class TranslateJob(Job):
    """Translate texts, and align the words where `with_links` says so; `generation` are options of `generate`."""

    generation: Mapping[str, Any] = field(default_factory=dict)
    with_links: bool = False
    as_json: bool = False

    label = "Translating"

    def open(self) -> Work:
        return _TranslateWork(self)


class _TranslateWork:
    def __init__(self, job: TranslateJob) -> None:
        from sightline.verbs.translating import load_translator

        self.job, self.blank = job, job.blank
        self.model = load_translator(job.model.load(), job.generation)
        self.aligner = job.build_aligner(self.model) if job.with_links else None
        self.models = _loaded(self.model, None if self.aligner is None else self.aligner.reverse)

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        return {} if self.aligner is None else _choose_on_translations(self, self.aligner, rows)

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        from sightline.verbs.translating import translate_pairs

        aligner = self.aligner and _with_choice(self.aligner, settled)
        found = translate_pairs(self.model, _pairs(rows, numbers), self.job.generation, aligner)
        return [self._render(row[0], one.text, one.alignment) for row, one in zip(rows, found, strict=True)]

    def _render(self, source: str, translation: str, links: Alignment | None) -> str:
        from sightline.alignment.formats import render_alignments

        if self.job.as_json:
            plain: dict[str, object] = {"source": source, "translation": translation}
            if links is not None:
                plain["links"] = [[*link, confidence] for link, confidence in links.confidences.items()]
            return json.dumps(plain, ensure_ascii=False) + "\n"
        translation = _on_one_line(translation)
        return translation + "\n" if links is None else f"{translation} ||| {next(render_alignments([links]))}"


@dataclass(frozen=True, kw_only=True)
class TagsJob(Job):
    """Translate texts with inline markup, or put their markup onto translations that rows have in a second column."""

    generation: Mapping[str, Any] = field(default_factory=dict)

    label = "Carrying markup over"

    def open(self) -> Work:
        return _TagsWork(self)


class _TagsWork:
    def __init__(self, job: TagsJob) -> None:
        from sightline.verbs.translating import load_translator

        self.job, self.blank = job, job.blank
        self.model = load_translator(job.model.load(), job.generation)
        self.aligner = job.build_aligner(self.model)
        self.models = _loaded(self.model, self.aligner.reverse)

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        from sightline.alignment.markup import strip_markup

        plain = [(" ".join(strip_markup(row[0])), *row[1:]) for row in rows]
        if rows and len(rows[0]) > 1:
            return self.aligner.choose(_pairs(plain)).to_dict()
        return _choose_on_translations(self, self.aligner, plain)

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        from sightline.verbs.translating import mark_pairs, translate_marked_pairs

        aligner = _with_choice(self.aligner, settled)
        pairs = _pairs(rows, numbers)
        if rows and len(rows[0]) > 1:
            found = mark_pairs(pairs, aligner)
        else:
            found = translate_marked_pairs(self.model, pairs, self.job.generation, aligner)
        return [_on_one_line(text) + "\n" for text in found]


@dataclass(frozen=True, kw_only=True)
class ExplainJob(Job):
    """Explain texts, or texts with the targets that rows have in a second column, as lines of JSON."""

    method: str = "auto"
    settings: Mapping[str, Any] = field(default_factory=dict)
    by_words: bool = True
    with_special: bool = False

    label = "Explaining"

    @property
    def shard_rows(self) -> int:
        is_quick = self.method in QUICK_METHODS and not self.settings.get("smoothgrad")
        return SHARD_ROWS if is_quick else SLOW_SHARD_ROWS

    def open(self) -> Work:
        return _ExplainWork(self)


class _ExplainWork:
    def __init__(self, job: ExplainJob) -> None:
        from sightline.verbs.explaining import resolve_method

        self.job, self.blank = job, job.blank
        self.model = job.model.load()
        self.method = resolve_method(self.model, job.method, dict(job.settings))
        self.models = [self.model]

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        return {}

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        from sightline.verbs.explaining import explain_pairs, recognise_directions

        pairs = recognise_directions(self.model, _pairs(rows, numbers))
        lines = []
        for why in explain_pairs(self.model, pairs, *self.method):
            why = why.words() if self.job.by_words else why
            why = why if self.job.with_special else why.without_special()
            lines.append(json.dumps(why.to_dict(), ensure_ascii=False) + "\n")
        return lines


@dataclass(frozen=True, kw_only=True)
class FaithfulnessJob(Job):
    """Measure how faithful methods are on texts, perhaps with labels or translations in a second column.

    A line is a JSON object: for each method, the measures of every output (`sightline.faithfulness`).
    """

    methods: tuple[str, ...]

    label = "Measuring"
    shard_rows = SLOW_SHARD_ROWS

    def open(self) -> Work:
        return _FaithfulnessWork(self)


class _FaithfulnessWork:
    def __init__(self, job: FaithfulnessJob) -> None:
        from sightline.faithfulness import check_measurable

        self.job, self.blank = job, job.blank
        self.models = [job.model.load()]
        check_measurable(self.models[0], job.methods)

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        return {}

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        from sightline.faithfulness import measure_text

        lines = []
        for number, (text, *target) in zip(numbers, rows, strict=True):
            if not text.strip():
                lines.append(self.blank)
                continue
            found = measure_text(self.models[0], text, target[0] if target else None, self.job.methods, number=number)
            lines.append(json.dumps(found) + "\n")
        return lines


def _on_one_line(text: str) -> str:
    """Put spaces in place of line ends, which some models write: lines of input and output stay side by side."""
    return text.replace("\r", " ").replace("\n", " ")


def _loaded(*models: LoadedModel | None) -> list[LoadedModel]:
    return [model for model in models if model is not None]


def _pairs(rows: Iterable[Row], numbers: Iterable[int] | None = None) -> Iterator[Pair]:
    from sightline.verbs.explaining import Pair

    for row, number in zip(rows, count(1) if numbers is None else numbers, strict=numbers is not None):
        yield Pair(number, row[0], row[1] if len(row) > 1 else None)


def _with_choice(aligner: ModelAligner, settled: Mapping[str, Any]) -> ModelAligner:
    from sightline.verbs.readout import Choice

    return replace(aligner, choice=Choice.from_dict(settled))


def _choose_on_translations(
    work: _TranslateWork | _TagsWork, aligner: ModelAligner, rows: Sequence[Row]
) -> dict[str, Any]:
    from sightline.verbs.explaining import recognise_directions
    from sightline.verbs.translating import answer_pairs

    pairs = recognise_directions(work.model, _pairs(rows[:SETTLING_ROWS]))
    return aligner.choose(answer_pairs(work.model, pairs, work.job.generation)).to_dict()
