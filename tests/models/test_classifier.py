"""The classifier against its equations, and what it never attends to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import zoo
from torch import Tensor

import sightline
from sightline.attend.projections import build_projection
from sightline.attend.watch import watch
from sightline.errors import InputError
from sightline.models.classifier import (
    ClassifierConfig,
    ClassifierForSequenceClassification,
    ClassifierSettings,
    build_classifier,
)

BEGIN, END = 2, 3
SIZE = {"vocab_size": 30, "width": 8, "embedding_width": 6, "unattended_ids": [BEGIN, END]}
FORMS = {
    "additive": ClassifierConfig(**SIZE),
    "mlp": ClassifierConfig(**SIZE, alignment="mlp"),
    "uniform": ClassifierConfig(**SIZE, alignment="uniform"),
    "last": ClassifierConfig(**SIZE, alignment="last", projection="sparsemax"),
    "additive sparse": ClassifierConfig(**SIZE, projection="sparsegen:0.5", num_labels=4),
    "transformer dot": ClassifierConfig(**SIZE, encoder="transformer", layers=2, alignment="dot"),
    "transformer additive": ClassifierConfig(**SIZE, encoder="transformer", layers=2, projection="entmax:1.5"),
}
EVERY_FORM = pytest.mark.parametrize("form", FORMS)


def build(form: str) -> ClassifierForSequenceClassification:
    torch.manual_seed(0)
    model = ClassifierForSequenceClassification(FORMS[form]).eval()
    with torch.no_grad():
        for parameter in model.attention.parameters():
            parameter.mul_(4)  # far enough from uniform that projections differ
    return model


def some_batch() -> tuple[Tensor, Tensor]:
    ids = torch.tensor([[BEGIN, 9, 4, 17, 5, END], [BEGIN, 8, 7, END, 0, 0], [BEGIN, 6, END, 0, 0, 0]])
    return ids, (ids != 0).long()


def literal_weights(model: ClassifierForSequenceClassification, states: Tensor, attended: list[int]) -> Tensor:
    """Return the weights over one text's attended positions, score by score."""
    attention, config = model.attention, model.config
    scores = []
    for position in attended:
        state = states[position]
        if config.alignment == "additive":
            scores.append(attention.score.weight[0] @ (attention.hidden.weight @ state + attention.hidden.bias).tanh())
        elif config.alignment == "mlp":
            hidden = (attention.hidden.weight @ state + attention.hidden.bias).clamp(min=0)
            scores.append(attention.score.weight[0] @ hidden)
        elif config.alignment == "dot":
            scores.append(attention.score.weight[0] @ state / len(state) ** 0.5)
        elif config.alignment == "last":
            scores.append(torch.tensor(0.0 if position == max(attended) else -torch.inf))
        else:
            scores.append(torch.tensor(0.0))
    return build_projection(config.projection)(torch.stack(scores))


@EVERY_FORM
@torch.no_grad()
def test_weights_and_logits_by_the_equations(form: str) -> None:
    model = build(form)
    ids, mask = some_batch()
    with watch(model) as seen:
        logits = model(ids, mask).logits
    recorded = seen[model.attention].weights
    assert recorded.shape == (3, 1, 1, 6)
    for row, length in enumerate(mask.sum(1).tolist()):
        states = model.encoder(input_ids=ids[row : row + 1, :length], attention_mask=mask[row : row + 1, :length])[0][0]
        attended = list(range(1, length - 1))
        weights = literal_weights(model, states, attended)
        expected = torch.zeros(6)
        expected[attended] = weights
        torch.testing.assert_close(recorded[row, 0, 0], expected, atol=1e-5, rtol=1e-4)
        context = sum(weight * states[position] for weight, position in zip(weights, attended, strict=True))
        torch.testing.assert_close(
            logits[row], model.out_proj.weight @ context + model.out_proj.bias, atol=1e-5, rtol=1e-4
        )


@EVERY_FORM
@torch.no_grad()
def test_padding_changes_nothing(form: str) -> None:
    model = build(form)
    ids, mask = some_batch()
    logits = model(ids, mask).logits
    for row, length in enumerate(mask.sum(1).tolist()):
        torch.testing.assert_close(model(ids[row : row + 1, :length]).logits[0], logits[row], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(model(ids + 11 * (1 - mask), mask).logits, logits, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_text_of_nothing_but_begin_and_end() -> None:
    model = build("additive")
    with watch(model) as seen:
        logits = model(torch.tensor([[BEGIN, END, 0]]), torch.tensor([[1, 1, 0]])).logits
    assert logits.isfinite().all()
    weights = seen[model.attention].weights[0, 0, 0]
    assert weights[2] == 0
    assert weights.sum() == pytest.approx(1)


@EVERY_FORM
def test_one_step_changes_every_parameter(form: str) -> None:
    model = build(form).train()
    ids, mask = some_batch()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    model(ids, mask, labels=torch.tensor([0, 1, 0])).loss.backward()
    torch.optim.SGD(model.parameters(), lr=10.0).step()
    unchanged = {name for name, parameter in model.named_parameters() if torch.equal(parameter, before[name])}
    # A key's bias adds the same to all scores of a query, which no softmax shows.
    assert {name for name in unchanged if not name.endswith("key.bias")} == set()


@EVERY_FORM
@torch.no_grad()
def test_saved_and_loaded_it_is_the_same(form: str, tmp_path: Path) -> None:
    model = build(form)
    ids, mask = some_batch()
    model.save_pretrained(tmp_path)
    loaded = ClassifierForSequenceClassification.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(loaded(ids, mask).logits, model(ids, mask).logits)


@pytest.mark.parametrize(
    ("encoder", "alignment", "projection"),
    [("lstm", "additive", "softmax"), ("lstm", "mlp", "sparsemax"), ("transformer", "dot", "softmax")],
)
def test_learns_which_word_decides(encoder: str, alignment: str, projection: str) -> None:
    """A text is positive if it has the word 5: the label is learned, and attention finds the word."""
    torch.manual_seed(0)
    settings = {"encoder": encoder, "alignment": alignment, "projection": projection, "dropout": 0.0}
    model = ClassifierForSequenceClassification(
        ClassifierConfig(vocab_size=20, width=16, embedding_width=16, layers=1, **settings)
    )
    ids = torch.randint(6, 20, (64, 10))
    labels = torch.arange(64) % 2
    places = torch.randint(0, 10, (64,))
    ids[labels == 1, places[labels == 1]] = 5
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        loss = model(ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad(), watch(model) as seen:
        logits = model(ids).logits
    assert (logits.argmax(-1) == labels).all()
    if encoder == "lstm":
        found = seen[model.attention].weights[:, 0, 0].argmax(-1)
        # States also hold what stands beside their word.
        assert ((found - places).abs() <= 1)[labels == 1].float().mean() > 0.9


def test_the_size_is_the_papers() -> None:
    """Snell et al. name 1,274,882 parameters without embeddings.

    They have one output where we have two (513 more), and a bias of the scores, which no softmax shows (1 less).
    """
    model = ClassifierForSequenceClassification(ClassifierConfig(vocab_size=10, width=256, alignment="mlp"))
    embeddings = model.get_input_embeddings().weight.numel()
    assert sum(parameter.numel() for parameter in model.parameters()) - embeddings == 1_274_882 + 513 - 1


def test_built_for_a_tokenizer_and_explained() -> None:
    tokenizer = zoo.bert_tokenizer()
    model = build_classifier(ClassifierSettings(width=8), tokenizer, ["bad", "good"])
    assert tokenizer.unk_token_id not in model.config.unattended_ids
    loaded = sightline.load(model.eval(), tokenizer)
    (why,) = sightline.explain(loaded, ["The cat sleeps."], ["good"])
    assert why.axes == ("layer",)
    assert why.scores.shape == (1, 1, len(why.source))
    assert why.scores[0, 0, 0] == why.scores[0, 0, -1] == 0  # [CLS] and [SEP]
    assert why.scores.sum() == pytest.approx(1)
    norms = sightline.explain(loaded, "The cat sleeps.", "good", method="norms")
    assert norms.scores.shape == why.scores.shape


def test_mistakes() -> None:
    with pytest.raises(InputError, match="There is no projection 'sparsmax'"):
        ClassifierSettings(projection="sparsmax")
    with pytest.raises(InputError, match="width is 0"):
        ClassifierSettings(width=0)
