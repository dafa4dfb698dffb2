"""The toy experiments of Snell et al. 2021: copying (sections 3.3, 5.2, 6.2, A.3) and a keyword (section 6.1).

The models are those that Sightline trains on text, at toy size: the recurrent translation model and the classifier.
They are trained one after the other: an LSTM of torch is as fast alone as many of them stacked along a further axis
(measured at width 64), since the products of matrices, not the calls, take the time.

A head's initialisation is a matrix drawn from a seed of its own, so a pool of good and bad ones is two lists of seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sightline.data.toys import PairSampler, draw_keywords
from sightline.models.classifier import ClassifierConfig, ClassifierForSequenceClassification, ClassifierSettings
from sightline.models.lstm import LstmConfig, LstmForConditionalGeneration, LstmSettings
from sightline.studies.learning.small_vocabulary import read_one_hot

PAD, END, SPECIALS = 0, 1, 2
LEARNED = 0.95
"""A run has learned that ends above this accuracy."""
FINISHED = 0.999
TEST_SEED = 1_000_000


@dataclass(frozen=True)
class CopySettings:
    """The size and the training of a toy that copies."""

    width: int
    batch: int
    steps: int
    every: int
    """Measure the accuracy after a number of steps."""
    learning_rate: float = 1e-3
    test_examples: int = 256


@dataclass(frozen=True)
class KeywordSettings:
    """The size and the training of the keyword toy."""

    width: int
    length: int
    words: int
    batch: int
    steps: int
    every: int
    learning_rate: float = 1e-3
    test_examples: int = 512


Curve = dict[str, list[float | int]]
"""Values by name, and the steps that they were measured at."""


def train_copying(
    task: PairSampler,
    words: int,
    settings: CopySettings,
    seed: int,
    heads: Sequence[int] = (),
    merge: Literal["sum", "mean"] = "sum",
    order: int | None = None,
) -> Curve:
    """Train a model on a task; return its accuracy on fresh examples by step.

    `seed` draws the weights and, unless `order` says otherwise, the examples. `heads` are the seeds of the heads'
    initialisations; without them there is one, drawn like all other weights. A run that copies all but perfectly ends
    there, and its accuracy stays.
    """
    model = build_copier(words, settings.width, seed, heads, merge)
    optimizer = torch.optim.Adam(model.parameters(), settings.learning_rate)
    rng = np.random.default_rng([seed if order is None else order, 1])
    test = _as_inputs(*task(np.random.default_rng(TEST_SEED), settings.test_examples))
    curve: Curve = {"step": [0], "accuracy": [measure_accuracy(model, test)]}
    for step in range(1, settings.steps + 1):
        inputs = _as_inputs(*task(rng, settings.batch))
        F.cross_entropy(_logits(model, inputs).flatten(0, 1), inputs["labels"].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % settings.every == 0 or step == settings.steps:
            curve["step"].append(step)
            curve["accuracy"].append(measure_accuracy(model, test))
            if curve["accuracy"][-1] >= FINISHED:
                break
    return curve


def build_copier(
    words: int, width: int, seed: int, heads: Sequence[int] = (), merge: Literal["sum", "mean"] = "sum"
) -> LstmForConditionalGeneration:
    """Build a model of one layer and one direction, with tanh (as released), from a seed and its heads' seeds."""
    settings = LstmSettings(
        layers=1,
        width=width,
        bidirectional=False,
        combination="tanh",
        heads=max(len(heads), 1),
        merge=merge,
        dropout=0.0,
        tied="none",
    )
    torch.manual_seed(seed)
    model = LstmForConditionalGeneration(LstmConfig(**asdict(settings), vocab_size=words + SPECIALS))
    if heads:
        with torch.no_grad():
            model.model.decoder.attention.query.weight.copy_(torch.cat([draw_head(head, width) for head in heads]))
    if words < width:
        read_one_hot(model.model.encoder)
        read_one_hot(model.model.decoder)
    return model


def draw_head(seed: int, width: int) -> Float[Tensor, "width width"]:
    """Draw the initial W^(k) of a head (eq. 20), as torch draws a linear layer's."""
    bound = width**-0.5
    return torch.empty(width, width).uniform_(-bound, bound, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def measure_accuracy(model: LstmForConditionalGeneration, inputs: dict[str, Tensor]) -> float:
    """Return the share of target words that are right after a true prefix; the end token is not counted."""
    right = _logits(model, inputs).argmax(-1) == inputs["labels"]
    return right[:, :-1].float().mean().item()


def _logits(model: LstmForConditionalGeneration, inputs: dict[str, Tensor]) -> Float[Tensor, "batch target word"]:
    return model(input_ids=inputs["input_ids"], decoder_input_ids=inputs["decoder_input_ids"], use_cache=False).logits


def _as_inputs(source: Int[np.ndarray, "batch source"], target: Int[np.ndarray, "batch target"]) -> dict[str, Tensor]:
    """Make room for padding and end among the words' numbers, and put the end after both sides."""
    ids, labels = (
        torch.from_numpy(np.pad(side + SPECIALS, ((0, 0), (0, 1)), constant_values=END)) for side in (source, target)
    )
    start = torch.full_like(labels[:, :1], PAD)
    return {"input_ids": ids, "labels": labels, "decoder_input_ids": torch.cat([start, labels[:, :-1]], 1)}


def has_learned(curve: Curve) -> bool:
    """Return whether a run ended as one that can do the task."""
    return curve["accuracy"][-1] > LEARNED


def judge_head(curves: Sequence[Curve]) -> Literal["good", "bad"] | None:
    """Return whether a head's initialisation is good (every seed learned), bad (none did), or neither."""
    learned = [has_learned(curve) for curve in curves]
    if all(learned):
        return "good"
    return None if any(learned) else "bad"


def combine_heads(scenario: str, pool: dict[str, list[int]], count: int, seed: int) -> list[int] | None:
    """Choose the heads of a run: all bad, one good among bad ones, or drawn anew; None if the pool has too few.

    With fewer bad heads than needed they are drawn with repetition, of at least two different ones.
    """
    rng = np.random.default_rng([seed, 2])
    if scenario == "random":
        return [int(head) for head in rng.integers(10**6, 2 * 10**6, size=count)]
    good, bad = pool["good"], pool["bad"]
    if len(bad) < 2 or (scenario == "one good" and not good):
        return None
    heads = [int(head) for head in rng.choice(bad, size=count, replace=len(bad) < count)]
    if scenario == "one good":
        heads[rng.integers(count)] = int(rng.choice(good))
    return heads


def train_keyword(settings: KeywordSettings, seed: int) -> Curve:
    """Train a classifier under uniform attention on the keyword task; give the four log-odds by step, and accuracy.

    gamma_l = W' h_l (eq. 22) at the keyword, one behind it, at the last position, and its mean over all (eq. 23-25),
    means over texts with a keyword that stands neither at the last position nor just before it.
    """
    model = build_finder(settings, seed)
    optimizer = torch.optim.Adam(model.parameters(), settings.learning_rate)
    rng = np.random.default_rng([seed, 1])
    draw: Callable[[np.random.Generator, int], Any] = lambda generator, examples: draw_keywords(  # noqa: E731
        generator, examples, settings.length, settings.words
    )
    test = draw(np.random.default_rng(TEST_SEED), settings.test_examples)
    curve: Curve = {"step": []}
    for step in range(settings.steps + 1):
        if step % settings.every == 0:
            curve["step"].append(step)
            for name, value in measure_log_odds(model, *test).items():
                curve.setdefault(name, []).append(value)
        texts, labels, _ = draw(rng, settings.batch)
        model(input_ids=torch.from_numpy(texts + SPECIALS), labels=torch.from_numpy(labels)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return curve


def build_finder(settings: KeywordSettings, seed: int) -> ClassifierForSequenceClassification:
    """Build the classifier of the keyword task, with attention frozen uniform.

    Its encoder reads one way: only then does the last position know of all words, as eq. 25 has it.
    """
    form = ClassifierSettings(
        width=settings.width,
        embedding_width=settings.width,
        bidirectional=False,
        alignment="uniform",
        dropout=0.0,
        layers=1,
    )
    torch.manual_seed(seed)
    config = ClassifierConfig(**asdict(form), vocab_size=settings.words + SPECIALS, pad_token_id=PAD, num_labels=2)
    model = ClassifierForSequenceClassification(config)
    if settings.words < settings.width:
        read_one_hot(model.encoder)
    return model


@torch.no_grad()
def measure_log_odds(
    model: ClassifierForSequenceClassification,
    texts: Int[np.ndarray, "example position"],
    labels: Int[np.ndarray, " example"],
    positions: Int[np.ndarray, " example"],
) -> dict[str, float]:
    """Return the means of the four log-odds, and the accuracy on all texts."""
    ids = torch.from_numpy(texts + SPECIALS)
    by_position = torch.cat(list(model.logits_by_position(ids, torch.ones_like(ids))), 1)
    odds = (by_position[..., 1] - by_position[..., 0]).numpy()  # (example, position)
    predicted = model(input_ids=ids).logits.argmax(-1).numpy()
    inner = np.flatnonzero((positions >= 0) & (positions < texts.shape[1] - 2))
    at = positions[inner]
    return {
        "keyword": float(odds[inner, at].mean()),
        "one behind": float(odds[inner, at + 1].mean()),
        "mean": float(odds[inner].mean()),
        "last": float(odds[inner, -1].mean()),
        "accuracy": float((predicted == labels).mean()),
    }
