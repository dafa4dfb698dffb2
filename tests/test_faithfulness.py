"""Faithfulness against its definition, one deletion and one output at a time."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch
import zoo
from typer.testing import CliRunner

import sightline
from sightline.cli.app import app
from sightline.errors import InputError
from sightline.faithfulness import FRACTIONS, measure_faithfulness
from sightline.models.loaded import LoadedModel

SOURCE = "The small dog sees the cat on the mat"


def _probability(model: LoadedModel, words: list[str], target: str, word: int) -> float:
    """Return the probability of a target word, piece by piece, from a pass of its own."""
    example = model.encode(words, target)
    with torch.no_grad():
        logits = model.logits(model.batch([example]))[0].double()
    total = 1.0
    for position, owner in enumerate(example.label_tokens.word_ids):
        if owner == word:
            total *= float(logits[position].softmax(-1)[example.labels[position]])
    return total


@pytest.mark.parametrize(("name", "target"), [("marian", "El gato ve al perro"), ("lstm-classifier", None)])
def test_equals_its_definition(name: str, target: str | None) -> None:
    model = sightline.load(zoo.model(name))
    model.module.eval()
    words = SOURCE.split()
    if target is None:
        target = sightline.explain(model, SOURCE).target.words[0]
    (found,) = measure_faithfulness(model, [words], [target], methods=["attention"])
    why = sightline.explain(model, [words], [target], method="attention")[0].flat().words().without_special()
    assert len(found.comprehensiveness) == len(target.split())
    for row in range(len(target.split())):
        order = sorted(range(len(words)), key=lambda i: (-why.scores[row, i], i))
        whole = _probability(model, words, target, row)
        without, alone = [], []
        for fraction in FRACTIONS:
            top = set(order[: math.ceil(fraction * len(words))])
            without.append(whole - _probability(model, [w for i, w in enumerate(words) if i not in top], target, row))
            alone.append(whole - _probability(model, [w for i, w in enumerate(words) if i in top], target, row))
        one_out = [abs(whole - _probability(model, words[:i] + words[i + 1 :], target, row)) for i in range(len(words))]
        assert found.comprehensiveness[row] == pytest.approx(np.mean(without), abs=1e-6)
        assert found.sufficiency[row] == pytest.approx(np.mean(alone), abs=1e-6)
        expected = scipy.stats.kendalltau(why.scores[row], one_out).statistic
        # Deletions that change next to nothing may change places in the last digits.
        assert found.correlation[row] == pytest.approx(expected, abs=0.06)


def test_leave_one_out_agrees_with_itself() -> None:
    found, random = measure_faithfulness(zoo.model("marian"), [SOURCE], ["El gato"], methods=["erasure", "random"])
    assert np.nanmean(found.correlation) > 0.6  # its words are ranked by sums over their pieces
    assert np.nanmean(random.correlation) < np.nanmean(found.correlation)


def test_a_single_word_cannot_be_taken_away_from_nothing() -> None:
    (found,) = measure_faithfulness(zoo.model("marian"), ["Yes"], ["Sí"], methods=["attention"])
    assert np.isfinite(found.comprehensiveness).all()  # the end token stays
    assert np.isnan(found.correlation).all()  # one word has no rank
    assert found.summary()["correlation"].undefined == 1
    assert found.to_dict()["correlation"]["mean"] is None


def test_mistakes() -> None:
    with pytest.raises(InputError, match="There is no method 'atention'"):
        measure_faithfulness(zoo.model("marian"), [SOURCE], ["El gato"], methods=["atention"])
    with pytest.raises(InputError, match="1 sources and 2 targets"):
        measure_faithfulness(zoo.model("marian"), [SOURCE], ["El", "gato"])
    with pytest.raises(InputError, match="translation models and classifiers"):
        measure_faithfulness(zoo.model("gpt2"), [SOURCE])


def test_on_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    loaded = sightline.load(zoo.model("lstm"))
    loaded.module.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    (tmp_path / "pairs.tsv").write_text("The cat sleeps\tEl gato\nA dog\tUn perro\n", encoding="utf-8")
    arguments = ["faithfulness", "-m", str(folder), "--methods", "attention,random", str(tmp_path / "pairs.tsv")]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["method"] for one in found] == ["attention", "random"]
    assert found[0]["comprehensiveness"]["defined"] == 4
