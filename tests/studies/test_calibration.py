"""The study of calibrated attention: its bootstrap, how its claims are judged, and one run from end to end."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
import zoo
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy.spatial.distance import jensenshannon

import sightline
from sightline.attribution import Attribution, Tokens
from sightline.data.language import GeneratedLanguage
from sightline.studies.calibration import measuring, systems
from sightline.studies.calibration.measuring import ENTROPIES, _show_example, measure_losses
from sightline.studies.calibration.results import by_entropy_bins, priced
from sightline.studies.calibration.significance import measure_gain
from sightline.studies.calibration.study import STUDY
from sightline.studies.calibration.systems import VARIANTS, build_recipe, build_steps
from sightline.studies.running import run_study
from sightline.training.recipe import read_recipe

TINY = dataclasses.replace(
    STUDY.presets["quick"],
    pairs=(60, 90),
    steps=(4, 4),
    seeds=(1, 1),
    dev_pairs=8,
    test_pairs=6,
    measured=4,
    alphas=(1.0,),
    variants=("released",),
    width=16,
    layers=1,
    heads=2,
    feed_forward=16,
    vocabulary=150,
    batch_tokens=200,
    checkpoints=1,
    bootstraps=20,
)
WORDS = ["the", "a", "cat", "dog", "man", "woman", "sees", "holds", "big", "small", "red", "house"]


def texts(seed: int, noise: float) -> tuple[list[str], list[str]]:
    """Make up references, and translations of them in which some words are others."""
    rng = np.random.default_rng(seed)
    references = [list(np.random.default_rng(number).choice(WORDS, size=9)) for number in range(40)]
    changed = [[word if rng.random() > noise else str(rng.choice(WORDS)) for word in line] for line in references]
    return [" ".join(line) for line in references], [" ".join(line) for line in changed]


def test_with_one_seed_the_bootstrap_is_that_of_sacrebleu() -> None:
    references, baseline = texts(1, 0.3)
    _, system = texts(2, 0.2)
    test = PairedTest([("a", baseline), ("b", system)], {"BLEU": BLEU(references=[references])}, None, "bs", 500, 1)
    _, (first, second) = test()[1].popitem()
    gain = measure_gain([baseline], [system], references, samples=500, seed=12345)  # the seed that sacreBLEU has
    assert gain.pooled == pytest.approx(second.score - first.score)
    assert gain.p == pytest.approx(second.p_value)
    assert gain.by_seed == pytest.approx([gain.pooled])


def test_seeds_are_pooled() -> None:
    references, _ = texts(0, 0)
    baseline, system = ([texts(seed, noise)[1] for seed in seeds] for seeds, noise in (((1, 2), 0.3), ((3, 4), 0.2)))
    gain = measure_gain(baseline, system, references, samples=50, seed=1)
    together = [BLEU().corpus_score([*one[0], *one[1]], [references * 2]).score for one in (baseline, system)]
    assert gain.pooled == pytest.approx(together[1] - together[0])
    assert len(gain.by_seed) == 2
    same = measure_gain(baseline, baseline, references, samples=50, seed=1)
    assert (same.pooled, same.p) == (0, 1)


def test_losses_of_a_mask_of_one_are_all_alike() -> None:
    """A mask of one changes nothing, however it is shuffled; one that takes all makes attention uniform."""
    twin = sightline.calibrate(zoo.model("marian"), fusion="anneal", bound=None)
    with torch.no_grad():
        for layer in twin.calibration.layers:
            layer.query.weight.zero_()
            layer.key.weight.zero_()
            layer.query.bias.fill_(100.0)
            layer.key.bias.fill_(100.0)
    losses = measure_losses(twin, list(zoo.SOURCES[:2]), list(zoo.TARGETS[:2]), seed=1)
    assert list(losses.values()) == pytest.approx([losses["original"]] * 4, rel=1e-5)
    batch = twin.batch([twin.encode(zoo.SOURCES[0], zoo.TARGETS[0])])
    alone = measure_losses(twin, [zoo.SOURCES[0]], [zoo.TARGETS[0]], seed=1)["original"]
    with torch.no_grad(), twin.uncalibrated():
        assert alone == pytest.approx(-float(twin.log_probs(batch)[batch.row_mask].mean()), rel=1e-5)


def test_a_shuffled_mask_takes_as_much_elsewhere() -> None:
    twin = sightline.calibrate(zoo.model("marian"))
    losses = measure_losses(twin, list(zoo.SOURCES[:2]), list(zoo.TARGETS[:2]), seed=1)
    again = measure_losses(twin, list(zoo.SOURCES[:2]), list(zoo.TARGETS[:2]), seed=1)
    assert losses == again
    assert losses["shuffled"] != losses["perturbed"]


def made(source: int, target: int, seed: int) -> Attribution:
    """Make up an attribution of two layers and three heads."""
    tokens = [
        Tokens(tuple(f"{side}{n}" for n in range(size)), tuple(range(size)), tuple(f"{side}{n}" for n in range(size)))
        for side, size in (("s", source), ("t", target))
    ]
    scores = np.random.default_rng(seed).random((2, 3, target, source))
    return Attribution(scores, *tokens, axes=("layer", "head"))


def test_the_example_is_the_first_pair_that_has_room_on_a_page() -> None:
    sizes = [(5, 7), (7, 5), (13, 12), (12, 13), (12, 6), (7, 7)]
    original, calibrated, masks = ([made(*size, seed) for size in sizes] for seed in range(3))
    shown = _show_example(original, calibrated, masks)
    assert shown is not None
    assert shown["source"] == [f"s{number}" for number in range(12)]
    assert shown["target"] == [f"t{number}" for number in range(6)]
    for name, several in (("before", original), ("after", calibrated), ("mask", masks)):
        np.testing.assert_allclose(shown[name], several[4].scores.mean(1), atol=1e-4)
    assert _show_example(original[:4], calibrated[:4], masks[:4]) is None


def test_a_system_is_trained_from_every_seed_on_texts_that_are_not_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    kept: list[str] = []

    def keep(name: str, compute: Any) -> Any:
        kept.append(name)
        return compute()

    monkeypatch.setattr(systems, "train", lambda recipe, output, quiet: (recipe, output))
    monkeypatch.setattr(systems, "measure_run", lambda result, test, settings: {"bleu": 10.0 * result[0]["seed"]})
    work = SimpleNamespace(results={}, folder=tmp_path / "new" / "step", keep=keep, say=said.append)
    (step,) = (one for one in build_steps(dataclasses.replace(TINY, seeds=(2, 1)), None) if one.name == "small gate")
    result = step.run(work)
    assert kept == ["seed 1", "seed 2"]
    assert said == ["small gate, seed 1: BLEU 10.0", "small gate, seed 2: BLEU 20.0"]
    assert [run["bleu"] for run in result["runs"]] == [10.0, 20.0]
    assert result["calibration"] == {"fusion": "gate", "alpha": TINY.alpha}
    language = GeneratedLanguage(systems.LANGUAGE)
    test = language.pairs(TINY.test_pairs, "test")
    drawn = [(one.source, one.target) for one in language.pairs(TINY.dev_pairs + TINY.pairs[0], "train")]
    known = [pair for pair in drawn if pair[0] not in {one.source for one in test}]
    assert result["references"] == [one.target for one in test]
    assert result["pairs"] == len(known) - TINY.dev_pairs
    texts = work.folder / "texts"
    for role, pairs in (("dev", known[: TINY.dev_pairs]), ("train", known[TINY.dev_pairs :])):
        for number, side in enumerate(("source", "target")):
            assert (texts / f"{role}.{side}").read_text().splitlines() == [pair[number] for pair in pairs]


RUN: dict[str, Any] = {
    "bleu": 30.0,
    "translations": ["a"],
    "dev loss": 2.0,
    "parameters": 100,
    "minutes": 1.0,
    "warnings": [],
    "tau weights": [0.1, 0.3],
    "tau masks": [0.2, 0.4],
    "mask": [0.5, 0.6],
    "divergence": [0.01, 0.02],
    "divergence by entropy": [[[0.1 * place, 0.0, 50] for place in range(5)]] * 2,
    "entropy change": [0.01, -0.02],
    "entropy change of all": -0.01,
    "losses": {"calibrated": 2.0, "original": 2.1, "perturbed": 3.0, "shuffled": 2.5},
    "example": None,
}


def made_up(**changes: Any) -> dict[str, Any]:
    """Make up results in which everything is as the paper says, but for changes to all runs of `system__figure`."""
    results: dict[str, Any] = {}
    bleu = {"small baseline": 30.0, "small fixed": 30.5, "small anneal": 31.0, "small gate": 31.5}
    for number, name in enumerate([*bleu, "large baseline", "large gate", "alpha 0.01", "alpha 1"]):
        run = copy.deepcopy(RUN) | {"bleu": bleu.get(name, 33.0), "parameters": 100 if "baseline" in name else 105}
        alpha = float(name.split()[1]) if name.startswith("alpha") else 0.1
        run["mask"] = [0.5 + 0.1 * alpha, 0.6 + 0.1 * alpha]
        results[name] = {"runs": [run, copy.deepcopy(run)], "pairs": 100 * (number + 1), "references": ["a"]}
        results[name]["calibration"] = None if "baseline" in name else {"fusion": "gate", "alpha": alpha}
    gain = {"pooled": 1.5, "p": 0.01, "by_seed": [1.0, 2.0]}
    results["gains"] = {"small fixed": gain, "small anneal": gain, "small gate": gain} | {
        name: gain | {"pooled": 0.5} for name in ("large gate", "alpha 0.01", "alpha 1")
    }
    for place, value in changes.items():
        system, figure = place.split("__")
        for run in results[system.replace("_", " ")]["runs"]:
            run[figure.replace("_", " ")] = value
    return results


def verdicts(results: dict[str, Any]) -> dict[str, bool | None]:
    findings = {claim.id: claim.judge(results) for claim in STUDY.claims}
    return {name: None if finding is None else finding.holds for name, finding in findings.items()}


def test_claims_hold_where_everything_is_as_the_paper_says() -> None:
    assert set(verdicts(made_up()).values()) == {True}


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"small_gate__warnings": ["dead"]}, "alive"),
        ({"alpha_1__mask": [0.1, 0.1]}, "price"),
        ({"large_gate__losses": RUN["losses"] | {"perturbed": 1.9, "shuffled": 1.0}}, "harm"),
        ({"small_fixed__losses": RUN["losses"] | {"shuffled": 3.5}}, "decisive"),
        ({"small_baseline__tau_weights": [0.1, 0.6]}, "modest"),
        ({"small_gate__tau_masks": [0.2, 0.2]}, "masks"),
        ({"small_anneal__bleu": 40.0}, "order"),
        ({"small_gate__entropy_change": [-0.01, -0.02]}, "layers"),
        ({"small_gate__divergence": [0.01, 0.01]}, "divergence"),
        ({"small_gate__parameters": 200}, "cost"),
        ({"small_gate__divergence_by_entropy": [[[0.5 - 0.1 * place, 0, 50] for place in range(5)]] * 2}, "entropy"),
    ],
)
def test_a_claim_fails_where_its_figures_say_otherwise(changes: dict[str, Any], claim: str) -> None:
    found = verdicts(made_up(**changes))
    assert [name for name, holds in found.items() if not holds] == [claim]


@pytest.mark.parametrize(
    ("system", "gain", "claims"),
    [
        ("small gate", {"pooled": 1.5, "p": 0.2}, ["gain"]),
        ("small gate", {"pooled": -1.5, "p": 0.01}, ["gain", "small-data"]),
        ("large gate", {"pooled": 2.5, "p": 0.01}, ["small-data"]),
    ],
)
def test_gains_must_be_significant_and_greatest_on_little_data(system: str, gain: dict, claims: list[str]) -> None:
    results = made_up()
    results["gains"][system] = results["gains"][system] | gain
    assert [name for name, holds in verdicts(results).items() if not holds] == claims


def distinct() -> dict[str, Any]:
    """Make up results in which every figure of every run is another."""
    number = iter(range(1, 1000))
    results = made_up()
    for system in [name for name in results if name != "gains"]:
        for run in results[system]["runs"]:
            for figure in ("bleu", "dev loss", "parameters", "minutes", "entropy change of all"):
                run[figure] = next(number) / 8
            for figure in ("tau weights", "tau masks", "mask", "divergence", "entropy change"):
                run[figure] = [next(number) / 8, next(number) / 8]
            run["losses"] = {way: next(number) / 8 for way in run["losses"]}
    for gain in results["gains"]:
        results["gains"][gain] = {
            "pooled": next(number) / 8,
            "p": next(number) / 1000,
            "by_seed": [next(number) / 8, -next(number) / 8],
        }
    return results


def mean(results: dict[str, Any], system: str, figure: str) -> Any:
    return np.mean([run[figure] for run in results[system]["runs"]], axis=0)


def half_range(results: dict[str, Any], system: str, figure: str) -> float:
    """Return the standard deviation of two runs."""
    first, second = (run[figure] for run in results[system]["runs"])
    return abs(first - second) / 2


def test_every_cell_of_the_tables() -> None:
    results = distinct()
    bleu, by_set, gains, losses, entropies, costs = (table.measured(results) for table in STUDY.tables)
    pair = lambda system, figure: [mean(results, system, figure), half_range(results, system, figure)]  # noqa: E731
    assert by_set == {}
    systems = {"small": ("baseline", "fixed", "anneal", "gate"), "large": ("baseline", "gate")}
    columns = {"small": "here, 100 pairs", "large": "here, 500 pairs"}
    expected: dict[str, dict[str, Any]] = {}
    for size, names in systems.items():
        for name in names:
            expected.setdefault(name, {})[columns[size]] = pytest.approx(pair(f"{size} {name}", "bleu"))
    assert bleu == expected
    assert set(gains) == set(results["gains"])
    for name, gain in results["gains"].items():
        assert gains[name] == {
            "seeds": 2,
            "BLEU": pytest.approx(pair(name, "bleu")),
            "gain": f"{gain['pooled']:+.2f}",
            "p": f"{gain['p']:.3f}",
            "gain by seed": f"{gain['by_seed'][0]:+.1f} / {gain['by_seed'][1]:+.1f}",
            "mean mask by layer": " / ".join(f"{layer:.3f}" for layer in mean(results, name, "mask")),
        }
    calibrated = ("small fixed", "small anneal", "small gate", "large gate")
    assert set(losses) == set(calibrated)
    for system in calibrated:
        for way in ("calibrated", "original", "perturbed", "shuffled"):
            runs = results[system]["runs"]
            assert losses[system][way] == pytest.approx(np.mean([run["losses"][way] for run in runs]))
        lowest, highest = mean(results, system, "entropy change")
        assert entropies["layer 1"][system] == f"{lowest:+.4f}"
        assert entropies["layer 2"][system] == f"{highest:+.4f}"
        assert entropies["all"][system] == f"{mean(results, system, 'entropy change of all'):+.4f}"
    assert set(costs) == {"small baseline", "large baseline", *calibrated}
    for system, row in costs.items():
        assert row == {
            "parameters": results[system]["runs"][0]["parameters"],
            "minutes of training": pytest.approx(pair(system, "minutes")),
            "dev loss": pytest.approx(pair(system, "dev loss")),
        }


def test_plots_show_the_figures() -> None:
    results = distinct()
    figures = {re.findall(r"figure (\d)", plot["title"])[0] + plot["y"]["label"]: plot for plot in STUDY.plots(results)}
    shown = {
        name: {one["name"]: one["y"] for one in plot["series"]} for name, plot in figures.items() if name[0] != "7"
    }
    tau = "Kendall's τ with the gradients"
    for figure, series in (
        (f"2{tau}", {"small text": ("small baseline", "tau weights"), "large text": ("large baseline", "tau weights")}),
        (f"5{tau}", {"attention": ("small gate", "tau weights"), "1 - m": ("small gate", "tau masks")}),
        (
            "6Jensen-Shannon divergence",
            {name: (name, "divergence") for name in ("small fixed", "small anneal", "small gate", "large gate")},
        ),
    ):
        assert shown[figure] == {name: pytest.approx(mean(results, *place).tolist()) for name, place in series.items()}
    priced_systems = ("alpha 0.01", "small gate", "alpha 1")
    masks = [mean(results, system, "mask") for system in priced_systems]
    assert shown["4mean of m"] == {
        "all layers": pytest.approx([one.mean() for one in masks]),
        "layer 1": pytest.approx([one[0] for one in masks]),
        "layer 2": pytest.approx([one[1] for one in masks]),
    }
    assert shown["4BLEU"] == {
        "gate": pytest.approx([mean(results, system, "bleu") for system in priced_systems]),
        "baseline": pytest.approx([mean(results, "small baseline", "bleu")] * 3),
    }
    assert figures["7Jensen-Shannon divergence"]["series"][0]["y"] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])


def test_every_figure_of_a_calibrated_model_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [(7, 6), (9, 8)]
    original, calibrated, masks = ([made(*size, 10 * part + n) for n, size in enumerate(sizes)] for part in range(3))
    importance = [
        Attribution(made(*size, 40 + n).scores[0, 0], one.source, one.target)
        for (n, size), one in zip(enumerate(sizes), original, strict=True)
    ]
    asked = {
        ("attention", True): original,
        ("attention", False): calibrated,
        ("attention", None): original,
        ("perturbation_mask", None): masks,
        ("hidden_gradient", None): importance,
    }

    def explain(
        model: Any, sources: list[str], targets: list[str], method: str, original: bool | None = None, **_: Any
    ) -> list[Attribution]:
        assert (sources, targets) == (["a", "b"], ["c", "d"])
        return asked[method, original]

    monkeypatch.setattr(measuring, "explain", explain)
    monkeypatch.setattr(measuring, "measure_losses", lambda *arguments: {"calibrated": arguments[1:]})
    plain = zoo.model("marian")
    found = measuring.measure_attention(sightline.calibrate(plain), ["a", "b"], ["c", "d"], seed=3)
    for layer in range(2):
        rows: dict[str, list[float]] = {"divergence": [], "change": [], "weights": [], "masks": [], "kept": []}
        for before, after, mask, gradient in zip(original, calibrated, masks, importance, strict=True):
            for t in range(before.scores.shape[2]):
                for head in range(3):
                    p, q = (one.scores[layer, head, t] / one.scores[layer, head, t].sum() for one in (before, after))
                    rows["divergence"].append(jensenshannon(p, q) ** 2)
                    rows["change"].append(scipy.stats.entropy(q) - scipy.stats.entropy(p))
                for name, one in (("weights", before), ("masks", mask)):
                    tau = scipy.stats.kendalltau(one.scores[layer, :, t].mean(0), gradient.scores[t])
                    rows[name].append(tau.statistic)
            rows["kept"] += (1 - mask.scores[layer]).mean(-1).ravel().tolist()
        for name, figure in (
            ("divergence", "divergence"),
            ("change", "entropy change"),
            ("weights", "tau weights"),
            ("masks", "tau masks"),
            ("kept", "mask"),
        ):
            assert found[figure][layer] == pytest.approx(np.mean(rows[name]), abs=1e-6), figure
        bins = found["divergence by entropy"][layer]
        assert sum(count for *_, count in bins) == len(rows["divergence"])
        total = sum(one * count for one, _, count in bins if count)
        assert total / len(rows["divergence"]) == pytest.approx(np.mean(rows["divergence"]), abs=1e-6)
    of_all = []
    for before, after in zip(original, calibrated, strict=True):
        p, q = ((one.scores / one.scores.sum(-1, keepdims=True)).mean((0, 1)) for one in (before, after))
        of_all += (scipy.stats.entropy(q, axis=-1) - scipy.stats.entropy(p, axis=-1)).tolist()
    assert found["entropy change of all"] == pytest.approx(np.mean(of_all), abs=1e-6)
    assert found["losses"] == {"calibrated": (["a", "b"], ["c", "d"], 3)}
    uncalibrated = measuring.measure_attention(plain, ["a", "b"], ["c", "d"], seed=3)
    assert uncalibrated == {"tau weights": found["tau weights"]}


def test_bins_with_few_rows_are_left_out_and_others_weighed_by_their_rows() -> None:
    results = made_up()
    first, second = results["small gate"]["runs"]
    first["divergence by entropy"] = [[[0.1, 0, 30], [0.3, 0, 9], [None, None, 0]]]
    second["divergence by entropy"] = [[[0.4, 0, 60], [0.3, 0, 10], [None, None, 0]]]
    assert by_entropy_bins(results, "small gate")[0] == pytest.approx([0.3, np.nan, np.nan], nan_ok=True)
    assert np.diff(ENTROPIES) == pytest.approx(0.8), "figure 7's bins are equally wide"


def test_a_single_price_says_nothing_about_the_mask() -> None:
    results = {name: result for name, result in made_up().items() if not name.startswith("alpha")}
    (claim,) = (one for one in STUDY.claims if one.id == "price")
    assert claim.judge(results) is None
    assert claim.judge(made_up()) is not None


def test_gates_are_listed_by_their_price() -> None:
    assert priced(made_up()) == [(0.01, "alpha 0.01"), (0.1, "small gate"), (1.0, "alpha 1")]


def test_every_system_has_a_valid_recipe(tmp_path: Path) -> None:
    for name, changes in VARIANTS.items():
        settings = read_recipe(build_recipe(tmp_path, TINY, "small", 1, {"fusion": "gate", "alpha": 0.1} | changes))
        assert settings.calibration is not None, name
        assert (settings.training.clip is None) == (name == "released")
    assert read_recipe(build_recipe(tmp_path, TINY, "large", 3, None)).seed == 3


def test_without_its_corpus_a_preset_is_refused(tmp_path: Path) -> None:
    settings = STUDY.presets["standard"]
    steps = [step.name for step in build_steps(settings, tmp_path)]
    assert steps[:6] == [
        *(f"small {system}" for system in ("baseline", "fixed", "anneal", "gate")),
        "large baseline",
        "large gate",
    ]
    assert steps[-1] == "gains"
    with pytest.raises(sightline.InputError, match=r"needs .*multi30k.train\.de \(or \.gz\)"):
        run_study(STUDY, "standard", data=tmp_path, output=tmp_path / "out", only="small baseline", quiet=True)


def test_pairs_of_a_corpus_are_read_packed_or_not(tmp_path: Path) -> None:
    folder = tmp_path / "multi30k"
    folder.mkdir()
    with gzip.open(folder / "train.de.gz", "wt") as packed:
        packed.write("eins\nzwei\ndrei\nvier\n")
    for name, lines in (("train.en", "one\ntwo\nthree\nfour\n"), ("val.de", "zwei\n"), ("val.en", "two\n")):
        (folder / name).write_text(lines)
    settings = dataclasses.replace(TINY, corpus="multi30k", languages=("de", "en"), pairs=(2, 2), dev_pairs=1)
    assert systems._read_texts(settings, "small", tmp_path) == {
        "dev": [("eins", "one")],
        "train": [("drei", "three")],  # the second of three is tested
        "test": [("zwei", "two")],
    }


def test_runs_on_a_generated_language(tmp_path: Path) -> None:
    study = dataclasses.replace(STUDY, presets={"quick": TINY})
    options: dict[str, Any] = {"output": tmp_path / "out", "quiet": True}
    part = run_study(study, "quick", only="large", **options)
    assert "small baseline" in part.missing
    result = run_study(study, "quick", **options)
    found = {claim["id"]: claim["verdict"] for claim in result.claims}
    assert "not measured" not in found.values()
    assert found["alive"] == "holds"
    titles = [plot["title"] for plot in result.document["plots"]]
    assert [figure for figure in (2, 4, 5, 6, 7) if not any(f"figure {figure}" in title for title in titles)] == []
    tables = {table["title"]: table for table in result.document["tables"]}
    (entropies,) = [table for title, table in tables.items() if title.startswith("Entropy")]
    assert set(entropies["ours"]["all"]) == {"small fixed", "small anneal", "small gate", "large gate"}
    assert entropies["paper"]["all"]["Zh-En"] == "-0.0336"
    assert (tmp_path / "out" / "study.html").stat().st_size > 10_000
