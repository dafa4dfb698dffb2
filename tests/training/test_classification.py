"""Classifiers from recipes: the loss is balanced, the same loop trains them, the same methods explain them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from training.classifying import RECIPE

import sightline
from sightline.errors import InputError
from sightline.models.classifier import ClassifierConfig, ClassifierForSequenceClassification
from sightline.training import read_recipe, train
from sightline.training.batches import epoch_batches
from sightline.training.classification import ClassificationObjective, class_weights, encode_labelled, label_names
from sightline.training.vocabulary import collect_words


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier") / "run"
    train(RECIPE, output=folder, quiet=True)
    return folder


def test_learns_and_is_explained(trained: Path) -> None:
    result = json.loads((trained / "result.json").read_text())
    assert result["test"]["accuracy"] > 0.75
    assert result["test"]["bleu"] == {}
    model = sightline.load(trained)
    why = sightline.explain(model, "word1 word2 positive3 word5 positive7 word9")
    assert why.target.pieces == ("positive",)
    assert why.source.words == ("word1", "word2", "positive3", "word5", "positive7", "word9")
    assert np.asarray(why.scores).sum() == pytest.approx(1, abs=1e-5)
    for method in ("gradient", "erasure", "integrated_gradients"):
        assert sightline.explain(model, "word1 positive3 word5", method=method).scores.shape[-2:] == (1, 4)


def test_goes_on_where_it_was(trained: Path, tmp_path: Path) -> None:
    train(RECIPE, output=tmp_path / "run", set={"training.steps": 20}, quiet=True)
    train(RECIPE, output=tmp_path / "run", quiet=True)
    one, other = (sightline.load(folder).module.state_dict() for folder in (trained, tmp_path / "run"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_stored_recipe_without_newer_keys_goes_on(trained: Path, tmp_path: Path) -> None:
    train(RECIPE, output=tmp_path / "run", set={"training.steps": 20}, quiet=True)
    path = tmp_path / "run" / "recipe.json"
    stored = json.loads(path.read_text())
    del stored["adversary"]
    del stored["evaluation"]["beam"]
    path.write_text(json.dumps(stored))
    train(RECIPE, output=tmp_path / "run", quiet=True)


def test_the_loss_counts_every_label_the_same() -> None:
    pairs = [("a b", "no"), ("b a", "no"), ("a a", "no"), ("b b", "yes")]
    tokenizer = collect_words(["a b"] * 3, 10, 8)
    labels = label_names(pairs)
    texts, _ = encode_labelled(pairs, tokenizer, 8, labels)
    weights = class_weights(texts, 2)
    assert weights.tolist() == pytest.approx([4 / (2 * 3), 4 / (2 * 1)])
    torch.manual_seed(0)
    model = ClassifierForSequenceClassification(ClassifierConfig(vocab_size=10, width=4, embedding_width=4)).eval()
    tensors = texts.tensors(np.arange(4), torch.device("cpu"))
    loss, counts = ClassificationObjective(model, weights, 0.0)(**tensors)
    logits = model(tensors["input_ids"], tensors["attention_mask"]).logits
    by_text = F.cross_entropy(logits, torch.tensor([0, 0, 0, 1]), reduction="none")
    torch.testing.assert_close(loss, (by_text[:3].mean() + by_text[3]) / 2 * 4)
    torch.testing.assert_close(counts[0], by_text.sum())
    assert counts[2] == 4


def test_batches_have_so_many_texts() -> None:
    pairs = [("a " * (1 + number % 7), "no" if number % 2 else "yes") for number in range(50)]
    texts, _ = encode_labelled(pairs, collect_words(["a"] * 3, 10, 20), 20, ["no", "yes"])
    batches = epoch_batches(texts, 10_000, seed=1, epoch=0, batch_texts=8)
    assert [len(batch) for batch in batches].count(8) == 6
    assert sorted(np.concatenate(batches).tolist()) == list(range(50))


def test_rare_words_are_unknown() -> None:
    tokenizer = collect_words(["often often often", "twice twice", "usual usual usual usual"], 5, 16)
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("twice usual often")["input_ids"])
    assert tokens == ["<unk>", "usual", "often", "</s>"]
    assert len(tokenizer) == 5


def test_long_texts_keep_their_beginning(tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"{'x ' * 30}{number}", "label": number % 2}) for number in range(8)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    from sightline.training.corpus import read_corpora

    data = {"train": {"labelled": str(tmp_path / "a.jsonl")}, "dev": {"labelled": "generated"}, "max_words": 7}
    recipe = read_recipe({"data": data, "model": {"architecture": "classifier"}, "training": {"steps": 1}})
    corpora = read_corpora(recipe.data, tmp_path, 1)
    assert set(corpora.train) == {("x x x x x x x", "0"), ("x x x x x x x", "1")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.architecture": "lstm"}, "needs sentence pairs"),
        ({"alignment.rounds": 1}, "alignment is for models that translate"),
        ({"data.train": {"pairs": "a.tsv"}}, "classifier needs labelled text"),
        ({"data.train": {"labelled": "nothing.csv"}}, "There is no file"),
    ],
)
def test_mistakes(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    recipe = {**RECIPE, "model": {"architecture": "classifier"}}
    with pytest.raises(InputError, match=message):
        train(recipe, output=tmp_path / "run", set=changes, quiet=True)


def test_one_label_is_no_task() -> None:
    with pytest.raises(InputError, match="the label 'yes' only"):
        label_names([("a", "yes"), ("b", "yes")])
