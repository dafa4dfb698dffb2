"""The loop: what it leaves, that it goes on exactly, and what it says when something is wrong."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training.tiny import LANGUAGE, recipe, same_weights, weights

import sightline
from sightline import files
from sightline.data.language import GeneratedLanguage, LanguageSettings
from sightline.errors import InputError
from sightline.training import train
from sightline.training.loop import compute_gradients
from sightline.training.recipe import read_recipe
from sightline.training.run import prepare_run

DROPOUT = {"model": {"dropout": 0.2}}


def _log(folder: Path, kind: str = "train") -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(recipe(**DROPOUT), output=folder, quiet=True)
    return folder


def test_the_folder_holds_a_model_that_loads_translates_and_explains(whole: Path) -> None:
    model = sightline.load(whole)
    why = sightline.explain(model, "some words here", "a few words")
    assert why.words().source.words == ("some", "words", "here")
    assert len(sightline.explain(model, "some words").target) >= 1
    assert model.max_length == 64


def test_each_side_may_have_pieces_of_its_own(tmp_path: Path) -> None:
    train(recipe(tokenizer={"joint": False, "vocabulary": 120}), output=tmp_path / "run", quiet=True)
    model = sightline.load(tmp_path / "run")
    pair = GeneratedLanguage(LanguageSettings(**LANGUAGE)).pairs(1)[0]
    why = sightline.explain(model, pair.source, pair.target)
    assert why.words().target.words == tuple(pair.target.split())
    assert "<unk>" not in (*why.source.pieces, *why.target.pieces)
    tokenizer = model.tokenizer
    as_target = tokenizer.convert_ids_to_tokens(tokenizer(text_target=pair.target)["input_ids"])
    assert why.target.pieces == tuple(as_target)
    assert as_target != tokenizer.convert_ids_to_tokens(tokenizer(pair.target)["input_ids"])
    own = sightline.explain(model, pair.source, generation={"max_new_tokens": 5})
    assert own.target.words


def test_the_result_is_written_with_the_settings_that_made_it(whole: Path) -> None:
    stored = json.loads((whole / "result.json").read_text())
    assert stored["recipe"] == read_recipe(recipe(**DROPOUT)).to_dict()
    assert stored["weights"].startswith("mean of steps 8, 12") or "best" in stored["weights"]
    assert stored["versions"]["torch"] == torch.__version__
    assert stored["dev"]["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert stored["dev"]["loss"] == pytest.approx(min(line["loss"] for line in _log(whole, "final dev")))
    again = train(recipe(**DROPOUT), output=whole, quiet=True)
    assert again.dev.loss == stored["dev"]["loss"], "a finished run is not repeated"


def test_the_log_has_every_report_once(whole: Path) -> None:
    assert [line["step"] for line in _log(whole)] == [2, 4, 6, 8, 10, 12]
    assert [line["step"] for line in _log(whole, "dev")] == [4, 8, 12]
    last = _log(whole)[-1]
    assert last["tokens_per_second"] > 0
    assert last["loss"] < _log(whole)[0]["loss"]


def test_the_same_recipe_gives_the_same_weights_and_another_seed_others(whole: Path, tmp_path: Path) -> None:
    train(recipe(**DROPOUT), output=tmp_path / "again", quiet=True)
    assert same_weights(whole, tmp_path / "again")
    train(recipe(**DROPOUT), output=tmp_path / "other", set={"seed": 2}, quiet=True)
    assert not same_weights(whole, tmp_path / "other")


PROGRAM = """
import sys, torch
torch.set_num_threads({threads})
sys.path.insert(0, {tests!r})
from training.tiny import LANGUAGE, recipe
from sightline.training import train
train(recipe(model={{"dropout": 0.2}}), output={output!r}, quiet=True)
"""


def _start(output: Path) -> subprocess.Popen[bytes]:
    program = PROGRAM.format(threads=torch.get_num_threads(), tests=str(Path(__file__).parents[1]), output=str(output))
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)


def _kill_when(condition: Any, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None and not condition():
        time.sleep(0.002)
    process.kill()
    process.wait()


def test_killed_and_started_again_it_ends_with_the_same_weights(tmp_path: Path) -> None:
    # Every run in a process of its own, all on as many threads: another number adds up in another order.
    whole, output = tmp_path / "whole", tmp_path / "run"
    assert _start(whole).wait() == 0
    # As soon as the first checkpoint is there: some steps are logged that no checkpoint has.
    _kill_when(lambda: any((output / "checkpoints").glob("step-*")), _start(output))
    assert not (output / "result.json").exists()
    assert _start(output).wait() == 0
    assert same_weights(whole, output)
    assert [line["loss"] for line in _log(output)] == [line["loss"] for line in _log(whole)]
    assert [line["loss"] for line in _log(output, "dev")] == [line["loss"] for line in _log(whole, "dev")]


@pytest.mark.slow
def test_killed_at_many_moments_it_ends_with_the_same_weights(whole: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    log = output / "log.jsonl"
    for delay in np.random.default_rng(0).uniform(0, 0.6, size=8):
        begun = time.time()
        process = _start(output)
        while process.poll() is None and not (log.exists() and log.stat().st_mtime > begun):
            time.sleep(0.005)
        end = time.monotonic() + delay
        _kill_when(lambda end=end: time.monotonic() > end, process)
    train(recipe(**DROPOUT), output=output, quiet=True)
    assert same_weights(whole, output)


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_waits_for_a_checkpoint(
    number: signal.Signals, raised: type[BaseException], whole: Path, tmp_path: Path
) -> None:
    def interrupt(step: int, model: Any) -> None:
        if step == 6:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(raised):
        train(recipe(**DROPOUT), output=tmp_path / "run", quiet=True, callbacks=[interrupt])
    assert signal.getsignal(number) is before
    assert (tmp_path / "run" / "checkpoints" / "step-0000006").is_dir()
    steps: list[int] = []
    train(recipe(**DROPOUT), output=tmp_path / "run", quiet=True, callbacks=[lambda step, model: steps.append(step)])
    assert steps == [7, 8, 9, 10, 11, 12]
    assert same_weights(whole, tmp_path / "run")


def test_what_a_callback_does_disturbs_nothing(whole: Path, tmp_path: Path) -> None:
    def disturb(step: int, model: Any) -> None:
        torch.manual_seed(5)
        model.module.eval()

    train(recipe(**DROPOUT), output=tmp_path / "run", quiet=True, callbacks=[disturb])
    assert same_weights(whole, tmp_path / "run")


def test_more_steps_go_on_from_a_finished_run(whole: Path, tmp_path: Path) -> None:
    short = tmp_path / "run"
    train(recipe(**DROPOUT, training={"steps": 8}), output=short, quiet=True)
    steps: list[int] = []
    train(recipe(**DROPOUT), output=short, quiet=True, callbacks=[lambda step, model: steps.append(step)])
    assert steps == [9, 10, 11, 12]
    assert same_weights(whole, short)


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    def poison(step: int, model: Any) -> None:
        if step == 6:
            with torch.no_grad():
                next(model.module.parameters()).fill_(float("nan"))

    output = tmp_path / "run"
    with pytest.raises(
        InputError, match=r"The loss is nan at step 7, with a learning rate of .*step 4, is kept in .*run"
    ):
        train(recipe(), output=output, quiet=True, callbacks=[poison])
    assert [path.name for path in (output / "checkpoints").iterdir()] == ["step-0000004"]
    assert all(tensor.isfinite().all() for tensor in weights(output / "checkpoints" / "step-0000004").values())
    assert sightline.load(output / "checkpoints" / "step-0000004").task == "translate"


def test_a_full_disk_is_explained_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / ("a long name" * 3) / "run"
    with monkeypatch.context() as patch:
        force = files._force_to_disk

        def full(path: Path) -> None:
            if "step-0000008" in str(path):
                raise OSError(errno.ENOSPC, "No space left on device", str(path))
            force(path)

        patch.setattr(files, "_force_to_disk", full)
        with pytest.raises(InputError, match=r"No space left on device.*The checkpoint of step 4 is complete"):
            train(recipe(**DROPOUT), output=output, quiet=True)
    assert [path.name for path in (output / "checkpoints").iterdir()] == ["step-0000004"]
    steps: list[int] = []
    train(recipe(**DROPOUT), output=output, quiet=True, callbacks=[lambda step, model: steps.append(step)])
    assert steps[0] == 5


def test_a_damaged_checkpoint_is_passed_by_and_the_run_ends_the_same(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, steps = tmp_path / "run", []

    def stop(step: int, model: Any) -> None:
        if step == 10:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(recipe(**DROPOUT), output=output, quiet=True, callbacks=[stop])
    damaged = output / "checkpoints" / "step-0000008" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    train(recipe(**DROPOUT), output=output, callbacks=[lambda step, model: steps.append(step)])
    shown = capsys.readouterr().err
    assert "The checkpoint of step 8 is damaged (model.safetensors does not have its checksum)" in shown
    assert "Going on after step 4" in shown
    assert steps[0] == 5
    assert same_weights(output, whole)


DAMAGED_JSON = {
    "result.json": ["", "[]", '{"step": 1}', '{"step": "x"}', "{" * 5000, "\xff"],
    "recipe.json": ["", "null", '{"seed": 1e999}', '{"training": 5}'],
    "log.jsonl": ["nonsense\n", "[1]\n", '{"step": "1"}\n', "\xff\n"],
}


def test_damaged_files_of_a_run_are_one_sentence(tmp_path: Path) -> None:
    output = tmp_path / "run"
    train(recipe(), output=output, quiet=True)
    for name, texts in DAMAGED_JSON.items():
        path = output / name
        before = path.read_bytes()
        for text in texts:
            path.write_bytes(text.encode("latin-1"))
            with pytest.raises(InputError, match=r"^[^\n]{1,400}$"):
                train(recipe(), output=output, quiet=True)
        path.write_bytes(before)
        (output / "result.json").unlink(missing_ok=True)


def test_the_folder_is_checked_before_the_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    broken = recipe(data={"train": {"source": "none", "target": "none"}})
    with pytest.raises(InputError, match="file is not a folder"):
        train(broken, output=tmp_path / "file" / "run", quiet=True)


def test_a_log_that_cannot_be_written_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sightline.training.journal.Journal.record", full)
    with pytest.raises(InputError, match=r"No space left on device. There is no checkpoint yet"):
        train(recipe(), output=tmp_path / "run", quiet=True)


def test_training_ends_early_when_the_loss_gets_no_better(tmp_path: Path) -> None:
    result = train(
        recipe(training={"learning_rate": 1e-30, "patience": 2, "steps": 100}), output=tmp_path / "run", quiet=True
    )
    assert "no better in 2 evaluations" in result.reason
    assert result.step == 12
    again = train(
        recipe(training={"learning_rate": 1e-30, "patience": 3, "steps": 100}), output=tmp_path / "run", quiet=True
    )
    assert again.step == 16


def test_training_ends_when_its_time_is_used(tmp_path: Path) -> None:
    result = train(
        recipe(training={"minutes": 0.002, "steps": 10_000, "checkpoint_every": 1000}),
        output=tmp_path / "run",
        quiet=True,
    )
    assert "0.002 minutes are used" in result.reason
    assert 0 < result.step < 1000
    assert result.weights == f"step {result.step}", "the last step is evaluated and saved"


@pytest.mark.parametrize("passes", [2, 3, 50])
def test_passes_add_up_to_the_gradient_of_the_whole_batch(passes: int, tmp_path: Path) -> None:
    gradients = []
    for accumulate in (1, passes):
        changed = recipe(training={"accumulate": accumulate}, model={"dropout": 0.0})
        run = prepare_run(read_recipe(changed), tmp_path / str(accumulate), quiet=True)
        counts = compute_gradients(run, np.arange(20))
        gradients.append([parameter.grad for parameter in run.trained_parameters])
        assert counts[2] == run.train.target_tokens(np.arange(20))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_a_folder_is_used_only_by_its_own_run(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds a run with model.width = 16, and the recipe has 32"):
        train(recipe(model={"dropout": 0.2, "width": 32}), output=whole, quiet=True)
    (tmp_path / "something").write_text("of mine")
    with pytest.raises(InputError, match="is not empty and holds no training run"):
        train(recipe(), output=tmp_path, quiet=True)
    with pytest.raises(InputError, match="needs a folder"):
        train(recipe())


def test_a_run_that_got_nowhere_can_be_mended_in_its_folder(tmp_path: Path) -> None:
    output = tmp_path / "run"
    with pytest.raises(InputError, match="A vocabulary of 10 is too small"):
        train(recipe(tokenizer={"vocabulary": 10}), output=output, quiet=True)
    assert not output.exists()
    with pytest.raises(InputError, match="at step"):
        train(recipe(training={"learning_rate": 1e12, "warmup": 0, "clip": None}), output=output, quiet=True)
    assert train(recipe(tokenizer={"vocabulary": 150}), output=output, quiet=True).step == 12
    assert len(sightline.load(output).tokenizer) == 150


def test_changed_data_is_noticed(tmp_path: Path) -> None:
    for name in ("en", "es"):
        (tmp_path / f"train.{name}").write_text("".join(f"word{i % 7} and{i} more\n" for i in range(50)))
    settings = recipe(training={"steps": 2}) | {
        "data": {"train": {"source": "train.en", "target": "train.es"}, "dev": {"held_out": 3}}
    }
    path = tmp_path / "recipe.json"  # JSON is YAML
    path.write_text(json.dumps(settings))
    train(path, output=tmp_path / "run", quiet=True)
    (tmp_path / "train.es").write_text("".join(f"other{i % 7} and{i} more\n" for i in range(50)))
    with pytest.raises(InputError, match="The training text is no longer that of the run"):
        train(path, output=tmp_path / "run", set={"training.steps": 4}, quiet=True)


def test_one_model_translates_both_ways(tmp_path: Path) -> None:
    both = recipe(
        data={"bidirectional": True, "languages": ["en", "es"], "test": {"generated": LANGUAGE, "sentences": 5}},
        evaluation={"bleu_sentences": 2},
    )
    result = train(both, output=tmp_path / "run", quiet=True)
    assert result.dev.bleu.keys() == {"en-es", "es-en"}
    assert result.test is not None
    assert result.test.bleu.keys() == {"en-es", "es-en"}
    assert _log(tmp_path / "run", "dev")[0].keys() >= {"bleu en-es", "bleu es-en", "signature"}
    model = sightline.load(tmp_path / "run", prefix=">>es<< ")
    why = sightline.explain(model, "some words", "a few")
    assert why.source.pieces[0] == ">>es<<"
    assert why.source.word_ids[0] is None
    assert why.words().without_special().source.words == ("some", "words")


def test_training_starts_from_a_trained_model(tmp_path: Path) -> None:
    first = train(recipe(), output=tmp_path / "first", quiet=True)
    seen: dict[int, float] = {}

    def note(step: int, model: Any) -> None:
        seen[step] = float(model.module.get_input_embeddings().weight.double().sum())

    changes = {"start": str(tmp_path / "first"), "steps": 4}
    other = {"train": {"generated": LANGUAGE | {"seed": 9}, "sentences": 200}}
    again = train(recipe(training=changes, data=other), output=tmp_path / "again", quiet=True, callbacks=[note])
    trained = sightline.load(first.folder)
    assert seen[0] == float(trained.module.get_input_embeddings().weight.double().sum())
    assert seen[1] != seen[0]
    assert sightline.load(again.folder).tokenizer.get_vocab() == trained.tokenizer.get_vocab()
    with pytest.raises(InputError, match=r"not the one that the recipe's `model:` describes.*training.start"):
        train(recipe(training=changes, model={"width": 32}), output=tmp_path / "wide", quiet=True)


def test_16_bits_train_too(tmp_path: Path) -> None:
    result = train(recipe(training={"precision": "bfloat16", "steps": 4}), output=tmp_path / "run", quiet=True)
    assert np.isfinite(result.dev.loss)
    assert all(tensor.dtype == torch.float32 for tensor in weights(tmp_path / "run").values())


@pytest.mark.parametrize("instructions", ["amx_tile", "avx512_bf16", "neither"])
def test_a_processor_that_multiplies_bfloat16_itself_trains_in_it(
    instructions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in ("amx_tile", "avx512_bf16"):
        monkeypatch.setattr(torch.cpu, f"_is_{one}_supported", lambda one=one: one == instructions)
    run = prepare_run(read_recipe(recipe(training={"precision": "auto"})), tmp_path, quiet=True)
    assert run.accelerator.mixed_precision == ("no" if instructions == "neither" else "bf16")


def test_progress_is_told_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(recipe(), output=tmp_path / "run")
    told = capsys.readouterr()
    assert told.out == ""
    for part in ("pairs to train on", "step 4/12  epoch 1  loss", "tokens/s  at most", "(best)", "The model is in"):
        assert part in told.err


def test_tensorboard_gets_the_figures_where_it_is_installed(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    train(recipe(), output=tmp_path / "run", quiet=True)
    written = accumulators.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    for kind in ("train", "dev"):
        logged = [(line["step"], pytest.approx(line["loss"], rel=1e-6)) for line in _log(tmp_path / "run", kind)]
        assert [(event.step, event.value) for event in written.Scalars(f"{kind}/loss")] == logged


@pytest.mark.parametrize("both_ways", [False, True])
def test_how_alignments_are_read_is_chosen_on_the_dev_pairs(both_ways: bool, tmp_path: Path) -> None:
    data: dict[str, Any] = {"dev": {"generated": LANGUAGE, "sentences": 24}}
    data |= {"bidirectional": True, "languages": ["en", "es"]} if both_ways else {}
    trained = train(recipe(data=data, training={"steps": 4}), output=tmp_path / "run", quiet=True)
    model = sightline.load(trained.folder, source_lang="en" if both_ways else None)
    for direction in filter(None, (model, model.other_way)):
        choice = sightline.explain_choice(direction, "a b", "a b")
        assert choice.is_remembered
        assert choice.pairs == 24
    assert (model.other_way is not None) is both_ways


def test_a_recipe_may_ask_for_an_alignment_adapter(tmp_path: Path) -> None:
    asked = recipe(data={"bidirectional": True, "languages": ["en", "es"]}, training={"steps": 4})
    asked["alignment"] = {"pairs": 120, "rounds": 1}
    trained = train(asked, output=tmp_path / "run", quiet=True)
    model = sightline.load(trained.folder, source_lang="en")
    assert model.adapter is not None
    assert model.other_way is not None
    assert model.other_way.adapter is not None
    about = json.loads((trained.folder / "adaptation.json").read_text())
    assert (about["pairs"] + about["skipped"], about["chosen"]) == (120, 1)
    assert len(sightline.align(model, "a b c", "a b c")) > 0
