"""The recorder: its figures against their definitions, its steps, its file, and both ways of using it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
import zoo
from training.tiny import recipe

import sightline
from sightline.errors import InputError
from sightline.training import train
from sightline.training.recorder import AttentionRecorder, RecorderCallback

SOURCES, TARGETS = zoo.SOURCES[:2], zoo.TARGETS[:2]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_its_figures_are_those_of_the_definitions(tmp_path: Path) -> None:
    model = zoo.model("marian")
    figures = AttentionRecorder(tmp_path / "log", SOURCES, TARGETS, 1, ("gradient", "norms")).measure(model)
    entropies: list[list[float]] = [[], []]
    agreements: list[list[float]] = [[], []]
    for source, target in zip(SOURCES, TARGETS, strict=True):
        weights = sightline.explain(model, source, target).scores  # (layer, target, source)
        gradient = sightline.explain(model, source, target, method="gradient").scores
        for layer in (0, 1):
            for p, g in zip(weights[layer].astype(float), gradient, strict=True):
                entropies[layer].append(-sum(x * np.log(x) for x in p))
                agreements[layer].append(sum(x > g[p.argmax()] for x in g) < 0.05 * len(g))
    assert figures["entropy"] == pytest.approx(np.mean(entropies, axis=1), rel=1e-4)
    assert figures["agreement with gradient"] == pytest.approx(np.mean(agreements, axis=1))
    assert figures.keys() >= {"agreement with norms", "agreement with norms by chance"}


def test_it_records_a_run_at_its_steps_and_a_resumed_run_once(tmp_path: Path) -> None:
    path = tmp_path / "attention.jsonl"
    recorder = AttentionRecorder(path, ["some words"], ["other words"], {0, 3, 4})
    train(recipe(training={"steps": 4}), output=tmp_path / "run", quiet=True, callbacks=[recorder])
    assert [line["step"] for line in _lines(path)] == [0, 3, 4]
    with path.open("a") as file:
        file.write('{"step": 6, "entropy": [0]}\n{"step": 7, "entr')  # of a run that was killed
    again = AttentionRecorder(path, ["some words"], ["other words"], 2)
    train(recipe(training={"steps": 8}), output=tmp_path / "run", quiet=True, callbacks=[again])
    assert [line["step"] for line in _lines(path)] == [0, 3, 4, 6, 8]


def test_a_method_that_the_model_lacks_is_told_at_the_first_step(tmp_path: Path) -> None:
    recorder = AttentionRecorder(tmp_path / "log", ["some words"], ["other words"], 2, ("lexical_probe",))
    with pytest.raises(InputError, match="has no lexical probe"):
        train(recipe(), output=tmp_path / "run", quiet=True, callbacks=[recorder])


def test_it_records_transformers_trainer(tmp_path: Path) -> None:
    loaded = zoo.fresh("marian")
    path = tmp_path / "attention.jsonl"
    examples = [
        dict(loaded.tokenizer(source)) | {"labels": loaded.tokenizer(text_target=target)["input_ids"]}
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    trainer = transformers.Trainer(
        loaded.module,
        transformers.TrainingArguments(
            str(tmp_path), max_steps=2, report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no"
        ),
        data_collator=transformers.DataCollatorForSeq2Seq(loaded.tokenizer, loaded.module),
        train_dataset=examples,
        processing_class=loaded.tokenizer,
        callbacks=[RecorderCallback(AttentionRecorder(path, SOURCES, TARGETS, 1))],
    )
    trainer.train()
    assert [line["step"] for line in _lines(path)] == [0, 1, 2]
    assert _lines(path)[0]["entropy"] != _lines(path)[2]["entropy"]
    assert loaded.module.training, "it is left as it was"
