"""The study of how attention learns: its parts against their definitions, and the whole of it at the least size."""

from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sightline.data.toys import copying, draw_keywords
from sightline.errors import InputError
from sightline.models.classifier import ClassifierConfig, ClassifierForSequenceClassification, ClassifierSettings
from sightline.models.lstm import LstmConfig, LstmForConditionalGeneration, LstmSettings
from sightline.studies.learning.exact import (
    count_words,
    judge_derivative,
    measure_proxy,
    sample_pairs,
    solve_counter_example,
)
from sightline.studies.learning.frames import choose_example, count_probe, cut_frames
from sightline.studies.learning.settings import QUICK
from sightline.studies.learning.small_vocabulary import read_one_hot
from sightline.studies.learning.study import STUDY
from sightline.studies.learning.text import TRANSLATIONS, build_recipe, checkpoints
from sightline.studies.learning.toy_claims import MERGE, judge_heads, judge_keyword, judge_mixture, learned
from sightline.studies.learning.toy_models import (
    FINISHED,
    TEST_SEED,
    CopySettings,
    Curve,
    KeywordSettings,
    build_copier,
    build_finder,
    combine_heads,
    draw_head,
    judge_head,
    measure_log_odds,
    train_copying,
    train_keyword,
)
from sightline.studies.learning.toy_steps import ToySettings, build_toy_steps, find_heads, tasks
from sightline.studies.learning.traces import Trace, read_trace, read_traces, to_rows
from sightline.studies.learning.traces import _write as write_trace
from sightline.studies.running import run_study
from sightline.studies.study import Study

KEYWORD = KeywordSettings(width=8, length=9, words=12, batch=4, steps=4, every=2, test_examples=20)
TOYS = ToySettings(
    length=4,
    words=6,
    seeds=1,
    copy=CopySettings(width=8, batch=4, steps=4, every=2, test_examples=8),
    keyword=KEYWORD,
    heads=3,
    head_seeds=1,
    wanted_heads=2,
    candidates=2,
)
TINY = replace(
    QUICK,
    classify=replace(
        QUICK.classify,
        width=8,
        embedding_width=8,
        steps=10,
        measured=4,
        train_sentences=300,
        second_runs=2,
        long_steps={"generated": 12},
    ),
    translate=replace(
        QUICK.translate,
        width=8,
        vocabulary=300,
        steps=10,
        measured=4,
        train_sentences=300,
        bleu_sentences=2,
    ),
    toys=TOYS,
    widths=(16, 64),
)


# The toys


def test_heads_are_what_their_seeds_draw() -> None:
    model = build_copier(6, 8, seed=3, heads=[5, 9])
    weight = model.model.decoder.attention.query.weight
    torch.testing.assert_close(weight, torch.cat([draw_head(5, 8), draw_head(9, 8)]))
    assert draw_head(5, 8).abs().max() <= 8**-0.5


def test_few_words_are_read_as_one_hot_vectors_with_the_same_outputs_and_gradients() -> None:
    torch.manual_seed(0)
    form = LstmSettings(layers=1, width=8, bidirectional=False, dropout=0.0, tied="none")
    copier = LstmForConditionalGeneration(LstmConfig(**asdict(form), vocab_size=7)).double()
    one_hot = deepcopy(copier)
    read_one_hot(one_hot.model.encoder)
    read_one_hot(one_hot.model.decoder)
    ids = torch.randint(0, 7, (3, 5))
    _assert_same_gradients(copier, one_hot, {"input_ids": ids, "decoder_input_ids": ids.flip(1)})


def test_a_classifier_reads_few_words_as_one_hot_vectors_too() -> None:
    torch.manual_seed(0)
    form = ClassifierSettings(width=4, embedding_width=8, alignment="uniform", dropout=0.0, layers=1)
    finder = ClassifierForSequenceClassification(ClassifierConfig(**asdict(form), vocab_size=7)).double()
    one_hot = deepcopy(finder)
    read_one_hot(one_hot.encoder)
    _assert_same_gradients(finder, one_hot, {"input_ids": torch.randint(0, 7, (3, 5))})


def _assert_same_gradients(plain: torch.nn.Module, one_hot: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> None:
    logits = [model(**inputs).logits for model in (plain, one_hot)]
    torch.testing.assert_close(logits[0], logits[1])
    for output in logits:
        output.square().sum().backward()
    gradients = [
        {name.replace("lstm.embedding", "embed_tokens"): parameter.grad for name, parameter in model.named_parameters()}
        for model in (plain, one_hot)
    ]
    assert set(gradients[0]) == set(gradients[1])
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], msg=name)


def test_a_run_is_determined_by_its_seeds() -> None:
    settings = CopySettings(width=8, batch=4, steps=4, every=2, test_examples=8)
    first, again, other = (train_copying(copying(4, 6), 6, settings, seed, [1]) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first["step"] == [0, 2, 4]


def test_a_small_task_is_learned_and_ends_early() -> None:
    settings = CopySettings(width=24, batch=32, steps=400, every=25, learning_rate=0.01, test_examples=64)
    curve = train_copying(copying(3, 6), 6, settings, seed=0)
    assert curve["accuracy"][-1] > 0.95
    assert learned([curve]) == "1 of 1 learn"
    assert all(accuracy < FINISHED for accuracy in curve["accuracy"][:-1])


@pytest.mark.parametrize(
    ("accuracies", "kind"), [((0.99, 0.96), "good"), ((0.5, 0.1), "bad"), ((0.99, 0.5), None), ((0.7, 0.94), "bad")]
)
def test_good_and_bad_heads(accuracies: tuple[float, float], kind: str | None) -> None:
    assert judge_head([{"step": [0, 1], "accuracy": [0.0, value]} for value in accuracies]) == kind


def test_rejection_sampling_of_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads are good, bad, and good at first only, in turn; all runs have the same other weights, and three orders."""
    runs: list[tuple[int, int, int | None]] = []

    def pretend(
        task: object, words: int, settings: CopySettings, seed: int, heads: list[int], order: int | None = None
    ) -> Curve:
        head = heads[0]
        runs.append((head, seed, order))
        right = head % 3 == 0 or (head % 3 == 2 and sum(run[0] == head for run in runs) == 1)
        return {"step": [0, 1], "accuracy": [0.0, 1.0 if right else 0.1]}

    monkeypatch.setattr("sightline.studies.learning.toy_steps.train_copying", pretend)
    work = SimpleNamespace(results={}, folder=Path(), keep=lambda name, compute: compute(), say=lambda text: None)
    pool = find_heads(work, replace(TOYS, head_seeds=3, wanted_heads=2, candidates=20, head_weights=4))
    assert pool == {"good": [0, 3], "bad": [1, 4], "tried": [0, 1, 2, 3, 4]}
    assert [head for head, _, _ in runs] == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4]
    assert {seed for _, seed, _ in runs} == {4}
    assert [order for _, _, order in runs][:6] == [1000, 1001, 1002] * 2


def test_heads_are_combined_among_the_same_weights_in_other_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[int, str, int]] = []

    def pretend(
        task: object, words: int, settings: CopySettings, seed: int, heads: list[int], merge: str, order: int
    ) -> Curve:
        runs.append((seed, merge, order))
        return {"step": [0], "accuracy": [0.1]}

    monkeypatch.setattr("sightline.studies.learning.toy_steps.train_copying", pretend)
    pool = {"good": [3], "bad": [1, 2], "tried": [1, 2, 3]}
    work = SimpleNamespace(
        results={"toy head pool": pool}, folder=Path(), keep=lambda name, compute: compute(), say=lambda text: None
    )
    found = build_toy_steps(replace(TOYS, seeds=2, head_weights=4))[-1].run(work)
    assert list(found) == [
        f"{scenario}, {merge}" for merge in ("mean", "sum") for scenario in ("bad", "one good", "random")
    ]
    assert runs == [(4, merge, seed) for merge in ("mean", "sum") for _ in range(3) for seed in (0, 1)]


def test_the_order_of_examples_has_a_seed_of_its_own() -> None:
    settings = CopySettings(width=8, batch=4, steps=30, every=10, learning_rate=0.03, test_examples=64)
    usual, same, other = (train_copying(copying(4, 6), 6, settings, 1, [1], order=order) for order in (None, 1, 2))
    assert usual == same
    assert usual["accuracy"][0] == other["accuracy"][0], "the weights are the same"
    assert usual != other


def test_the_keyword_is_looked_for_from_left_to_right() -> None:
    model = build_finder(KEYWORD, seed=0)
    texts = torch.tensor([[3, 4, 5, 6], [3, 4, 5, 9]])
    states = model.encoder(texts)[0]
    torch.testing.assert_close(states[0, :3], states[1, :3])
    assert states.shape[-1] == KEYWORD.width
    assert not torch.allclose(states[0, 3], states[1, 3])


def test_heads_are_combined_from_the_pool() -> None:
    pool = {"good": [100], "bad": list(range(10))}
    bad = combine_heads("bad", pool, 8, seed=1)
    assert bad is not None
    assert set(bad) <= set(pool["bad"])
    assert len(set(bad)) == 8
    one_good = combine_heads("one good", pool, 8, seed=1)
    assert one_good is not None
    assert one_good.count(100) == 1
    assert len(one_good) == 8
    assert combine_heads("one good", {"good": [], "bad": [1, 2]}, 8, seed=1) is None
    assert combine_heads("bad", {"good": [1], "bad": []}, 8, seed=1) is None
    drawn = combine_heads("random", pool, 200, seed=1)
    assert drawn is not None
    assert 1_000_000 <= min(drawn) <= max(drawn) < 2_000_000
    assert len(set(drawn)) > 190


def test_the_log_odds_are_those_of_single_positions() -> None:
    """Eq. 22: gamma_l is the log-odds of the label if position l alone were attended to."""
    model = build_finder(KEYWORD, seed=0)
    texts = np.array([[3, 0, 4, 5, 6], [0, 6, 5, 4, 3], [1, 2, 3, 4, 5], [1, 2, 3, 0, 4]])
    labels, positions = np.array([1, 1, 0, 1]), np.array([1, 0, -1, 3])
    found = measure_log_odds(model, texts, labels, positions)
    states = model.encoder(torch.from_numpy(texts[:2] + 2))[0]
    first, second = (model.out_proj(states) @ torch.tensor([-1.0, 1.0])).detach().numpy()
    expected = {
        "keyword": (first[1] + second[0]) / 2,
        "one behind": (first[2] + second[1]) / 2,
        "mean": (first.mean() + second.mean()) / 2,
        "last": (first[-1] + second[-1]) / 2,
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6), "the last text's keyword stands too near to the end"


def test_the_keyword_s_log_odds_are_measured_from_the_start_at_regular_steps() -> None:
    curve = train_keyword(KEYWORD, seed=0)
    assert curve["step"] == [0, 2, 4]
    assert {len(values) for values in curve.values()} == {3}
    test = draw_keywords(np.random.default_rng(TEST_SEED), KEYWORD.test_examples, KEYWORD.length, KEYWORD.words)
    for name, value in measure_log_odds(build_finder(KEYWORD, seed=0), *test).items():
        assert curve[name][0] == pytest.approx(value), "before any training"


# Text


def test_the_counts_of_an_example_are_those_of_the_training_set() -> None:
    """Eq. 16-18, literally."""
    training = ([[1, 2], [1, 3, 3], [2]], [[7], [7, 8], [8]])
    counts = {(x, y): 0.0 for x in range(4) for y in (7, 8)}
    for source, target in zip(*training, strict=True):
        for x in source:
            for y in target:
                counts[x, y] += 1 / len(source)
    expected = [[counts[x, y] / (counts[x, 7] + counts[x, 8]) for x in (3, 1)] for y in (8, 7)]
    np.testing.assert_allclose(count_probe(training, [3, 1], [8, 7]), expected)


def test_an_example_is_cut_out_of_the_rows_of_all() -> None:
    sides = ([[1] * 3, [1] * 15, [1] * 7, [1, 9] * 3], [[1, 1], [1], [1, 1, 1], [1]])
    assert choose_example(sides, unknown=9) == 2
    assert choose_example(sides, unknown=1) is None
    scores = np.arange(7 * 15).reshape(7, 15) / 100
    trace = Trace(5, {"attention": scores, "lexical_probe": 2 * scores}, np.ones((7, 15), bool), {})
    cut = cut_frames([trace], sides[1], 2, 7)
    assert cut["step"] == [5]
    np.testing.assert_allclose(cut["attention"], [scores[3:6, :7]])
    np.testing.assert_allclose(cut["probe"], [1 / (1 + np.exp(-2 * scores[3:6, :7]))], atol=6e-4)


def test_the_checkpoints_are_the_papers() -> None:
    assert checkpoints("classify", 600) == [0, 10, 50, 100, 150, 200, 250, 500, 600]
    assert checkpoints("translate", 6000) == [0, 50, 100, 500, 1000, 1500, 3500, 5500, 6000]


def test_generated_text_is_of_one_language() -> None:
    generated = TRANSLATIONS["generated"]
    assert generated["train"]["generated"] == generated["dev"]["generated"]


def test_roles_differ_in_what_they_should() -> None:
    first, frozen = (build_recipe("classify", "sst", QUICK.classify, role, None) for role in ("first", "frozen"))
    assert frozen["model"].pop("trained") == "attention"
    assert first["model"].pop("trained") == "all"
    assert first["seed"] != frozen.pop("seed")
    del first["seed"]
    assert first == frozen
    assert build_recipe("translate", "multi30k", QUICK.translate, "uniform", None)["model"]["attention"] == "uniform"


def test_the_runs_of_claim_2_may_be_longer_and_further_second_runs_have_seeds_of_their_own() -> None:
    settings = replace(QUICK.classify, steps=20, long_steps={"sst": 90}, second_runs=3)
    recipes = {
        role: build_recipe("classify", "sst", settings, role, None)
        for role in ("first", "second", "second 2", "second 3", "uniform", "frozen")
    }
    assert {role: one["training"]["steps"] for role, one in recipes.items()} == {
        "first": 90,
        "second": 20,
        "second 2": 20,
        "second 3": 20,
        "uniform": 90,
        "frozen": 20,
    }
    linear = build_recipe("translate", "multi30k", QUICK.translate, "linear", None)
    assert len({linear["seed"], *(one["seed"] for one in recipes.values())}) == 7
    assert build_recipe("classify", "imdb", settings, "first", None)["training"]["steps"] == 20


def test_traces_come_back(tmp_path: Path) -> None:
    scores = to_rows([np.array([[0.25, 0.75]]), np.array([[0.5, 0.2, 0.3]])])
    trace = Trace(50, {"attention": scores}, scores > 0, {"accuracy": 12.5})
    write_trace(tmp_path / "50.npz", trace)
    write_trace(tmp_path / "best.npz", trace)
    (found,) = read_traces(tmp_path)
    assert found.step == read_trace(tmp_path / "best.npz").step == 50
    np.testing.assert_array_equal(found.scores["attention"], scores)
    assert found.performance == {"accuracy": 12.5}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["50.npz", "best.npz"]
    whole = (tmp_path / "50.npz").read_bytes()
    for damaged in (b"", b"nonsense", whole[:-40], whole[:200] + bytes(40) + whole[240:]):
        (tmp_path / "50.npz").write_bytes(damaged)
        with pytest.raises(InputError, match=r"50\.npz is damaged"):
            read_traces(tmp_path)


# The whole


def test_count_tables_are_in_the_words_order() -> None:
    task, words = tasks(TOYS)["mixture"]
    counts = count_words(sample_pairs(task), words)
    assert (counts[:4, 4:] == 0).all()
    assert counts.sum() == pytest.approx(200 * 4)


def test_proxies_are_drawn_from_seeds_and_measured_on_small_toys() -> None:
    settings = replace(TINY, widths=(4,))
    found = measure_proxy(settings)
    assert [np.shape(found[name]["counts"]) for name in ("permutations", "control", "mixture")] == [
        (6, 6),
        (9, 9),
        (12, 12),
    ]
    torch.manual_seed(9)
    assert measure_proxy(settings) == found


def test_the_wider_a_proxy_the_nearer_its_first_step_is_to_the_count_table() -> None:
    errors = measure_proxy(replace(TINY, widths=(16, 1024)))["control"]["errors"]
    assert errors[1] < errors[0] / 4  # the roots of the widths are as 1 to 8


@pytest.mark.parametrize(("power", "holds"), [(-0.5, True), (-0.6, True), (-0.7, False), (-1.0, False), (-0.3, False)])
def test_the_error_of_a_proxy_falls_as_the_root_of_its_width(power: float, holds: bool) -> None:
    widths = [16, 64, 1024]
    errors = [3 * width**power for width in widths]
    finding = judge_derivative({"proxy": {"widths": widths, "control": {"errors": errors}}})
    assert finding is not None
    assert finding.holds is holds
    assert f"width^{power:.2f}" in finding.ours


def test_the_counter_example_of_the_paper() -> None:
    """Eq. 29-31: the first position has the best probe, and no weight."""
    found = solve_counter_example()
    assert found["weights"] == pytest.approx([0, 0.5, 0.5], abs=1e-5)
    other = 1 / (1 + np.exp(-10) + np.exp(5))
    assert found["probe"] == pytest.approx([1 / 3, other, other])


def test_a_mixture_that_takes_no_longer_than_the_control_is_no_evidence() -> None:
    failed: Curve = {"step": [0, 10, 20], "accuracy": [0.1, 0.2, 0.3]}
    learned_late: Curve = {"step": [0, 10, 20], "accuracy": [0.1, 0.2, 1.0]}
    learned_early: Curve = {"step": [0, 10], "accuracy": [0.1, 1.0]}
    for control, holds in ((failed, False), (learned_late, False), (learned_early, True)):
        finding = judge_mixture({"toy mixture": [failed], "toy control": [control]})
        assert finding is not None
        assert finding.holds is holds


@pytest.mark.parametrize(
    ("bad", "one_good", "random", "holds"),
    [(0, 10, 10, True), (4, 6, 8, True), (5, 6, 8, False), (4, 5, 8, False), (4, 6, 7, False)],
)
def test_one_good_head_among_bad_ones_has_to_learn_more_often_than_not(
    bad: int, one_good: int, random: int, holds: bool
) -> None:
    """Of ten runs each, so many learn."""
    counts = {"bad": bad, "one good": one_good, "random": random}
    curves = {
        f"{name}, {MERGE}": [{"step": [0], "accuracy": [1.0 if run < count else 0.1]} for run in range(10)]
        for name, count in counts.items()
    }
    finding = judge_heads({"toy heads": curves, "toy head pool": {"good": [1], "bad": [2, 3]}})
    assert finding is not None
    assert finding.holds is holds
    assert judge_heads({"toy heads": curves | {f"random, {MERGE}": []}}) is None


@pytest.mark.parametrize(("lead", "holds"), [(0, False), (1, True), (2, True), (3, False)])
def test_the_keyword_has_to_lead_early(lead: int, holds: bool) -> None:
    keyword = [1.0 if step == lead else 0.0 for step in range(8)]
    run = {"step": list(range(8)), "keyword": keyword, "last": [0.5] * 8}
    finding = judge_keyword({"toy keyword": [run]})
    assert finding is not None
    assert finding.holds is holds
    assert finding.ours.startswith(f"the keyword leads up to step {lead};")


def test_the_seeds_of_a_toy_are_kept_and_told() -> None:
    said, kept = [], []

    def keep(name, compute):
        kept.append(name)
        return compute()

    (step,) = (one for one in build_toy_steps(replace(TOYS, seeds=2)) if one.name == "toy control")
    curves = step.run(SimpleNamespace(results={}, folder=Path(), keep=keep, say=said.append))
    assert kept == ["seed 0", "seed 1"]
    assert said == [f"control, seed {seed}: accuracy {curves[seed]['accuracy'][-1]:.2f}" for seed in range(2)]


def test_the_whole_study_on_generated_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sightline.studies.running._find_data", lambda data: None)
    study = replace(STUDY, presets={"quick": TINY})
    assert isinstance(study, Study)
    result = run_study(study, "quick", output=tmp_path / "out", quiet=True)
    verdicts = {claim["id"]: claim["verdict"] for claim in result.claims}
    assert len(verdicts) == 13
    assert verdicts["6-counts"] == verdicts["12-identity"] == "holds"
    assert verdicts["1-agreement"] != "not measured"
    table = next(table for table in result.document["tables"] if table["where"] == "table 6")
    assert table["ours"]["generated (translate)"]["ξ*"] is not None
    sizes = next(table for table in result.document["tables"] if table["where"] == "table 9")["ours"]
    assert sizes["generated (classify)"]["validation texts"] == 4
    assert sizes["generated (translate)"]["training texts"] <= 300
    traces = tmp_path / "out" / "steps" / "classify-generated" / "traces"
    assert sorted(path.name for path in traces.iterdir()) == [
        *("first", "frozen", "proxy", "second", "second 2", "uniform")
    ]
    page = (tmp_path / "out" / "study.html").read_text()
    assert "Attention as it forms" in page
    assert "<script" not in page
    again = run_study(study, "quick", output=tmp_path / "out", quiet=True)
    assert again.document["claims"] == result.document["claims"]
