"""What every translating architecture of a recipe must do, with one table of small ones."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training.tiny import LANGUAGE, recipe

import sightline
from sightline.training.architectures import ARCHITECTURES
from sightline.training.interruption import Interruption
from sightline.training.loop import run_updates, update
from sightline.training.recipe import read_recipe
from sightline.training.run import Run, prepare_run
from sightline.training.run_folder import save_model

SMALL: dict[str, dict[str, Any]] = {
    "transformer": {"encoder_layers": 2, "decoder_layers": 2, "width": 64, "heads": 4, "feed_forward": 128},
    "transformer, pre-norm": {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "width": 64,
        "heads": 4,
        "feed_forward": 128,
        "norm": "pre",
    },
    "lstm": {"layers": 1, "width": 64},
    "conv": {"encoder_layers": 2, "decoder_layers": 2, "width": 64},
}


def _prepare(name: str, output: Path, steps: int = 150) -> Run:
    settings = recipe(
        data={"train": {"generated": LANGUAGE, "sentences": 100}},
        training={
            "steps": steps,
            "batch_tokens": 1000,
            "warmup": 20,
            "learning_rate": 0.01,
            "schedule": "cosine",
            "label_smoothing": 0.0,
            "log_every": 10_000,
            "checkpoint_every": 10_000,
        },
    ) | {"model": {"architecture": name.partition(",")[0], "max_positions": 64, "dropout": 0.0} | SMALL[name]}
    return prepare_run(read_recipe(settings), output, quiet=True)


def test_every_architecture_is_tested() -> None:
    assert {name.partition(",")[0] for name in SMALL} == {
        name for name, architecture in ARCHITECTURES.items() if not architecture.classifies
    }


class Learned(Exception):  # noqa: N818
    """All is known."""


@pytest.fixture(params=SMALL, scope="module")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A model that has learned a hundred pairs by heart, in a minute at most."""
    run = _prepare(request.param, tmp_path_factory.mktemp(request.param) / "run")

    def stop_when_learned(step: int, model: Any) -> None:
        if step % 20 == 0 and run.measure(run.train)[1] == 1.0:
            raise Learned

    with suppress(Learned):
        run_updates(run, [stop_when_learned], Interruption())
    run.model.eval()
    return run


def test_it_learns_a_hundred_pairs_by_heart(run: Run) -> None:
    assert len(run.train) == 100
    assert run.measure(run.train)[1] == 1.0


def test_a_later_target_token_changes_no_earlier_logits(run: Run) -> None:
    tensors = run.train.tensors(np.array([0, 1]), torch.device("cpu"))
    tensors.pop("labels")
    with torch.no_grad():
        before = run.model(**tensors).logits
        tensors["decoder_input_ids"][:, 3] = 7
        after = run.model(**tensors).logits
    torch.testing.assert_close(before[:, :3], after[:, :3], rtol=0, atol=0)
    assert (before[:, 3:] - after[:, 3:]).abs().max() > 1e-4


def test_padding_changes_nothing(run: Run) -> None:
    lengths = run.train.source.lengths
    short, long = int(lengths.argmin()), int(lengths.argmax())
    assert lengths[short] < lengths[long]
    together = run.train.tensors(np.array([short, long]), torch.device("cpu"))
    alone = run.train.tensors(np.array([short]), torch.device("cpu"))
    labels = alone.pop("labels")
    together.pop("labels")
    with torch.no_grad():
        logits = run.model(**alone).logits
        padded = run.model(**together).logits[:1, : labels.shape[1]]
    torch.testing.assert_close(padded, logits, rtol=1e-4, atol=1e-4)


def test_saved_and_loaded_it_generates_the_same_and_beams_score_no_worse(run: Run, tmp_path: Path) -> None:
    save_model(run.loaded, tmp_path)
    loaded = sightline.load(tmp_path)
    tensors = run.train.tensors(np.arange(6), torch.device("cpu"))
    inputs = {name: tensors[name] for name in ("input_ids", "attention_mask")}
    expected = run.model.generate(**inputs, num_beams=2)
    assert torch.equal(loaded.module.generate(**inputs, num_beams=2), expected)
    greedy, beam = (_score(loaded, [source for source, _ in run.dev_pairs], beams) for beams in (1, 4))
    assert beam >= greedy - 1e-3


def _score(model: Any, sources: list[str], beams: int) -> float:
    """Sum the log-probabilities of what is generated when no length is preferred."""
    examples = [model.encode(source, None) for source in sources]
    answers = model.answer(examples, num_beams=beams, length_penalty=0.0)
    answered = [model.with_output(example, ids) for example, ids in zip(examples, answers, strict=True)]
    total = 0.0
    with model.evaluating(), torch.no_grad():
        for example in answered:
            total += float(model.log_probs(model.batch([example])).sum())
    return total


@pytest.mark.parametrize("name", SMALL)
def test_one_step_changes_every_parameter(name: str, tmp_path: Path) -> None:
    run = _prepare(name, tmp_path / "run", steps=1)
    before = {key: parameter.clone() for key, parameter in run.model.named_parameters() if parameter.requires_grad}
    update(run, 1, np.arange(40))
    after = dict(run.model.named_parameters())
    assert [key for key in before if torch.equal(before[key], after[key])] == []
