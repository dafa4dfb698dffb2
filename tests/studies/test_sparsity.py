"""The study of sparse attention: what holds exactly, how its claims are judged, and one run from end to end."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from sightline.attend.projections import build_projection
from sightline.attribution import Attribution, Tokens
from sightline.data.labelled import Labelled
from sightline.measures import kendall_tau, summarize, support_size
from sightline.studies.running import run_study
from sightline.studies.sparsity import measuring
from sightline.studies.sparsity.measuring import Importances, measure_model
from sightline.studies.sparsity.results import averaged, trend
from sightline.studies.sparsity.steps import _find_adversary, _prepare_texts, _train_model, projection_name
from sightline.studies.sparsity.study import STUDY
from sightline.training.evaluation import Measured
from sightline.training.loop import TrainingResult

TINY = dataclasses.replace(
    STUDY.presets["quick"],
    train_texts=64,
    dev_texts=16,
    test_texts=16,
    steps=(4, 4),
    checkpoint_every=4,
    adversary_steps=2,
    adversary_tries=1,
    explained=4,
    erased=3,
    dispersed=2,
    facets=1,
    facet_words=3,
    lambdas=(0, 0.9),
    seeds=(1, 2),
    width=8,
    embedding_width=8,
)


@given(st.lists(st.floats(-3, 3, width=32), min_size=2, max_size=12))
def test_the_support_shrinks_as_lambda_grows(scores: list[float]) -> None:
    supports = []
    for value in (-100, -10, -1, 0, 0.5, 0.9):
        weights = build_projection(projection_name(value))(torch.tensor(scores, dtype=torch.float64), None).numpy()
        supports.append(float(support_size(weights)))
    assert supports == sorted(supports, reverse=True)


@pytest.mark.parametrize("length", [2, 5, 30])
def test_tau_of_one_hot_weights(length: int) -> None:
    """With one word attended to, only its n - 1 pairs count: tau-b = (2 r - (n - 1)) / sqrt((n - 1) n (n - 1) / 2)."""
    rng = np.random.default_rng(length)
    importances = rng.permutation(length).astype(float)
    weights = np.zeros(length)
    weights[rng.integers(length)] = 1.0
    below = (importances < importances[weights.argmax()]).sum()
    expected = (2 * below - (length - 1)) / math.sqrt((length - 1) * length * (length - 1) / 2)
    assert kendall_tau(weights, importances) == pytest.approx(expected)
    assert kendall_tau(weights, importances) == pytest.approx(scipy.stats.kendalltau(weights, importances).statistic)


def test_constant_rows_are_skipped_and_counted() -> None:
    attention = np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])
    summary = summarize(kendall_tau(attention, np.array([[1.0, 2.0]] * 3)))
    assert summary.defined == 2
    assert summary.undefined == 1
    assert summary.mean == pytest.approx(0.0)


def _models(**changes: Any) -> dict[str, Any]:
    """Make up the figures of a data set in which everything is as the paper says."""
    models: dict[str, Any] = {}
    for encoder in ("lstm", "transformer"):
        for place, projection in enumerate(("softmax", "sparsegen:-1", "sparsemax", "sparsegen:0.9")):
            models[f"{encoder} {projection}"] = {
                "accuracy": 0.9,
                "support": [1 - 0.2 * place, 0.1, 9, 0],
                "tau gradient x": [0.5 - 0.1 * place, 0.1, 9, 0],
                "tau gradient h": [0.9, 0.1, 9, 0],
                "tau loo x": [0.4 - 0.1 * place, 0.1, 9, 0],
                "tau loo h": [0.8, 0.1, 9, 0],
                "entropy gradient x": [0.9 - 0.1 * place, 0.1, 9, 0],
                "entropy loo x": [0.7, 0.1, 9, 0],
                "entropy state": [0.7, 0.1, 9, 0],
                "facets tau": [0.97, 0.01, 9, 0],
                "facets difference": [0.002, 0.01, 9, 0],
            }
        models[f"{encoder} frozen"] = {"accuracy": 0.75, "divergence": 0.6}
        models[f"{encoder} unfrozen"] = {"accuracy": 0.9, "divergence": 0.6}
    return {"train": 100, "test": 20, "models": models | changes}


def _verdicts(results: dict[str, Any]) -> dict[str, bool | None]:
    findings = {claim.id: claim.judge(results) for claim in STUDY.claims}
    return {name: None if finding is None else finding.holds for name, finding in findings.items()}


def test_claims_hold_where_everything_is_as_the_paper_says() -> None:
    assert set(_verdicts({"imdb": _models(), "sst": _models()}).values()) == {True}


def test_each_claim_can_fail() -> None:
    worst = {
        "accuracy": 0.9,
        "support": [1.0, 0, 9, 0],
        "tau gradient x": [0.95, 0, 9, 0],
        "tau gradient h": [0.1, 0, 9, 0],
        "tau loo x": [0.95, 0, 9, 0],
        "tau loo h": [0.1, 0, 9, 0],
        "entropy gradient x": [0.3, 0, 9, 0],
        "entropy loo x": [0.3, 0, 9, 0],
        "entropy state": [0.2, 0, 9, 0],
        "facets tau": [0.8, 0, 9, 0],
        "facets difference": [0.1, 0, 9, 0],
    }
    best = worst | {"entropy gradient x": [0.95, 0, 9, 0]}
    changes = {"lstm sparsemax": worst, "lstm sparsegen:0.9": best}
    changes |= {
        "lstm frozen": {"accuracy": 0.9, "divergence": 0.6},
    }
    changes |= {"lstm unfrozen": {"accuracy": 0.5, "divergence": 0.6}}
    assert set(_verdicts({"imdb": _models(**changes)}).values()) == {False}


@pytest.mark.parametrize("adversary", [{"accuracy": 0.75, "divergence": 0.07}, {"accuracy": 0.89, "divergence": 0.6}])
def test_one_adversary_that_is_none_is_not_hidden_by_the_others(adversary: dict[str, float]) -> None:
    assert _verdicts({"imdb": _models(**{"transformer frozen": adversary}), "sst": _models()})["frozen"] is False


def test_every_seed_is_judged_and_the_tables_average_them() -> None:
    models = _models()["models"]
    of_second = {f"{label}, seed 2": dict(models[label]) for label in ("lstm softmax", "lstm frozen", "lstm unfrozen")}
    of_second["lstm softmax, seed 2"] |= {"tau gradient x": [0.7, 0.3, 9, 0], "accuracy": 0.8}
    results = {"sst": _models(**of_second)}
    assert averaged(results, "tau gradient x")["SST", "BiLSTM softmax"] == pytest.approx([0.6, 0.2])
    tables = {table.where + what: table.measured(results) for what, table in zip("abcdef", STUDY.tables, strict=True)}
    assert tables["table 3c"]["SST"]["accuracy BiLSTM"] == pytest.approx(0.85)
    assert tables["table 3c"]["SST"]["accuracy Transformer"] == pytest.approx(0.9)
    assert tables["table 6e"]["BiLSTM softmax"]["SST gradient"] == pytest.approx([0.6, 0.2])
    assert tables["table 6e"]["BiLSTM sparsemax"]["SST gradient"] == pytest.approx([0.3, 0.1])
    assert _verdicts(results)["states"] is True
    of_second["lstm softmax, seed 2"] |= {"tau gradient x": [0.95, 0.1, 9, 0]}
    assert _verdicts({"sst": _models(**of_second)})["states"] is False
    of_second["lstm frozen, seed 2"] = {"accuracy": 0.79, "divergence": 0.6}  # of 0.8
    assert _verdicts({"sst": _models(**of_second)})["frozen"] is False


def test_every_cell_of_the_tables() -> None:
    """Every figure of every model is another, and so is every trend."""
    number = iter(range(1, 1000))
    entropies = {"imdb": ((4, 3, 2, 1), (4, 3, 1, 2)), "sst": ((4, 1, 2, 3), (1, 2, 3, 4))}
    results: dict[str, Any] = {}
    for name, by_encoder in entropies.items():
        models = _models()["models"]
        for model in models.values():
            for figure in model:
                value = next(number) / 1000
                model[figure] = value if figure in ("accuracy", "divergence") else [value, value + 2, 9, 0]
        for encoder, values in zip(("lstm", "transformer"), by_encoder, strict=True):
            chosen = ("softmax", "sparsegen:-1", "sparsemax", "sparsegen:0.9")
            for projection, value in zip(chosen, values, strict=True):
                models[f"{encoder} {projection}"]["entropy gradient x"] = [value, 0.1, 9, 0]
        results[name] = {"train": next(number), "test": next(number), "models": models}
    table_1, table_2, table_3, table_5, inputs, states = (table.measured(results) for table in STUDY.tables)
    shown = {"imdb": "IMDb", "sst": "SST"}
    encoders = {"lstm": "BiLSTM", "transformer": "Transformer"}
    for name, label in shown.items():
        models = results[name]["models"]
        for encoder, row in encoders.items():
            for projection in ("softmax", "sparsemax"):
                model = models[f"{encoder} {projection}"]
                assert table_1[f"{row} {projection}"][label] == model["entropy state"][:2]
                assert inputs[f"{row} {projection}"][f"{label} gradient"] == model["tau gradient x"][:2]
                assert inputs[f"{row} {projection}"][f"{label} leave-one-out"] == model["tau loo x"][:2]
                assert states[f"{row} {projection}"][f"{label} gradient"] == model["tau gradient h"][:2]
                assert states[f"{row} {projection}"][f"{label} leave-one-out"] == model["tau loo h"][:2]
            for kind in ("frozen", "unfrozen"):
                assert table_5[f"{row} {kind}"][f"{label} JSD"] == models[f"{encoder} {kind}"]["divergence"]
                assert table_5[f"{row} {kind}"][f"{label} accuracy"] == models[f"{encoder} {kind}"]["accuracy"]
            assert table_3[label][f"accuracy {row}"] == models[f"{encoder} softmax"]["accuracy"]
        assert (table_3[label]["train"], table_3[label]["test"]) == (results[name]["train"], results[name]["test"])
    # Of sparsegen alone: the softmax is no value of lambda.
    assert table_2["BiLSTM"] == pytest.approx({"IMDb": -1, "SST": 1})
    assert table_2["Transformer"] == pytest.approx({"IMDb": -1 / 3, "SST": 1})


def attribution(scores: np.ndarray) -> Attribution:
    """Make up scores of words, with an end token after them."""
    words = scores.shape[-1] - 1
    source = Tokens((*(f"w{n}" for n in range(words)), "</s>"), (*range(words), None), tuple(map(str, range(words))))
    rows = scores.shape[0]
    return Attribution(scores, source, source if rows > 1 else Tokens(("good",), (0,), ("good",)))


def literal_entropy(row: np.ndarray) -> float:
    shares = row / row.sum()
    return float(-sum(share * math.log(share) for share in shares if share) / math.log(len(row)))


def test_every_figure_of_a_model_is_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    lengths = (6, 4, 9)
    ways = ("attention", "gradient", "hidden_gradient", "erasure", "hidden_erasure", "state", "jacobian")
    made = {way: [attribution(rng.random((n + 1 if way in ways[5:] else 1, n + 1))) for n in lengths] for way in ways}
    # Of the end token there is no attention.
    made["attention"] = [attribution(np.append(rng.dirichlet(np.ones(n)), 0.0)[None]) for n in lengths]
    asked: list[tuple[str, str, int]] = []
    words: dict[str, int] = {}

    def explain(model: str, documents: list[str], method: str, toward: str = "", **_: Any) -> list[Attribution]:
        asked.append((model, toward or method, len(documents)))
        words[toward or method] = max(len(document.split()) for document in documents)
        return made[toward or method][: len(documents)]

    monkeypatch.setattr(measuring, "load", lambda folder, dtype="float32": dtype)
    monkeypatch.setattr(measuring, "explain", explain)
    settings = dataclasses.replace(TINY, explained=3, erased=2, dispersed=2, facets=1)
    found = measure_model(Path("model"), ["a b c d e"] * 4, settings, "softmax")
    assert words == dict.fromkeys(ways[:5], 5) | {"state": TINY.facet_words, "jacobian": TINY.facet_words}
    assert sorted(asked) == sorted(
        [
            ("float32", "attention", 3),
            ("float32", "gradient", 3),
            ("float32", "hidden_gradient", 3),
            ("float64", "erasure", 2),
            ("float64", "hidden_erasure", 2),
            ("float32", "state", 2),
            ("float32", "state", 1),
            ("float32", "jacobian", 1),
        ]
    )
    by_word = {way: [one.scores[..., :-1] for one in several] for way, several in made.items()}
    attention = [rows[0] for rows in by_word["attention"]]
    expected = {"attention entropy": [literal_entropy(row) for row in attention], "support": [1.0] * 3}
    for figure, way, count in (
        ("gradient x", "gradient", 3),
        ("gradient h", "hidden_gradient", 3),
        ("loo x", "erasure", 2),
        ("loo h", "hidden_erasure", 2),
    ):
        rows = [one[0] for one in by_word[way][:count]]
        pairs = zip(attention[:count], rows, strict=True)
        expected[f"tau {figure}"] = [scipy.stats.kendalltau(*pair).statistic for pair in pairs]
        expected[f"entropy {figure}"] = [literal_entropy(row) for row in rows]
    by_state = {way: [one[:-1] for one in by_word[way]] for way in ("state", "jacobian")}
    entropies = {
        way: [float(np.mean([literal_entropy(row) for row in rows])) for rows in several]
        for way, several in by_state.items()
    }
    expected["entropy state"] = entropies["state"][:2]
    pairs = zip(by_state["state"][0], by_state["jacobian"][0], strict=True)
    expected["facets tau"] = [float(np.mean([scipy.stats.kendalltau(*pair).statistic for pair in pairs]))]
    expected["facets difference"] = [entropies["state"][0] - entropies["jacobian"][0]]
    assert set(found) == set(expected)
    for figure, values in expected.items():
        mean, _, defined, undefined = found[figure]
        assert mean == pytest.approx(np.mean(values), abs=1e-6), figure
        assert (defined, undefined) == (len(values), 0), figure
    assert len({round(found[figure][0], 9) for figure in found}) == len(found), "the expected values differ"


def test_differences_that_are_rounding_count_as_none() -> None:
    values = np.array([[1.0, 5e-8, -0.5, -2e-7, 2e-5], [0.0, 0.0, 0.0, 0.0, 0.0]])
    kept = Importances(values, np.ones((2, 5), dtype=bool)).without_rounding()
    assert kept.values.tolist() == [[1.0, 0.0, -0.5, 0.0, 2e-5], [0.0] * 5]
    attention = np.array([0.7, 0.0, 0.3, 0.0, 0.1])
    assert kendall_tau(attention, np.abs(kept.values[0])) == pytest.approx(
        scipy.stats.kendalltau(attention, [1, 0, 0.5, 0, 2e-5]).statistic
    )


def test_what_needs_imdb_is_not_measured_without_it() -> None:
    verdicts = _verdicts({"sst": _models()})
    assert verdicts.pop("falling") is None
    assert set(verdicts.values()) == {True}


def test_a_trend_is_tau_of_lambda_with_the_means() -> None:
    spectrum = [
        (-1.0, {"support": [0.9]}),
        (0.0, {"support": [0.5]}),
        (0.5, {"support": [0.6]}),
        (0.9, {"support": [None]}),
    ]
    assert trend(spectrum, "support") == pytest.approx(scipy.stats.kendalltau([-1, 0, 0.5], [0.9, 0.5, 0.6]).statistic)


def test_runs_on_generated_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    study = dataclasses.replace(STUDY, presets={"quick": TINY})
    result = run_study(study, "quick", data=tmp_path / "data", output=tmp_path / "out", quiet=True)
    verdicts = {claim["id"]: claim["verdict"] for claim in result.claims}
    # Without IMDb; adversaries are judged only where their base happens to be right more often than by chance.
    not_measured = {name for name, verdict in verdicts.items() if verdict == "not measured"}
    assert not_measured in ({"falling"}, {"falling", "frozen", "unfrozen"})
    models = {path.name for path in result.folder.glob("steps/generated/**/models/*")}
    assert models >= {"lstm-softmax-1", "lstm-softmax-2", "transformer-frozen-2", "lstm-sparsegen-0.9-1"}
    assert "lstm-sparsegen-0.9-2" not in models
    table_6 = result.document["tables"][4]
    assert table_6["ours"]["BiLSTM softmax"]["generated gradient"][0] is not None
    assert table_6["paper"]["BiLSTM softmax"]["IMDb gradient"] == [0.36, 0.12]
    assert len(result.document["plots"]) == 6


@pytest.mark.parametrize("kind", ["frozen", "unfrozen"])
def test_an_adversary_is_trained_until_it_is_one(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipes: list[dict[str, Any]] = []
    folders: list[tuple[str, dict[str, Any]]] = []
    base = tmp_path / "models" / "lstm-softmax-7"
    base.mkdir(parents=True)
    (base / "result.json").write_text(json.dumps({"dev": {"accuracy": 0.8}}))

    def pretend(recipe: dict[str, Any], output: Path, set: dict[str, Any], quiet: bool) -> TrainingResult:
        recipes.append(recipe)
        folders.append((output.name, set))
        dev = {1: 0.9, 2: 0.77, 3: 0.79}[len(recipes)]  # after the second training it is still worse than its base
        return TrainingResult(
            output, 2, "all steps were made", "step 2", 100, 0.1, *(Measured(0.5, a) for a in (dev, 0.75))
        )

    def read(model: Path, documents: list[str]) -> SimpleNamespace:
        assert documents == ["a"] * TINY.explained
        after = [0.9, 0.1] if len(recipes) == 1 else [0.0, 1.0]  # it attends elsewhere after the second training
        names = {"lstm-softmax-7": [1.0, 0.0], f"lstm-{kind}-7": after}
        return SimpleNamespace(values=np.array([names[model.name]]), mask=np.ones((1, 2), dtype=bool))

    monkeypatch.setattr("sightline.studies.sparsity.steps.train", pretend)
    monkeypatch.setattr("sightline.studies.sparsity.steps.read_attention", read)
    settings = dataclasses.replace(TINY, adversary_tries=4)
    found = _find_adversary(tmp_path, settings, "lstm", kind, 7, ["a"] * 9)
    assert found == {"accuracy": 0.75, "divergence": pytest.approx(math.log(2)), "steps": 8}
    assert folders == [(f"lstm-{kind}-7", {"training.steps": steps}) for steps in (2, 4, 8)]
    for recipe in recipes:
        assert recipe["adversary"] == {
            "of": str(base),
            "strength": TINY.adversary_strength,
            "frozen": kind == "frozen",
        }
        assert recipe["seed"] == 7
        assert recipe["training"]["checkpoint_every"] == TINY.adversary_steps
        assert recipe["training"]["average"] == 1


def test_an_adversary_is_trained_on_where_it_was(tmp_path: Path) -> None:
    """Looked at twice, without being one, it ends as if it had been trained for twice as long at once."""
    texts = _prepare_texts(tmp_path / "texts", "generated", None, TINY)
    documents = [one.text for one in texts["test"]]
    _train_model(tmp_path, TINY, "lstm", "softmax", 1, documents)
    adversaries = {}
    for tries, steps in ((2, 2), (1, 4)):
        settings = dataclasses.replace(TINY, adversary_tries=tries, adversary_steps=steps)
        _find_adversary(tmp_path, settings, "lstm", "unfrozen", 1, documents)
        folder = tmp_path / "models" / "lstm-unfrozen-1"
        adversaries[tries] = load_file(folder / "checkpoints" / "step-0000004" / "model.safetensors")
        folder.rename(tmp_path / f"kept-{tries}")
    for name, weight in adversaries[1].items():
        assert torch.equal(adversaries[2][name], weight), name


def test_texts_are_read_from_the_folder_of_corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"train": ["a", "b", "c"], "test": ["b", "d"]}  # one text is in both

    def read(name: str, split: str, folder: Path) -> list[Labelled]:
        assert (name, folder) == ("sst", tmp_path / "data")
        return [Labelled(text, "good") for text in texts[split]]

    monkeypatch.setattr("sightline.studies.sparsity.steps.read_labelled", read)
    settings = dataclasses.replace(STUDY.presets["quick"], dev_texts=1)
    parts = _prepare_texts(tmp_path / "texts", "sst", tmp_path / "data", settings)
    assert {part: [one.text for one in found] for part, found in parts.items()} == {
        "train": ["b", "c"],
        "dev": ["a"],
        "test": ["d"],
    }
