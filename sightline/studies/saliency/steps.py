"""The steps of the study: statistical aligners, one step for each model, and both directions joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU

from sightline.alignment.bitext import build_bitext
from sightline.alignment.error_rate import silver_reference
from sightline.alignment.links import Alignment
from sightline.alignment.saved import load_aligner, save_aligner
from sightline.alignment.statistical import TwoWayAligner, train_aligner
from sightline.alignment.symmetrization import symmetrize_all
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel
from sightline.studies.saliency.measuring import (
    encode_pairs,
    measure_exchange,
    measure_methods,
    measure_noise,
    name_sigma,
    rate,
    read_links,
    show_example,
)
from sightline.studies.saliency.published import ARCHITECTURES, ATTENTION, OURS_GRAD, OURS_SMOOTH
from sightline.studies.saliency.reading import METHODS
from sightline.studies.saliency.settings import Settings
from sightline.studies.saliency.texts import (
    Direction,
    GoldPairs,
    WordPair,
    find_corpus,
    read_tested,
    read_trained,
)
from sightline.studies.saliency.translators import find_model, load_model
from sightline.studies.study import Step, Work
from sightline.verbs.explaining import Pair
from sightline.verbs.translating import answer_pairs

ALIGNERS, JOINED = "aligners", "joined"
JOINED_RULE = "grow-diag-final-strict"
"""What the alignment-scripts call grow-diagonal-final."""
ALIGNERS_RULE = "grow-diag-strict"
"""By which the paper's figures of fast_align are joined."""
SILVER = "silver.npz"
FORCED, FREE = "forced", "free"


def build_steps(settings: Settings, data: Path | None) -> list[Step]:
    """Build the steps; a model of a folder is looked for now, so that a wrong folder is told at once."""
    corpus = find_corpus(settings, data)
    steps = [Step(ALIGNERS, partial(_score_aligners, settings=settings, corpus=corpus))]
    for architecture in ARCHITECTURES:
        for direction in (settings.languages, settings.languages[::-1]):
            find_model(settings, architecture, direction)
            run = partial(
                _measure_model, settings=settings, corpus=corpus, architecture=architecture, direction=direction
            )
            steps.append(Step(step_name(architecture, direction), run))
    return [*steps, Step(JOINED, partial(_join, settings=settings, corpus=corpus))]


def step_name(architecture: str, direction: Direction) -> str:
    """Name the step that measures a model."""
    return f"{architecture} {'-'.join(direction)}"


# Aligners


def _score_aligners(work: Work, settings: Settings, corpus: Path | None) -> dict[str, Any]:
    """Train aligners with the test pairs (offline) and without them (online), and score them on the test pairs."""
    tested = read_tested(settings, corpus)
    trained: list[WordPair] = []
    rates: dict[str, dict[str, float]] = {}
    for name in settings.aligners:
        for when in ("online", "offline"):

            def measured(name: str = name, when: str = when) -> dict[str, float]:
                if not trained:
                    trained.extend(read_trained(settings, corpus))
                aligner = train_aligner(build_bitext(trained + (tested.words() if when == "offline" else [])), name)
                if when == "online" and name == settings.aligners[0]:
                    work.folder.mkdir(parents=True, exist_ok=True)
                    save_aligner(aligner, work.folder / SILVER)
                return score_aligner(aligner, tested, settings.languages)

            rates[f"{name} {when}"] = work.keep(f"{name} {when}", measured)
            work.say(f"{name} {when}: {rates[f'{name} {when}']}")
    return {"rates": rates}


def score_aligner(aligner: TwoWayAligner, tested: GoldPairs, languages: Direction) -> dict[str, float]:
    """Score both directions of an aligner, and the two joined."""
    forward, backward = align_both_ways(aligner, tested.words())
    first, second = languages
    joined = list(symmetrize_all(forward, backward, ALIGNERS_RULE))
    return {
        f"{first}-{second}": rate(forward, tested.gold),
        f"{second}-{first}": rate(backward, tested.gold),
        f"{first}<>{second}": rate(joined, tested.gold),
    }


def align_both_ways(aligner: TwoWayAligner, pairs: Sequence[WordPair]) -> tuple[list[Alignment], list[Alignment]]:
    """Return the links of each direction by itself, both as (source, target)."""
    backward = aligner.backward.align([(target, source) for source, target in pairs])
    return list(aligner.forward.align(pairs)), [one.flipped() for one in backward]


def build_silver(aligner: TwoWayAligner, pairs: Sequence[WordPair], turned: bool) -> list[Alignment]:
    """Return the references of pairs that a model made; `turned` ones go from the aligner's target to its source."""
    facing = [(target, source) for source, target in pairs] if turned else list(pairs)
    silver = [silver_reference(*both) for both in zip(*align_both_ways(aligner, facing), strict=True)]
    return [one.flipped() for one in silver] if turned else silver


# Models


class Spoken(NamedTuple):
    """Pairs as a model reads them, with their reference alignments; in free decoding the targets are its own."""

    examples: list[Example]
    references: list[Alignment]


@dataclass
class _System:
    """A model and its pairs, each of which is loaded, trained or made when it is first needed."""

    work: Work
    settings: Settings
    corpus: Path | None
    architecture: str
    direction: Direction

    @property
    def turned(self) -> bool:
        return self.direction != self.settings.languages

    @cached_property
    def tested(self) -> GoldPairs:
        tested = read_tested(self.settings, self.corpus)
        return tested.flipped() if self.turned else tested

    @cached_property
    def loaded(self) -> tuple[LoadedModel, dict[str, Any]]:
        return load_model(self.work, self.settings, self.corpus, self.architecture, self.direction)

    @property
    def model(self) -> LoadedModel:
        return self.loaded[0]

    @cached_property
    def forced(self) -> Spoken:
        tested = self.tested
        return Spoken(encode_pairs(self.model, tested.sources, tested.targets), tested.gold)

    @cached_property
    def translations(self) -> list[Example]:
        pairs = (Pair(number, " ".join(source), None) for number, source in enumerate(self.tested.sources, start=1))
        answered = answer_pairs(self.model, pairs, {"num_beams": self.settings.beam})
        return [pair.encode(self.model) for pair in answered]

    @cached_property
    def free(self) -> Spoken:
        said = [one for one in self.translations if one.label_tokens.words]
        aligner = load_aligner(self.work.folder.parent / ALIGNERS / SILVER)
        pairs = [(list(one.source.words), list(one.label_tokens.words)) for one in said]
        return Spoken(said, build_silver(aligner, pairs, self.turned))

    def translate(self) -> dict[str, Any]:
        """Score the translations of the test sentences, and count the empty ones."""
        texts = [" ".join(one.label_tokens.words) for one in self.translations]
        references = [" ".join(target) for target in self.tested.targets]
        bleu = BLEU(tokenize="none", force=True).corpus_score(texts, [references])
        return {"bleu": bleu.score, "empty": sum(not text for text in texts)}

    def measure(self, spoken: Spoken) -> dict[str, Any]:
        return measure_methods(self.model, *spoken, self.architecture, self.settings)


def _measure_model(
    work: Work, settings: Settings, corpus: Path | None, architecture: str, direction: Direction
) -> dict[str, Any]:
    """Measure a model in forced and in free decoding; the noise, and the pair that is shown, in one direction only."""
    _ = work.results[ALIGNERS]  # they make the reference of free decoding: without them, stop before the long work
    system = _System(work, settings, corpus, architecture, direction)
    result: dict[str, Any] = {
        "model": work.keep("model", lambda: system.loaded[1]),
        "translations": work.keep("translations", system.translate),
        FORCED: work.keep(FORCED, lambda: system.measure(system.forced)),
        FREE: work.keep(FREE, lambda: system.measure(system.free)),
        "exchange": work.keep(
            "exchange", lambda: measure_exchange(system.model, system.forced.examples, architecture, settings)
        ),
    }
    for decoding in (FORCED, FREE):
        work.say(f"{decoding}: {OURS_SMOOTH} {result[decoding]['rates'][OURS_SMOOTH]:.1f}")
    if not system.turned:
        result["noise"] = {decoding: _sweep(system, decoding, result[decoding]) for decoding in (FORCED, FREE)}
        result["example"] = work.keep(
            "example", lambda: show_example(system.model, *system.forced, architecture, settings)
        )
    return result


def _sweep(system: _System, decoding: str, measured: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Collect entropy and error rate on the first pairs of attention, and of word saliency by noise (table 3)."""
    settings = system.settings
    known = {ATTENTION: ATTENTION, name_sigma(0.0): OURS_GRAD, name_sigma(settings.sigma): OURS_SMOOTH}
    found = {
        name: {"entropy": measured["entropies"][method], "rate": measured["first rates"][method]}
        for name, method in known.items()
    }
    for sigma in settings.sigmas:
        if name_sigma(sigma) not in found:

            def measure(sigma: float = sigma) -> dict[str, float]:
                spoken = system.forced if decoding == FORCED else system.free
                return measure_noise(system.model, *spoken, settings, sigma)

            found[name_sigma(sigma)] = system.work.keep(f"{decoding} {name_sigma(sigma)}", measure)
    columns = [ATTENTION, *(name_sigma(sigma) for sigma in settings.sigmas)]
    return {column: found[column] for column in columns}


# Both directions


def _join(work: Work, settings: Settings, corpus: Path | None) -> dict[str, Any]:
    """Join the links of both directions, of every architecture and method, in forced decoding."""
    gold = read_tested(settings, corpus).gold
    rates: dict[str, dict[str, float]] = {}
    for architecture in ARCHITECTURES:
        forward, backward = (
            work.results[step_name(architecture, direction)][FORCED]["links"]
            for direction in (settings.languages, settings.languages[::-1])
        )
        rates[architecture] = {method: join_rate(forward[method], backward[method], gold) for method in METHODS}
    return {"languages": settings.languages, "rates": rates}


def join_rate(forward: Sequence[str], backward: Sequence[str], gold: Sequence[Alignment]) -> float:
    """Compute the error rate of joined links; those of the backward direction are (target, source)."""
    flipped = (read_links(line).flipped() for line in backward)
    return rate(list(symmetrize_all(map(read_links, forward), flipped, JOINED_RULE)), gold)
