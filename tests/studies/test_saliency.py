"""The study of word saliency: what is read off models against literal versions, its claims and tables, and one run."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import zoo
from methods.literal import embedding_gradients
from studies.changing import changed

import sightline
from sightline.alignment.bitext import build_bitext
from sightline.alignment.error_rate import silver_reference
from sightline.alignment.links import Alignment
from sightline.alignment.one_way import StatisticalAligner
from sightline.alignment.saved import load_aligner
from sightline.alignment.statistical import TwoWayAligner, train_aligner
from sightline.attribution import Attribution, Tokens
from sightline.data.language import GeneratedLanguage
from sightline.errors import InputError
from sightline.methods.paths import NoisyPath, SmoothSettings
from sightline.studies.running import run_study
from sightline.studies.saliency import measuring, steps, translators
from sightline.studies.saliency.measuring import (
    count_by_sign,
    encode_pairs,
    exchange_output,
    measure_entropy,
    measure_exchange,
    measure_methods,
    measure_noise,
)
from sightline.studies.saliency.published import (
    ARCHITECTURES,
    ATTENTION,
    LI_GRAD,
    LI_SMOOTH,
    OURS_GRAD,
    OURS_RAW,
    OURS_SMOOTH,
    PRINTED_METHODS,
    RELEASED_GRAD,
    RELEASED_SMOOTH,
    SMOOTHED,
    TABLE_1,
    TABLE_2,
    TABLE_3,
)
from sightline.studies.saliency.reading import METHODS, read_all, read_noise
from sightline.studies.saliency.settings import PAPER, QUICK, STANDARD
from sightline.studies.saliency.steps import JOINED, build_silver, join_rate, score_aligner, step_name
from sightline.studies.saliency.study import STUDY
from sightline.studies.saliency.texts import LANGUAGE, GoldPairs, read_tested, write_recipe_data
from sightline.studies.saliency.translators import build_recipe, find_model, load_model, model_name
from sightline.training.recipe import read_recipe
from sightline.verbs.explaining import Pair

RECIPES = Path(__file__).parents[2] / "recipes"
FEW = dataclasses.replace(QUICK, samples=3, sigma=0.2, noisy_pairs=2, exchanged=2, seed=5)
FORMS = {"conv": "conv", "lstm": "lstm-input-feeding", "transformer": "marian"}


def attribution(scores: Any, source: list[int | None], target: list[int | None]) -> Attribution:
    """Make an attribution by hand; a position without a word is special."""

    def tokens(word_ids: list[int | None]) -> Tokens:
        words = tuple(f"w{number}" for number in range(len({one for one in word_ids if one is not None})))
        return Tokens(tuple(f"p{place}" for place in range(len(word_ids))), tuple(word_ids), words)

    return Attribution(np.array(scores, dtype=np.float32), source=tokens(source), target=tokens(target))


# Reading


def literal_samples(model: Any, example: Any) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Compute plain gradients, those of every noisy sample, and clean embeddings, a pass for each output."""
    slopes, clean = embedding_gradients(model, example)
    path = NoisyPath(model.batch([example]), SmoothSettings(smoothgrad=3, sigma=0.2, seed=5))
    noisy = []
    for sample in range(3):
        noise = 0.2 * (clean.max() - clean.min()) * path._noise(0, sample, clean.shape[-1])
        noisy.append(embedding_gradients(model, example, noise=noise)[0].numpy())
    return slopes.numpy(), noisy, clean.numpy()


def mean_of_shares(samples: list[np.ndarray]) -> np.ndarray:
    shares = [np.maximum(one, 0) for one in samples]
    return np.mean([one / np.where(one.sum(-1) > 0, one.sum(-1), 1)[:, None] for one in shares], axis=0)


@pytest.mark.parametrize("architecture", FORMS)
def test_every_method_is_what_it_defines(architecture: str) -> None:
    model = zoo.precise(FORMS[architecture])
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    (readings,) = read_all(model, iter([example]), architecture, FEW)
    slopes, noisy, clean = literal_samples(model, example)
    expected = {
        LI_GRAD: np.abs(slopes).mean(-1),
        RELEASED_GRAD: np.abs((slopes * clean).sum(-1)),
        OURS_GRAD: (slopes * clean).sum(-1),
        LI_SMOOTH: mean_of_shares([np.abs(one).mean(-1) for one in noisy]),
        RELEASED_SMOOTH: mean_of_shares([np.abs((one * clean).sum(-1)) for one in noisy]),
        OURS_SMOOTH: mean_of_shares([(one * clean).sum(-1) for one in noisy]),
        OURS_RAW: np.mean([(one * clean).sum(-1) for one in noisy], axis=0),
    }
    assert set(readings) == {*expected, ATTENTION, SMOOTHED} == set(METHODS)
    for method, scores in expected.items():
        np.testing.assert_allclose(
            readings[method].scores, scores, atol=1e-6 * np.abs(scores).max(), rtol=1e-5, err_msg=method
        )


def literal_attention(model: Any, example: Any, architecture: str, noise: torch.Tensor | None) -> np.ndarray:
    """Read the weights that the model itself gives, with noise on the source embeddings."""
    batch = model.batch([example])
    site = model.embedding_sites["source"]
    change = (
        (lambda module, args, output: output) if noise is None else (lambda m, a, output: output + noise / site.scale)
    )
    hook = site.module.register_forward_hook(change)
    implementation = getattr(model.module.config, "_attn_implementation", None)
    try:
        if architecture == "transformer":
            model.module.set_attn_implementation("eager")
        with torch.no_grad():
            output = model.module(
                input_ids=batch.ids,
                attention_mask=batch.mask.long(),
                decoder_input_ids=batch.decoder_ids,
                output_attentions=True,
            )
    finally:
        hook.remove()
        if architecture == "transformer":
            model.module.set_attn_implementation(implementation)
    layers = [layer[0].mean(0).numpy() for layer in output.cross_attentions]
    return np.mean(layers, axis=0) if architecture == "conv" else layers[-1]


def test_attention_is_of_the_last_layer_and_smoothed_over_the_same_samples() -> None:
    model = zoo.precise("marian")
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    (readings,) = read_all(model, iter([example]), "transformer", FEW)
    np.testing.assert_allclose(
        readings[ATTENTION].scores, literal_attention(model, example, "transformer", None), atol=1e-6
    )
    _, clean = embedding_gradients(model, example)
    path = NoisyPath(model.batch([example]), SmoothSettings(smoothgrad=3, sigma=0.2, seed=5))
    scale = 0.2 * (clean.max() - clean.min())
    noisy = [
        literal_attention(model, example, "transformer", scale * path._noise(0, sample, clean.shape[-1]))
        for sample in range(3)
    ]
    np.testing.assert_allclose(readings[SMOOTHED].scores, np.mean(noisy, axis=0), atol=1e-6)


def test_attention_of_the_convolutional_model_is_the_mean_of_its_layers() -> None:
    model = zoo.precise("conv")
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    by_layer = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="attention", layer="all").scores
    assert len(by_layer) > 1
    (readings,) = read_all(model, iter([example]), "conv", FEW)
    np.testing.assert_allclose(readings[ATTENTION].scores, by_layer.mean(0), atol=1e-6)


def test_other_noise_is_other_samples() -> None:
    model = zoo.model("conv")
    examples = [model.encode(zoo.SOURCES[0], zoo.TARGETS[0])]
    (usual,) = read_all(model, iter(examples), "conv", FEW)
    (same,) = read_noise(model, iter(examples), FEW, FEW.sigma)
    (other,) = read_noise(model, iter(examples), FEW, 0.01)
    np.testing.assert_allclose(same[OURS_SMOOTH].scores, usual[OURS_SMOOTH].scores, atol=1e-6)
    assert np.abs(other[OURS_SMOOTH].scores - usual[OURS_SMOOTH].scores).max() > 1e-3


# Measuring


def test_entropy_is_the_mean_over_rows_with_mass() -> None:
    rows = [[1.0, 1.0, -5.0], [2.0, 0.0, 0.0], [-1.0, -1.0, 0.0], [1.0, 1.0, 2.0]]
    expected = (np.log(2) + 0 + 1.5 * np.log(2)) / 3  # the row without a positive score does not count
    assert measure_entropy(attribution(rows, [0, 1, None], [0, 1, 1, None])) == pytest.approx(expected, abs=1e-6)
    assert np.isnan(measure_entropy(attribution([[-1.0, 0.0]], [0, 1], [0])))


def test_links_without_polarity_are_counted_by_the_sign_of_saliency() -> None:
    sizes = [[5, 1, 9], [1, 4, 9], [7, 2, 9], [1, 3, 9], [2, 1, 9]]
    signed = [[1, -1, 1], [1, -2, 1], [-3, 1, 1], [1, 0, 1], [-1, 1, 1]]
    word_ids: tuple[list[int | None], list[int | None]] = [0, 1, None], [0, 1, 2, 2, None]
    # Links: 0-0 (positive), 1-1 (negative), 0-2 (negative), 1-2 (zero counts as negative); the end token has none.
    reference = Alignment([(0, 0)], [(1, 1)])
    found = count_by_sign(attribution(sizes, *word_ids), attribution(signed, *word_ids), reference)
    assert found == {"positive": [1, 1], "negative": [3, 1]}


def test_the_last_output_is_exchanged_and_read_afterwards() -> None:
    model = zoo.model("marian")
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    exchanged = exchange_output(example)
    assert exchanged is not None
    same, other, place = exchanged
    assert same is example
    assert place == len(example.labels) - 2, "the end token is no output that is exchanged"
    different = [
        number for number, pair in enumerate(zip(example.labels, other.labels, strict=True)) if pair[0] != pair[1]
    ]
    assert different == [place]
    assert other.labels[place] == other.decoder_ids[place + 1] != example.decoder_ids[place + 1]
    assert other.decoder_ids[: place + 1] == example.decoder_ids[: place + 1]
    alone = dataclasses.replace(example, labels=(example.labels[0],) * len(example.labels))
    assert exchange_output(alone) is None


@pytest.mark.parametrize("architecture", FORMS)
def test_an_exchanged_output_changes_saliency_and_not_attention(architecture: str) -> None:
    model = zoo.model(FORMS[architecture])
    examples = [model.encode(source, target) for source, target in zip(zoo.SOURCES, zoo.TARGETS, strict=True)]
    found = measure_exchange(model, examples, architecture, FEW)
    assert found["pairs"] == 2
    assert found["attention"] < 1e-6
    assert found["saliency"] > 0.01
    assert 0 <= found["moved"] <= 1


def test_what_an_exchange_changes_is_measured_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.model("marian")
    examples = [model.encode(source, target) for source, target in zip(zoo.SOURCES, zoo.TARGETS, strict=True)]
    ids: tuple[list[int | None], list[int | None]] = [0, 1], [0]
    before = [([[0.5, 0.5]], [[3.0, 1.0]]), ([[0.9, 0.1]], [[1.0, 0.0]])]
    after = [([[0.5, 0.25]], [[1.0, 3.0]]), ([[0.9, 0.1]], [[2.0, 2.0]])]
    batches = iter([before, after])
    monkeypatch.setattr(
        measuring,
        "read_plain",
        lambda *_: ({ATTENTION: attribution(a, *ids), OURS_GRAD: attribution(s, *ids)} for a, s in next(batches)),
    )
    found = measure_exchange(model, examples, "transformer", FEW)
    assert found == {"pairs": 2, "attention": 0.25, "saliency": 0.5, "moved": 0.5}


def literal_rate(readings: list[Attribution], gold: list[Alignment]) -> float:
    """Link each target piece to its best source piece, end tokens left out, and compute AER by its definition."""
    found, sure, both, links = 0, 0, 0, 0
    for reading, expected in zip(readings, gold, strict=True):
        chosen = set()
        columns = [place for place, word in enumerate(reading.source.word_ids) if word is not None]
        for row, word in enumerate(reading.target.word_ids):
            scores = reading.scores[row, columns]
            if word is not None and scores.max() > 0:
                chosen.add((reading.source.word_ids[columns[int(scores.argmax())]], word))
        found += len(chosen)
        sure += len(expected.links)
        both += len(chosen & expected.links)
        links += len(chosen & expected.possible)
    return 100 * (1 - (both + links) / (found + sure))


def test_rates_and_entropies_of_all_methods() -> None:
    model = zoo.model("conv")
    sources, targets = ([text.split() for text in texts[:4]] for texts in (zoo.SOURCES, zoo.TARGETS))
    gold = [Alignment([(0, 0)], [(0, 1), (1, 1)] if len(one) > 1 else []) for one in sources]
    examples = encode_pairs(model, sources, targets)
    found = measure_methods(model, examples, gold, "conv", FEW)
    readings = list(read_all(model, iter(examples), "conv", FEW))
    for method in METHODS:
        read = [one[method] for one in readings]
        assert found["rates"][method] == pytest.approx(literal_rate(read, gold), abs=1e-9)
        assert len(found["links"][method]) == 4
    for method in (ATTENTION, OURS_GRAD, OURS_SMOOTH):
        first = [one[method] for one in readings[:2]]
        assert found["first rates"][method] == pytest.approx(literal_rate(first, gold[:2]), abs=1e-9)
        assert found["entropies"][method] == pytest.approx(np.mean([measure_entropy(one) for one in first]), rel=1e-4)
    counts = [count_by_sign(one[LI_SMOOTH], one[OURS_RAW], gold[number]) for number, one in enumerate(readings)]
    assert found["polarity"]["negative"] == np.sum([one["negative"] for one in counts], axis=0).tolist()
    assert found["polarity"]["positive"] == np.sum([one["positive"] for one in counts], axis=0).tolist()
    noise = measure_noise(model, examples, gold, FEW, 0.01)
    noisy = [one[OURS_SMOOTH] for one in read_noise(model, iter(examples[:2]), FEW, 0.01)]
    assert noise["rate"] == pytest.approx(literal_rate(noisy, gold[:2]), abs=1e-9)
    assert noise["entropy"] == pytest.approx(np.mean([measure_entropy(one) for one in noisy]), rel=1e-4)


# Aligners, and both directions


class Written(StatisticalAligner):
    """An aligner that has its links written down, by target sentence."""

    def __init__(self, links: dict[str, list[tuple[int, int]]]) -> None:
        object.__setattr__(self, "links", links)

    def _fill(self, text: Any, posteriors: Any) -> None:
        raise NotImplementedError

    def align(self, pairs: Any) -> Iterator[Alignment]:
        return (Alignment(self.links[" ".join(target)], (), len(source), len(target)) for source, target in pairs)


def written() -> TwoWayAligner:
    forward = Written({"x y": [(0, 0), (1, 1)]})
    backward = Written({"a b": [(0, 0), (0, 1)]})  # (target, source)
    return TwoWayAligner(forward, backward)


def test_aligners_are_scored_in_both_directions_and_joined() -> None:
    tested = GoldPairs([["a", "b"]], [["x", "y"]], [Alignment([(0, 0)], [(1, 1)])])
    rates = score_aligner(written(), tested, ("en", "fr"))
    # Forward 0-0 1-1: 1 - (1 + 2) / 3. Backward 0-0 1-0: 1 - (1 + 1) / 3. Joined: the link 1-1 has both words free
    # only after 1-0, which shares the word 0: 0-0 1-1.
    assert rates == {"en-fr": 0.0, "fr-en": pytest.approx(100 / 3), "en<>fr": 0.0}


def test_a_silver_reference_has_links_of_both_directions_as_sure() -> None:
    silver = silver_reference(Alignment([(0, 0), (1, 1)]), Alignment([(0, 0), (1, 0)]))
    assert silver == Alignment([(0, 0)], [(1, 1), (1, 0)])
    assert build_silver(written(), [(["a", "b"], ["x", "y"])], turned=False) == [silver]
    assert build_silver(written(), [(["x", "y"], ["a", "b"])], turned=True) == [silver.flipped()]


def test_directions_are_joined_by_the_rule_of_the_paper() -> None:
    gold = [Alignment([(0, 0), (1, 1)], [(2, 2)])]
    # The reverse direction is (target, source). The intersection is 0-0; 1-1 grows from it, and 2-2 from that.
    assert join_rate(["0-0 1-1 2-2"], ["0-0 2-1"], gold) == pytest.approx(100 * (1 - (2 + 3) / 5))
    assert join_rate(["0-0 0-1"], ["0-0 1-1"], gold) == pytest.approx(100 * (1 - (2 + 2) / 4))
    assert join_rate(["0-0"], ["1-0"], [Alignment([(0, 0)])]) == 0, "of two that exclude each other, the forward one"
    # A link is added only if both of its words are free: 1-0 is not.
    assert join_rate(["0-0 1-0"], ["0-0"], gold) == pytest.approx(100 * (1 - (1 + 1) / 3))


def work_in(folder: Path, say: Any = lambda text: None) -> Any:
    """Make up what a step is given; nothing is kept."""
    return SimpleNamespace(results={}, folder=folder, keep=lambda name, compute: compute(), say=say)


def test_the_steps_of_the_study() -> None:
    models = [f"{name} {direction}" for name in ARCHITECTURES for direction in ("source-target", "target-source")]
    assert [step.name for step in steps.build_steps(QUICK, None)] == ["aligners", *models, "joined"]


def test_aligners_are_trained_without_the_test_pairs_and_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = dataclasses.replace(QUICK, generated_pairs=40, test_pairs=4, aligners=("ibm1", "diagonal"))
    language = GeneratedLanguage(LANGUAGE)
    trained = [(list(one.source_words), list(one.target_words)) for one in language.pairs(40, "train")]
    generated = language.pairs(4, "test")
    tested = read_tested(settings, None)
    assert tested.words() == [(list(one.source_words), list(one.target_words)) for one in generated]
    assert tested.gold == [Alignment(one.links) for one in generated]
    texts: list[Any] = []

    def train(bitext: Any, name: str) -> TwoWayAligner:
        texts.append((bitext, name))
        return train_aligner(bitext, name)

    monkeypatch.setattr(steps, "train_aligner", train)
    work = work_in(tmp_path / "new" / "aligners")
    found = steps.build_steps(settings, None)[0].run(work)["rates"]
    expected = {}
    for number, (name, when) in enumerate(
        (one, when) for one in ("ibm1", "diagonal") for when in ("online", "offline")
    ):
        bitext = build_bitext(trained + (tested.words() if when == "offline" else []))
        assert texts[number][1] == name
        np.testing.assert_array_equal(texts[number][0].source.ids, bitext.source.ids)
        expected[f"{name} {when}"] = score_aligner(train_aligner(bitext, name), tested, settings.languages)
    assert found == expected
    silver = load_aligner(work.folder / steps.SILVER)
    assert isinstance(silver, TwoWayAligner)
    reference = train_aligner(build_bitext(trained), "ibm1")
    assert list(silver.align(tested.words(), "union")) == list(reference.align(tested.words(), "union"))


def test_noise_is_measured_on_the_pairs_of_the_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        steps,
        "measure_noise",
        lambda model, examples, references, settings, sigma: {"entropy": sigma, "rate": float(len(references))},
    )
    settings = dataclasses.replace(QUICK, sigma=0.15, sigmas=(0.0, 0.15, 0.3))
    system = steps._System(work_in(Path()), settings, None, "conv", settings.languages)
    one_pair, two_pairs = (steps.Spoken([], [Alignment()] * count) for count in (1, 2))
    vars(system).update(loaded=(zoo.model("conv"), {}), forced=one_pair, free=two_pairs)
    measured = {
        "entropies": {ATTENTION: 0.1, OURS_GRAD: 0.2, OURS_SMOOTH: 0.3},
        "first rates": {ATTENTION: 10.0, OURS_GRAD: 20.0, OURS_SMOOTH: 30.0},
    }
    known = {
        ATTENTION: {"entropy": 0.1, "rate": 10.0},
        "sigma 0": {"entropy": 0.2, "rate": 20.0},
        "sigma 0.15": {"entropy": 0.3, "rate": 30.0},
    }
    for decoding, pairs in (("forced", 1.0), ("free", 2.0)):
        found = steps._sweep(system, decoding, measured)
        assert found == known | {"sigma 0.3": {"entropy": 0.3, "rate": pairs}}
        assert list(found) == [ATTENTION, "sigma 0", "sigma 0.15", "sigma 0.3"]


def test_pairs_are_answered_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.model("conv")
    asked: list[Pair] = []

    def answer(model: Any, pairs: Any, options: dict[str, Any]) -> Iterator[Pair]:
        assert options == {"num_beams": QUICK.beam}
        for pair in pairs:
            asked.append(pair)
            yield Pair(pair.number, pair.source, zoo.TARGETS[0])

    monkeypatch.setattr(steps, "answer_pairs", answer)
    settings = dataclasses.replace(QUICK, test_pairs=2)
    system = steps._System(work_in(Path()), settings, None, "conv", settings.languages)
    vars(system)["loaded"] = (model, {})
    assert [one.labels for one in system.translations] == [model.encode(zoo.SOURCES[0], zoo.TARGETS[0]).labels] * 2
    assert [pair.number for pair in asked] == [1, 2]
    assert [pair.source.split() for pair in asked] == read_tested(settings, None).sources


def test_pairs_need_a_target_each() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        encode_pairs(zoo.model("conv"), [["The"], ["cat"]], [["El"]])


# Claims and tables

EN_FR, FR_EN = ("en", "fr"), ("fr", "en")
BEYOND = {RELEASED_GRAD: 61.0, RELEASED_SMOOTH: 62.0, OURS_RAW: 63.0}


def made_up() -> dict[str, Any]:
    """Make up results out of the paper's own figures; the rest are figures that all differ."""
    results: dict[str, Any] = {
        "aligners": {
            "rates": {
                f"{name} {when}": {column: value + shift for column, value in rates.items()}
                for name, rates, shift in (
                    ("diagonal", {"en-fr": 16.4, "fr-en": 15.9, "en<>fr": 10.5}, 0.0),
                    ("hmm", {"en-fr": 7.1, "fr-en": 7.2, "en<>fr": 6.3}, 0.01),
                )
                for when, shift in (("offline", shift), ("online", shift + 1))
            }
        }
    }
    joined: dict[str, dict[str, float]] = {}
    for number, (architecture, name) in enumerate(ARCHITECTURES.items()):
        rows = {method: f"{name}: {method}" for method in PRINTED_METHODS}
        for turn, direction in enumerate((EN_FR, FR_EN)):
            column = "-".join(direction)
            unique = 10 * number + turn
            results[step_name(architecture, direction)] = {
                "model": {"given": False, "minutes": 100.5 + unique, "parameters": 1000 + unique},
                "translations": {"bleu": 30.25 + unique, "empty": unique},
                "exchange": {
                    "pairs": 50 + unique,
                    "attention": (1 + unique) * 1e-8,
                    "saliency": 0.5 + unique / 100,
                    "moved": 0.2 + unique / 100,
                },
                "forced": {
                    "rates": {method: TABLE_1[row][column] for method, row in rows.items()}
                    | {method: rate + unique for method, rate in BEYOND.items()},
                    "polarity": {"positive": [80 + unique, 60], "negative": [20 + unique, 5]},
                },
                "free": {
                    "rates": {method: TABLE_2[row][column] for method, row in rows.items()}
                    | {method: rate + unique + 0.5 for method, rate in BEYOND.items()},
                },
            }
        joined[architecture] = {method: TABLE_1[row]["en<>fr"] for method, row in rows.items()} | {
            method: rate + number + 0.25 for method, rate in BEYOND.items()
        }
        results[step_name(architecture, EN_FR)] |= {
            "noise": {
                decoding: {
                    column: {"entropy": value, "rate": 20 + value}
                    for column, value in TABLE_3[f"{name}, {decoding}"].items()
                }
                for decoding in ("forced", "free")
            },
            "example": {
                "source": ["a", "b"],
                "target": ["c"],
                "gold": [[0, 1]],
                "methods": {method: [[0.25, 0.75]] for method in measuring.SHOWN},
                "noise": {column: [[0.5, 0.5]] for column in ("sigma 0", "sigma 0.05", "sigma 0.15", "sigma 0.3")},
            },
        }
    return results | {JOINED: {"languages": ["en", "fr"], "rates": joined}}


def verdicts(results: dict[str, Any]) -> dict[str, bool | None]:
    findings = {claim.id: claim.judge(results) for claim in STUDY.claims}
    return {name: None if finding is None else finding.holds for name, finding in findings.items()}


def test_claims_hold_on_the_papers_own_figures() -> None:
    assert set(verdicts(made_up()).values()) == {True}


@pytest.mark.parametrize(
    ("path", "value", "failing"),
    [
        (("conv en-fr", "exchange", "attention"), 0.1, {"exchange"}),
        (("lstm fr-en", "exchange", "saliency"), 0.05, {"exchange"}),
        (("lstm fr-en", "free", "rates", ATTENTION), 19.0, {"saliency"}),
        (("transformer en-fr", "forced", "rates", OURS_SMOOTH), 48.2, {"saliency"}),
        (("joined", "rates", "lstm", ATTENTION), 30.5, {"gradient"}),
        (("joined", "rates", "conv", ATTENTION), 11.8, {"gradient"}),
        (("conv fr-en", "forced", "rates", OURS_GRAD), 18.0, {"smoothgrad"}),
        (("lstm en-fr", "free", "rates", OURS_GRAD), 300.0, {"most", "free"}),
        (("conv en-fr", "forced", "rates", LI_SMOOTH), 21.0, {"li"}),
        (("lstm en-fr", "forced", "polarity", "negative"), [20, 19], {"polarity"}),
        (("joined", "rates", "transformer", OURS_SMOOTH), 26.0, {"joined"}),
        (("joined", "rates", "conv", OURS_SMOOTH), 10.6, {"aligner"}),
        (("conv en-fr", "forced", "rates", ATTENTION), 46.0, {"order"}),
        (("lstm en-fr", "forced", "rates", ATTENTION), 60.0, {"order", "concentrated"}),
        (("lstm en-fr", "noise", "free", "sigma 0.05", "entropy"), 1.5, {"dispersion"}),
        (("conv en-fr", "noise", "forced", "sigma 0.3", "entropy"), 2.5, {"free-dispersion"}),
        (("lstm en-fr", "noise", "forced", ATTENTION, "entropy"), 1.7, {"concentrated"}),
    ],
)
def test_each_claim_can_fail(path: tuple[Any, ...], value: Any, failing: set[str]) -> None:
    found = verdicts(changed(made_up(), path, value))
    assert {name for name, holds in found.items() if holds is False} == failing


def test_smoothing_is_judged_by_most_columns() -> None:
    results = made_up()
    for direction in (EN_FR, FR_EN):
        for decoding in ("forced", "free"):
            results[step_name("lstm", direction)][decoding]["rates"][SMOOTHED] = 10.0
    assert verdicts(results)["smoothing"] is False  # 6 of 15 are no better


def test_polarity_is_not_measured_without_negative_links() -> None:
    results = made_up()
    for architecture in ARCHITECTURES:
        for direction in (EN_FR, FR_EN):
            results[step_name(architecture, direction)]["forced"]["polarity"]["negative"] = [0, 0]
    assert verdicts(results)["polarity"] is None


def test_the_papers_figures_come_back_in_their_places() -> None:
    forced, free, entropies, rates, *_ = (table.measured(made_up()) for table in STUDY.tables)
    columns_1, columns_2 = ("en-fr", "fr-en", "en<>fr"), ("en-fr", "fr-en")
    for name in ARCHITECTURES.values():
        for method in PRINTED_METHODS:
            row = f"{name}: {method}"
            assert forced[row] == {column: TABLE_1[row][column] for column in columns_1}
            assert free[row] == {column: TABLE_2[row][column] for column in columns_2}
    assert entropies == TABLE_3
    assert rates["LSTM, free"]["sigma 0.15"] == 20 + 2.46
    assert forced["fast_align offline"] == {column: TABLE_1["fast_align offline"][column] for column in columns_1}
    assert forced["fast_align online"] == pytest.approx({"en-fr": 17.4, "fr-en": 16.9, "en<>fr": 11.5})
    assert forced["hmm online"] == pytest.approx({"en-fr": 8.11, "fr-en": 8.21, "en<>fr": 7.31})


def test_rows_beyond_the_papers() -> None:
    forced, free, _, _, polarity, exchanges, models = (table.measured(made_up()) for table in STUDY.tables)
    assert forced[f"LSTM: {RELEASED_GRAD}"] == {"en-fr": 71.0, "fr-en": 72.0, "en<>fr": 62.25}
    assert forced[f"Transformer: {RELEASED_SMOOTH}"] == {"en-fr": 82.0, "fr-en": 83.0, "en<>fr": 64.25}
    assert free[f"FConv: {OURS_RAW}"] == {"en-fr": 63.5, "fr-en": 64.5}
    assert polarity["LSTM, fr-en"] == {
        "links where saliency is negative": 31,
        "share of all": 31 / (31 + 91),
        "precision there": 5 / 31,
        "precision elsewhere": 60 / 91,
    }
    assert exchanges["Transformer, en-fr"] == {
        "pairs": 70,
        "attention, greatest change": "2.1e-07",
        "saliency, total variation": 0.7,
        "best source piece moves": 0.4,
    }
    assert models["LSTM, en-fr"] == {
        "parameters": 1010,
        "minutes of training": 110.5,
        "test BLEU": 40.25,
        "empty translations": 10,
    }


def test_plots_show_the_figures() -> None:
    one, two, three, forced, joined, free, entropies, rates = STUDY.plots(made_up())
    assert [table["title"] for table in one["tables"]] == [ATTENTION, OURS_GRAD, OURS_SMOOTH]
    assert [table["title"] for table in two["tables"]] == [LI_SMOOTH, OURS_SMOOTH]
    assert [table["title"] for table in three["tables"]] == ["sigma 0", "sigma 0.05", "sigma 0.15", "sigma 0.3"]
    assert one["tables"][0]["framed"] == [[0, 1]]
    first, second, third = ({series["name"]: series["y"] for series in one["series"]} for one in (forced, joined, free))
    assert first["FConv"][0] == pytest.approx((23.8 + 27.4) / 2)
    assert second["Transformer"] == [33.8, 32.9, 39.9, 15.6, 74.5, 15.3]
    assert third["LSTM"][5] == pytest.approx((26.0 + 19.1) / 2)
    (lstm,) = (series for series in entropies["series"] if series["name"] == "LSTM, free")
    assert (lstm["x"], lstm["y"]) == ([0.0, 0.05, 0.15, 0.3], [1.57, 1.91, 2.46, 2.88])
    (conv,) = (series for series in rates["series"] if series["name"] == "FConv, forced")
    assert conv["y"] == pytest.approx([21.36, 21.48, 21.89, 22.59])


# Models and runs


@pytest.mark.parametrize("architecture", ["conv", "lstm", "transformer"])
@pytest.mark.parametrize("direction", [EN_FR, FR_EN])
def test_the_recipes_are_those_of_the_preset(architecture: str, direction: tuple[str, str]) -> None:
    name = model_name(STANDARD, architecture, direction)
    written = read_recipe(RECIPES / f"{name}.yaml")
    built = read_recipe(
        build_recipe(STANDARD, architecture, {"train": {"source": "a", "target": "b"}, "dev": {"held_out": 1}})
    )
    assert built.architecture == written.architecture
    assert built.model == written.model
    assert built.tokenizer == written.tokenizer
    if architecture != "transformer":  # which is trained longer for its own sake
        assert built.training == written.training


def test_the_paper_has_the_forms_of_fairseq() -> None:
    lstm, conv, transformer = (
        read_recipe(build_recipe(PAPER, one, {"train": {"source": "a", "target": "b"}, "dev": {"held_out": 1}})).model
        for one in ("lstm", "conv", "transformer")
    )
    assert (lstm.layers, lstm.width, lstm.bidirectional, lstm.input_feeding) == (1, 256, False, True)
    assert (conv.encoder_layers, conv.decoder_layers, conv.width, conv.kernel) == (4, 3, 256, 3)
    assert (transformer.encoder_layers, transformer.width, transformer.heads, transformer.feed_forward) == (
        6,
        512,
        4,
        1024,
    )


def test_given_models_are_found_by_the_names_of_their_recipes(tmp_path: Path) -> None:
    settings = dataclasses.replace(QUICK, models=str(tmp_path))
    direction = ("source", "target")
    zoo.model("conv").save(tmp_path / "generated-source-target-conv")
    assert find_model(settings, "conv", direction) == tmp_path / "generated-source-target-conv"
    assert find_model(settings, "transformer", direction) is None
    assert find_model(QUICK, "conv", direction) is None
    work = work_in(tmp_path / "unused")
    model, about = load_model(work, settings, None, "conv", direction)
    assert about["given"]
    assert about["minutes"] is None
    assert about["parameters"] == sum(one.numel() for one in model.module.parameters())
    zoo.model("bert-classifier").save(tmp_path / "generated-source-target")
    with pytest.raises(InputError, match=r"holds a BertForSequenceClassification: --models names translation models"):
        load_model(work, settings, None, "transformer", direction)
    with pytest.raises(InputError, match=r"There is no folder .*nowhere"):
        find_model(dataclasses.replace(QUICK, models=str(tmp_path / "nowhere")), "conv", direction)


def test_a_model_that_is_not_given_is_trained_by_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = dataclasses.replace(QUICK, generated_pairs=5)
    zoo.model("conv").save(tmp_path / "trained")
    recipes = []

    def trained(recipe: dict[str, Any], output: Path, quiet: bool) -> Any:
        recipes.append((recipe, output))
        return SimpleNamespace(folder=tmp_path / "trained", minutes=2.0, dev=SimpleNamespace(accuracy=0.5))

    monkeypatch.setattr(translators, "train", trained)
    said: list[str] = []
    _, about = load_model(work_in(tmp_path / "step", said.append), settings, None, "conv", ("target", "source"))
    assert (about["given"], about["minutes"]) == (False, 2.0)
    assert said == ["trained: accuracy 0.50 in 2 minutes"]
    data = write_recipe_data(settings, None, ("target", "source"), tmp_path / "step")
    assert recipes == [(build_recipe(settings, "conv", data), tmp_path / "step" / "model")]
    pairs = GeneratedLanguage(LANGUAGE).pairs(5, "train")
    assert Path(data["train"]["source"]).read_text().splitlines() == [pair.target for pair in pairs]
    assert Path(data["train"]["target"]).read_text().splitlines() == [pair.source for pair in pairs]


def test_without_its_corpus_a_preset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"This preset needs .*test.gold and its texts: name the folder"):
        run_study("saliency", "standard", data=tmp_path, output=tmp_path / "out", quiet=True)


def test_runs_stops_and_goes_on_and_is_drawn_again_without_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"width": 8, "max_positions": 64}
    tiny = dataclasses.replace(
        QUICK,
        conv=dataclasses.replace(QUICK.conv, model=dict(QUICK.conv.model) | small),
        lstm=dataclasses.replace(QUICK.lstm, model=dict(QUICK.lstm.model) | small, training={}),
        transformer=dataclasses.replace(QUICK.transformer, model=dict(QUICK.transformer.model) | small),
        training=dict(QUICK.training) | {"steps": 2, "checkpoint_every": 2, "average": 1},
        samples=2,
        noisy_pairs=2,
        exchanged=2,
        generated_pairs=60,
        test_pairs=4,
        sigmas=(0.0, 0.15, 0.3),
    )
    study = dataclasses.replace(STUDY, presets={"quick": tiny})
    options: dict[str, Any] = {"output": tmp_path / "out", "quiet": True}
    with pytest.raises(InputError, match="The step 'aligners' has to be run first"):
        run_study(study, "quick", only="conv", **options)
    run_study(study, "quick", only="aligners", **options)

    real = steps.measure_methods
    calls: list[str] = []

    def failing(model: Any, *rest: Any) -> Any:
        calls.append(rest[2])
        if len(calls) == 2:
            raise RuntimeError("stopped")
        return real(model, *rest)

    monkeypatch.setattr(steps, "measure_methods", failing)
    with pytest.raises(RuntimeError, match="stopped"):
        run_study(study, "quick", only="conv source-target", **options)
    trained = tmp_path / "out" / "steps" / "conv-source-target" / "model" / "result.json"
    before = trained.stat().st_mtime_ns
    result = run_study(study, "quick", **options)
    assert calls == ["conv"] * 5 + ["lstm"] * 4 + ["transformer"] * 4, "forced decoding was not measured again"
    assert trained.stat().st_mtime_ns == before, "the model was not trained again"
    assert len(result.claims) == len(STUDY.claims)
    assert result.document["tables"][0]["ours"]["FConv: attention"].keys() == {
        *("source-target", "target-source", "source<>target")
    }
    page = (tmp_path / "out" / "study.html").read_text()

    for folder in (tmp_path / "out" / "steps").glob("*/"):
        shutil.rmtree(folder)
    monkeypatch.setattr(translators, "load", lambda *_: pytest.fail("a model was loaded"))
    again = run_study(study, "quick", **options)
    assert (again.claims, again.document["tables"]) == (result.claims, result.document["tables"])
    assert (tmp_path / "out" / "study.html").read_text() == page
