"""The curves of a recorded run, and that a Trainer's run of one of our models gives them with its probe."""

import json
from pathlib import Path

import pytest
import transformers
import zoo

from sightline.errors import InputError
from sightline.training.recorder import AttentionRecorder, RecorderCallback
from sightline.view.curves import forming_step, plot_record, read_record, render_record

RECORD = [
    {
        "step": step,
        "entropy": [2.0, entropy],
        "agreement with lexical_probe": [0.1, agreement],
        "agreement with lexical_probe by chance": [0.1, 0.06],
    }
    for step, entropy, agreement in ((0, 2.0, 0.1), (10, 1.9, 0.3), (20, 1.4, 0.5), (30, 1.0, 0.4))
]


def test_attention_has_formed_half_way_down() -> None:
    assert forming_step(RECORD) == 20
    assert forming_step(RECORD, layer=0) is None


def test_the_plots_hold_the_record() -> None:
    entropy, agreement = plot_record(RECORD)
    assert entropy["series"][1]["y"] == [2.0, 1.9, 1.4, 1.0]
    assert "step 20" in entropy["note"]
    assert [one["name"] for one in agreement["series"]] == ["layer 0", "layer 1", "by chance"]
    assert agreement["series"][1]["y"] == [0.1, 0.3, 0.5, 0.4]


def test_a_record_is_read_as_far_as_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text("\n".join([*(json.dumps(step) for step in RECORD), '{"step": 40, "ent']))
    assert read_record(path) == RECORD
    assert "lexical_probe" in render_record(path)
    path.write_text("")
    with pytest.raises(InputError, match="no step yet"):
        read_record(path)
    with pytest.raises(InputError, match="There is no record"):
        read_record(tmp_path / "other")


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[1]",
        '{"step": 1}',
        '{"step": 1, "entropy": 2}',
        '{"step": 1, "entropy": ["a", "b"]}',
        '{"step": "1"}',
    ],
)
def test_a_damaged_record_is_one_sentence(tmp_path: Path, line: str) -> None:
    path = tmp_path / "record"
    path.write_text("".join(json.dumps(step) + "\n" for step in RECORD) + line + "\n")
    with pytest.raises(InputError, match=f"record, line {len(RECORD) + 1} is damaged: .*: record the run again"):
        read_record(path)


def test_undefined_entropies_are_left_out() -> None:
    record = [{"step": step, "entropy": [entropy]} for step, entropy in ((0, 2.0), (1, None), (2, 1.0))]
    assert forming_step(record) == 2
    assert forming_step([{"step": 0, "entropy": [None]}]) is None


def test_a_trainers_run_gives_them(tmp_path: Path) -> None:
    loaded = zoo.fresh("lstm")
    path = tmp_path / "attention.jsonl"
    sources, targets = zoo.SOURCES[:2], zoo.TARGETS[:2]
    examples = [
        dict(loaded.tokenizer(source)) | {"labels": loaded.tokenizer(text_target=target)["input_ids"]}
        for source, target in zip(sources, targets, strict=True)
    ]
    recorder = AttentionRecorder(path, sources, targets, 5, ("lexical_probe",))
    transformers.Trainer(
        loaded.module,
        transformers.TrainingArguments(
            str(tmp_path),
            max_steps=10,
            learning_rate=0.05,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            save_strategy="no",
        ),
        data_collator=transformers.DataCollatorForSeq2Seq(loaded.tokenizer, loaded.module),
        train_dataset=examples,
        processing_class=loaded.tokenizer,
        callbacks=[RecorderCallback(recorder)],
    ).train()
    record = read_record(path)
    assert [step["step"] for step in record] == [0, 5, 10]
    assert "agreement with lexical_probe" in record[0]
    assert render_record(path).count("<svg") == 2
