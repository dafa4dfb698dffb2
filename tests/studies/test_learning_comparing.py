"""How the runs of a set are compared: every column against its literal definition, with expected values that differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from studies.changing import changed

from sightline.measures import random_agreement
from sightline.models.proxy import BagOfWords
from sightline.studies.learning.comparing import AS_PRINTED, compare_runs, reach
from sightline.studies.learning.published import AGREEMENTS
from sightline.studies.learning.study import STUDY
from sightline.studies.learning.traces import Trace, Traced, measure_proxy, read_traces
from sightline.studies.learning.traces import _write as write_trace

ROWS, POSITIONS = 150, 40
STEPS = (0, 10, 50)
MASK = np.ones((ROWS, POSITIONS), dtype=bool)
Scores = dict[str, dict[int, dict[str, np.ndarray]]]


def literal_agreement(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Eq. 10, row by row: is u's highest position among the highest 5 %, which are 2 of 40, of v?"""
    return np.array([float((w > w[r.argmax()]).sum() < 2) for r, w in zip(u, v, strict=True)])


def literal_tau(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.array([scipy.stats.kendalltau(r, w).statistic for r, w in zip(u, v, strict=True)])


METRICS: dict[str, Callable[..., np.ndarray]] = {"agreement": literal_agreement, "tau": literal_tau}


def drawn(seed: int, close_to: np.ndarray | None = None, share: float = 0.0) -> np.ndarray:
    """Draw scores; in a share of the rows they are another's, moved a little."""
    rng = np.random.default_rng(seed)
    scores = rng.random((ROWS, POSITIONS))
    if close_to is not None:
        rows = rng.permutation(ROWS)[: round(share * ROWS)]
        scores[rows] = close_to[rows] + 0.2 * rng.random((len(rows), POSITIONS))
    return scores.astype(np.float32)


@pytest.fixture(scope="module")
def scores() -> Scores:
    """Make up runs that agree with the first run's attention in different shares of their rows."""
    alpha, other_alpha, saliency = drawn(1), drawn(2), drawn(3)
    shares = {
        "second": (0.1, 0.5, 0.9),
        "second 2": (0.05, 0.2, 0.8),
        "uniform": (0.15, 0.6, 0.35),
        "proxy": (0.1, 0.3, 0.2),
        "frozen": (0.1, 0.25, 0.3),
    }
    runs: Scores = {
        "first": {step: {"attention": one} for step, one in zip(STEPS, (drawn(4), alpha, other_alpha), strict=True)}
    }
    for number, (role, by_step) in enumerate(shares.items()):
        runs[role] = {}
        for step, share in zip(STEPS, by_step, strict=True):
            seed = 100 * (number + 1) + step
            attention, probe = drawn(seed, alpha, share), drawn(seed + 1, alpha, 0.7 * share)
            runs[role][step] = {
                "uniform": {"lexical_probe": attention},
                "proxy": {"lexical_probe": attention},
                "frozen": {"attention": attention},
                "second 2": {"attention": attention},
            }.get(role, {"attention": attention, "lexical_probe": probe})
    runs["first"][10]["word_saliency"] = drawn(5, runs["uniform"][0]["lexical_probe"], 0.4)
    runs["first"][50]["word_saliency"] = saliency
    runs["linear"] = {50: {"best_attention": drawn(6, alpha, 0.5), "lexical_probe": drawn(7, alpha, 0.6)}}
    return runs


PERFORMANCES: dict[str, list[dict[str, float]]] = {
    "first": [{"accuracy": 40.0, "bleu": 4.0}, {"accuracy": 60.0, "bleu": 6.0}, {"accuracy": 59.0, "bleu": 7.0}],
    "second": [{"accuracy": 41.0, "bleu": 4.5}, {"accuracy": 52.0, "bleu": 5.5}, {"accuracy": 63.0, "bleu": 6.5}],
    "second 2": [{"accuracy": 43.0, "bleu": 4.6}, {"accuracy": 54.0, "bleu": 5.6}, {"accuracy": 65.0, "bleu": 6.7}],
    "uniform": [{"accuracy": 44.0}, {"accuracy": 45.0}, {"accuracy": 46.0}],
    "proxy": [{"loss": 3.0}, {"loss": 2.0}, {"loss": 1.0}],
    "frozen": [{"accuracy": 47.0}, {"accuracy": 48.0}, {"accuracy": 49.0}],
}


@pytest.fixture
def runs(scores: Scores, tmp_path: Path) -> dict[str, Traced]:
    for role, by_step in scores.items():
        for number, (step, found) in enumerate(by_step.items()):
            performance = {"accuracy": 66.0} if role == "linear" else PERFORMANCES[role][number]
            write_trace(tmp_path / role / f"{step}.npz", Trace(step, found, MASK, performance))
    best = {"best": {"first": 10, "second": 50, "linear": 50}, "best-bleu": {"first": 50}}
    for name, by_role in best.items():
        for role, step in by_role.items():
            performance = {"accuracy": 66.0} if role == "linear" else {}
            write_trace(tmp_path / role / f"{name}.npz", Trace(step, scores[role][step], MASK, performance))
    return {role: Traced(tmp_path / role) for role in scores}


def curve(metric: str, u: np.ndarray, run: dict[int, dict[str, np.ndarray]], name: str) -> list[float]:
    return [100 * METRICS[metric](u, at_step[name]).mean() for at_step in run.values()]


def expected_curves(scores: Scores, metric: str, alpha_step: int = 10) -> dict[str, list[float]]:
    first = scores["first"][alpha_step]
    uniform = [at_step["lexical_probe"] for at_step in scores["uniform"].values()]
    by_uniform = curve(metric, first["attention"], scores["uniform"], "lexical_probe")
    return {
        "α, β": curve(metric, first["attention"], scores["second"], "lexical_probe"),
        "α, β uf": by_uniform,
        "Δ, β uf": curve(metric, first["word_saliency"], scores["uniform"], "lexical_probe"),
        "β uf, β px": curve(metric, scores["proxy"][50]["lexical_probe"], scores["uniform"], "lexical_probe"),
        AS_PRINTED: curve(metric, uniform[int(np.argmax(by_uniform))], scores["proxy"], "lexical_probe"),
        "α, α fr": curve(metric, first["attention"], scores["frozen"], "attention"),
    }


@pytest.mark.parametrize("metric", METRICS)
def test_every_column_is_its_definition(scores: Scores, runs: dict[str, Traced], metric: str) -> None:
    figures = compare_runs(runs)
    expected = expected_curves(scores, metric)
    assert len({max(one) for one in expected.values()}) == 6, "the expected values differ"
    assert set(figures[metric]["columns"]) == set(expected)
    for column, values in expected.items():
        assert figures[metric]["curves"][column]["value"] == pytest.approx(values, abs=1e-4), column
        assert figures[metric]["curves"][column]["step"] == list(STEPS)
        assert figures[metric]["columns"][column] == pytest.approx(max(values), abs=1e-4), column
        assert figures[metric]["steps"][column] == STEPS[int(np.argmax(values))], column
    own = curve(metric, scores["first"][10]["attention"], scores["second"], "attention")
    assert figures[metric]["own curve"]["value"] == pytest.approx(own, abs=1e-4)
    optimal = scores["linear"][50]
    assert figures["optimal"][metric] == pytest.approx(
        100 * METRICS[metric](optimal["best_attention"], optimal["lexical_probe"]).mean(), abs=1e-4
    )
    assert figures["optimal"]["accuracy"] == 66.0
    assert figures["alpha step"] == 10


def test_the_first_run_is_chosen_by_another_performance(scores: Scores, runs: dict[str, Traced]) -> None:
    figures = compare_runs(runs, "bleu")
    assert figures["alpha step"] == 50
    for column, values in expected_curves(scores, "agreement", alpha_step=50).items():
        assert figures["agreement"]["columns"][column] == pytest.approx(max(values), abs=1e-4), column


def test_chance_shuffles_the_second_runs_attention(scores: Scores, runs: dict[str, Traced]) -> None:
    shuffled = scores["second"][50]["attention"]

    def chance(u: np.ndarray) -> float:
        return 100 * float(np.mean(random_agreement(u, shuffled, seed=0)))

    uniform = expected_curves(scores, "agreement")["α, β uf"]
    first = scores["first"][10]
    expected = {
        "α, β": chance(first["attention"]),
        "α, β uf": chance(first["attention"]),
        "Δ, β uf": chance(first["word_saliency"]),
        "β uf, β px": chance(scores["proxy"][50]["lexical_probe"]),
        AS_PRINTED: chance(scores["uniform"][STEPS[int(np.argmax(uniform))]]["lexical_probe"]),
        "α, α fr": chance(first["attention"]),
    }
    figures = compare_runs(runs)
    assert figures["chance"] == pytest.approx(expected)
    assert figures["optimal"]["chance"] == pytest.approx(chance(scores["linear"][50]["best_attention"]))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["accuracy", "bleu"])
def test_xi_is_the_mean_over_second_runs(scores: Scores, runs: dict[str, Traced], metric: str, kind: str) -> None:
    found = compare_runs(runs)[metric][f"xi {kind}"]
    for column, values in expected_curves(scores, metric).items():
        reached = []
        for role in ("second", "second 2"):
            own = curve(metric, scores["first"][10]["attention"], scores[role], "attention")
            more = [number for number, value in enumerate(own) if value > max(values)]
            reached.append((PERFORMANCES[role][more[0] if more else -1][kind], bool(more)))
        expected = [np.mean([value for value, _ in reached]), all(got_there for _, got_there in reached)]
        assert found[column] == [pytest.approx(expected[0]), expected[1]], column
    assert found["final"] == [{"accuracy": 64.0, "bleu": pytest.approx(6.6)}[kind], True]
    assert compare_runs(runs)["performance"][kind] == [one[kind] for one in PERFORMANCES["second"]]


def test_xi_is_starred_where_a_run_does_not_get_there() -> None:
    assert reach(30.0, [[20.0, 31.0, 50.0], [10.0, 30.0, 32.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) == [4.0, True]
    assert reach(40.0, [[20.0, 31.0, 50.0], [10.0, 30.0, 32.0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]) == [5.0, False]


def test_rise_and_fall_have_standard_errors(scores: Scores, runs: dict[str, Traced]) -> None:
    alpha = scores["first"][10]["attention"]
    rows = [100 * literal_agreement(alpha, one["lexical_probe"]) for one in scores["uniform"].values()]
    turn = compare_runs(runs)["turn"]
    assert turn["step"] == 10
    for name, other in (("rise", 0), ("fall", 2)):
        difference = rows[1] - rows[other]
        expected = [difference.mean(), scipy.stats.sem(difference)]
        assert turn[name] == pytest.approx(expected), name


def test_the_probe_of_the_proxy_is_recorded_as_log_odds(tmp_path: Path) -> None:
    model = BagOfWords(9, 5, 4).double()
    probe = model.probe([1, 2, 8], [0, 4])
    np.testing.assert_allclose(model.log_odds([1, 2, 8], [0, 4]), np.log(probe / (1 - probe)), rtol=1e-9)
    measure_proxy(tmp_path, 10, model, [[1, 2, 8], [3]], [[0, 4], [1]], loss=1.5)
    (trace,) = read_traces(tmp_path)
    np.testing.assert_allclose(trace.scores["lexical_probe"][:2], model.log_odds([1, 2, 8], [0, 4]), rtol=1e-6)
    assert trace.mask.tolist() == [[True] * 3, [True] * 3, [True, False, False]]
    assert trace.performance == {"loss": 1.5}


# Tables and claims

COLUMNS = (*AGREEMENTS, AS_PRINTED, "α, α fr")


def part_of(base: float) -> dict[str, Any]:
    """Make up the figures of one part of a set; no two of them are the same."""

    def metric(base: float) -> dict[str, Any]:
        return {
            "columns": {column: base + number for number, column in enumerate(COLUMNS)},
            "steps": {column: int(base) + 20 + number for number, column in enumerate(COLUMNS)},
            "curves": {column: {"step": [0, 10], "value": [base, base + 1]} for column in COLUMNS},
            "own curve": {"step": [0, 10], "value": [base, base + 2]},
            "xi accuracy": {column: [base + 30 + number, number != 1] for number, column in enumerate(COLUMNS)}
            | {"final": [base + 39, True]},
            "xi bleu": {column: [base + 40 + number, number != 2] for number, column in enumerate(COLUMNS)}
            | {"final": [base + 49, True]},
        }

    return {
        "alpha step": int(base) + 19,
        "performance": {"accuracy": [1.0, 2.0], "bleu": [3.0, 4.0]},
        "chance": {column: 5 + base / 1000 + number / 10 for number, column in enumerate(COLUMNS)},
        "turn": {"step": 10, "rise": [9.0, 1.0], "fall": [4.0, 1.5]},
        "agreement": metric(base),
        "tau": metric(base + 100),
        "optimal": {"agreement": 53.0, "tau": 44.0, "accuracy": 60.0, "chance": 6.0},
    }


def made_up() -> dict[str, Any]:
    results: dict[str, Any] = {}
    for number, name in enumerate(("classify sst", "classify imdb", "translate multi30k")):
        results[name] = {
            part: part_of(1000 * (number + 1) + shift) | {"by bleu": part_of(1000 * (number + 1) + shift + 200)}
            for part, shift in (("validation", 0), ("training", 500))
        }
        results[name]["statistics"] = {"training texts": 70 + number, "vocabulary": 80 + number}
        agreement = results[name]["validation"]["agreement"]["columns"]
        agreement["α, α fr"] = agreement["α, β uf"] - 0.5
    results["counter-example"] = {"weights": [0.0, 0.5, 0.5], "gap": 0.0, "probe": [0.3, 0.1, 0.1]}
    return results


def table(where: str) -> dict[str, Any]:
    (found,) = (one for one in STUDY.tables if one.where.startswith(where))
    return {row: dict(figures) for row, figures in found.measured(made_up()).items()}


def row_of(base: float, columns: tuple[str, ...], starred: str, xi: float) -> dict[str, Any]:
    found: dict[str, Any] = {f"A({column})": base + COLUMNS.index(column) for column in columns}
    for column in columns:
        value = base + xi + COLUMNS.index(column)
        found[f"ξ({column})"] = f"{value:.2f}*" if column == starred else value
    return found | {"ξ*": base + xi + 9}


def chances(base: float) -> dict[str, float]:
    return {
        name: 5 + base / 1000 + number / 10
        for number, name in enumerate(("chance", "chance (β uf, β px)", "chance (Δ)"))
    } | {f"A({AS_PRINTED})": base + 4}


@pytest.mark.parametrize(
    ("where", "base", "columns", "starred", "xi", "sets"),
    [
        ("tables 2 and 5", 0, AGREEMENTS, "β uf, β px", 30, ("IMDB", "SST", "Multi30k")),
        ("table 3", 100, AGREEMENTS[:3], "β uf, β px", 30, ("IMDB", "SST", "Multi30k")),
        ("table 4", 300, AGREEMENTS[:3], "Δ, β uf", 40, ("Multi30k",)),
        ("table 6", 200, AGREEMENTS, "Δ, β uf", 40, ("Multi30k",)),
        ("table 7", 500, AGREEMENTS, "β uf, β px", 30, ("IMDB", "SST", "Multi30k")),
        ("table 8", 700, AGREEMENTS[:3], "Δ, β uf", 40, ("Multi30k",)),
    ],
)
def test_every_cell_of_the_tables(
    where: str, base: float, columns: tuple[str, ...], starred: str, xi: float, sets: tuple[str, ...]
) -> None:
    thousands = {"SST": 1000, "IMDB": 2000, "Multi30k": 3000}
    found = table(where)
    assert set(found) == set(sets)
    for name in sets:
        expected = row_of(thousands[name] + base, columns, starred, xi)
        by_tau = where in ("table 3", "table 4")
        assert found[name] == pytest.approx(expected | ({"chance": 0.0} if by_tau else chances(thousands[name] + base)))


def test_every_cell_of_the_other_tables() -> None:
    assert table("table 9")["IMDB"] == {"training texts": 71, "vocabulary": 81}
    assert table("table 10") == {
        "SST": {"A(α, α fr)": 999.5, "A(α, β uf)": 1000.0},
        "IMDB": {"A(α, α fr)": 1999.5, "A(α, β uf)": 2000.0},
    }
    assert table("A.7")["SST"] == {
        "α": 1019,
        "A(α, β uf)": 1020,
        "A(β uf, β px)": 1021,
        "A(Δ, β uf)": 1022,
        "A(α, β)": 1023,
    }


def verdicts(results: dict[str, Any], *ids: str) -> dict[str, bool | None]:
    judged = {claim.id: claim.judge for claim in STUDY.claims}
    found = {name: judged[name](results) for name in ids}
    return {name: None if one is None else one.holds for name, one in found.items()}


ON_TEXT = ("1-agreement", "2-rise-and-fall", "10-frozen", "11-optimal")


@pytest.mark.parametrize(
    ("path", "value", "failing"),
    [
        (("classify sst", "validation", "chance", "α, β"), 700.0, "1-agreement"),
        (("classify sst", "validation", "chance", "α, β uf"), 700.0, "1-agreement"),
        (("translate multi30k", "validation", "chance", "β uf, β px"), 2100.0, "1-agreement"),
        (("classify imdb", "validation", "turn", "fall"), [2.9, 1.5], "2-rise-and-fall"),
        (("classify imdb", "validation", "turn", "rise"), [9.0, 5.0], "2-rise-and-fall"),
        (("classify sst", "validation", "agreement", "columns", "α, α fr"), 1001.0, "10-frozen"),
        (("translate multi30k", "validation", "optimal", "agreement"), 8.9, "11-optimal"),
        (("translate multi30k", "validation", "optimal", "chance"), 36.0, "11-optimal"),
        (("counter-example", "weights"), [0.1, 0.45, 0.45], "11-optimal"),
    ],
)
def test_each_claim_on_text_can_fail(path: tuple[Any, ...], value: Any, failing: str) -> None:
    assert set(verdicts(made_up(), *ON_TEXT).values()) == {True}
    found = verdicts(changed(made_up(), path, value), *ON_TEXT)
    assert {name for name, holds in found.items() if not holds} == {failing}


def curves(*accuracies: float) -> list[dict[str, list[float]]]:
    return [{"step": [0, 10, 20], "accuracy": [0.0, value / 2, value]} for value in accuracies]


def toys() -> dict[str, Any]:
    odds = {
        "step": [0, 10, 20, 30, 40, 50, 60, 70],
        "keyword": [0.0, 1.8, 3.0, 5.0, 6.0, 7.0, 8.0, 8.2],
        "one behind": [0.0, 1.2, 2.0, 5.0, 8.0, 10.0, 12.0, 12.7],
        "mean": [0.0, 0.1, 1.0, 2.0, 4.0, 5.0, 6.0, 6.7],
        "last": [0.0, 0.05, 1.0, 6.0, 9.0, 12.0, 15.0, 15.3],
        "accuracy": [0.5, 0.7, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0],
    }
    return {
        "toy permutations": curves(0.99, 0.6),
        "toy control": [{"step": [0, 10, 20], "accuracy": [0.0, 0.96, value]} for value in (0.99, 0.98)],
        "toy mixture": curves(0.3, 0.97),
        "toy reordering": curves(0.2, 0.3),
        "toy keyword": [odds],
        "toy head pool": {"good": [1, 2], "bad": [3, 4, 5], "tried": [1, 2, 3, 4, 5]},
        "toy heads": {
            "bad, mean": curves(0.5, 0.6),
            "one good, mean": curves(0.99, 0.98, 0.5),
            "random, mean": curves(0.99, 0.98, 0.97, 0.96, 0.5),
            "bad, sum": curves(0.99, 0.99),
        },
    }


ON_TOYS = ("3-permutations", "4-heads", "7-mixture", "8-reordering", "9-keyword", "13-log-odds")


@pytest.mark.parametrize(
    ("path", "value", "failing"),
    [
        (("toy permutations", 1, "accuracy", -1), 0.96, {"3-permutations"}),
        (("toy control", 1, "accuracy", -1), 0.9, {"3-permutations", "8-reordering"}),
        (("toy mixture", 0, "accuracy", -1), 0.96, {"7-mixture"}),
        (("toy reordering", 1, "accuracy", -1), 0.96, {"8-reordering"}),
        (("toy heads", "bad, mean", 0, "accuracy", -1), 0.96, {"4-heads"}),
        (("toy heads", "one good, mean", 0, "accuracy", -1), 0.5, {"4-heads"}),
        (("toy heads", "random, mean", 0, "accuracy", -1), 0.5, {"4-heads"}),
        (("toy keyword", 0, "keyword", -1), 15.4, {"9-keyword", "13-log-odds"}),
        (("toy keyword", 0, "keyword", 1), 1.1, {"13-log-odds"}),
        (("toy keyword", 0, "one behind", 1), 0.0, {"13-log-odds"}),
        (("toy keyword", 0, "one behind", -1), 15.4, {"13-log-odds"}),
        (("toy keyword", 0, "mean", -1), 12.8, {"13-log-odds"}),
        (("toy keyword", 0, "last", slice(1, 3)), [1.9, 3.1], {"9-keyword"}),
    ],
)
def test_each_claim_on_toys_can_fail(path: tuple[Any, ...], value: Any, failing: set[str]) -> None:
    assert set(verdicts(toys(), *ON_TOYS).values()) == {True}
    found = verdicts(changed(toys(), path, value), *ON_TOYS)
    assert {name for name, holds in found.items() if not holds} == failing


def test_heads_without_a_pool_are_not_measured() -> None:
    results = toys()
    del results["toy heads"]["one good, mean"]
    assert verdicts(results, "4-heads") == {"4-heads": None}


def test_what_the_claims_on_toys_say() -> None:
    said = {claim.id: claim.judge(toys()) for claim in STUDY.claims if claim.id in ON_TOYS}
    ours = {name: finding.ours for name, finding in said.items() if finding is not None}
    assert ours["3-permutations"] == "permutations: 1 of 2 learn; out of more words: 2 of 2 learn"
    assert ours["4-heads"] == (
        "bad: 0 of 2 learn; one good: 2 of 3 learn; random: 4 of 5 learn (2 good and 3 bad heads found)"
    )
    assert ours["7-mixture"] == "mixture: 1 of 2 learn, against 2 of 2 learn"
    assert ours["8-reordering"] == "reordering: 0 of 2 learn (accuracy 0.25); copying: 2 of 2 learn"
    assert ours["9-keyword"] == "the keyword leads up to step 20; at the end 8.2 against 15.3 at the last"
    assert ours["13-log-odds"] == ("keyword/one behind/mean/last: 1.8/1.2/0.1/0.1 at step 10, 8.2/12.7/6.7/15.3 at end")


@pytest.mark.parametrize(
    ("errors", "spreads", "expected"),
    [
        ([1.0, 0.5, 0.24], (0.0, 0.4), {"5-derivative": True, "6-counts": True}),
        ([1.0, 0.9, 0.8], (0.0, 0.4), {"5-derivative": False, "6-counts": True}),
        ([1.0, 0.5, 0.24], (0.1, 0.4), {"5-derivative": True, "6-counts": False}),
        ([1.0, 0.5, 0.24], (0.0, 0.0), {"5-derivative": True, "6-counts": False}),
    ],
)
def test_claims_on_the_proxy(errors: list[float], spreads: tuple[float, float], expected: dict[str, bool]) -> None:
    proxy = {
        "widths": [64, 256, 1024],
        "control": {"errors": errors, "spread": spreads[1]},
        "permutations": {"errors": [1.0, 1.0, 1.0], "spread": spreads[0]},
    }
    assert verdicts({"proxy": proxy}, *expected) == expected
