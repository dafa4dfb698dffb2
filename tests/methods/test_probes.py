"""The lexical probe against its definition: the whole network, with one encoder state in place of the context."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import zoo
from torch import Tensor

import sightline
from sightline.attend.watch import Change, watch
from sightline.errors import InputError
from sightline.methods.probes import best_attention, lexical_probe
from sightline.methods.settings import LexicalProbeSettings, NoSettings
from sightline.models.classifier import ClassifierSettings, build_classifier
from sightline.models.loaded import LoadedModel
from sightline.models.lstm import LstmForConditionalGeneration, LstmSettings, build_lstm

READABLE = ["lstm", "lstm-input-feeding", "lstm-classifier", "transformer-classifier"]


def batch_of(model: LoadedModel):
    targets = ["fair", "good", "bad"] if model.task == "classify" else zoo.TARGETS[:3]
    return model.batch([model.encode(s, t) for s, t in zip(zoo.SOURCES[:3], targets, strict=True)])


def probabilities(logits: Tensor, batch) -> Tensor:
    """Return the probability of each output from logits (batch, target, vocabulary)."""
    return logits.softmax(-1).gather(-1, batch.outputs[..., None])[..., 0]


@torch.no_grad()
def by_attending_to_one(model: LoadedModel, batch, position: int) -> Tensor:
    """Run the model with all attention on one position. With input feeding, that would change later states too."""
    layer = model.layers("cross")[0].module
    alone = Change(weights=lambda _, weights: torch.zeros_like(weights).index_fill(-1, torch.tensor([position]), 1.0))
    with watch(model.module, [layer], change=alone):
        return probabilities(model.logits(batch), batch)


@torch.no_grad()
def by_the_network(model: LoadedModel, batch, position: int) -> Tensor:
    """Return N([h_l, s_t]) from the network's parts, with the real decoder states, one step at a time."""
    module: LstmForConditionalGeneration = model.module
    decoder = module.model.decoder
    states: list[Tensor] = []
    hook = decoder.lstm.register_forward_hook(lambda _module, _args, output: states.append(output[0]))
    model.run(batch)
    hook.remove()
    context = model.run_encoder(batch).states[:, position]
    if decoder.attention.out_proj is not None:
        context = decoder.attention.out_proj(context)
    steps = [step for given in states for step in given.unbind(1)]
    activation = {"relu": torch.relu, "tanh": torch.tanh}[module.config.combination]
    logits = [module.lm_head(activation(decoder.hidden(torch.cat([context, state], -1)))) for state in steps]
    return probabilities(torch.stack(logits, 1), batch)


@pytest.mark.parametrize("name", READABLE)
def test_one_state_in_place_of_the_context(name: str) -> None:
    model = zoo.model(name)
    batch = batch_of(model)
    oracle = by_attending_to_one if name != "lstm-input-feeding" else by_the_network
    scores = lexical_probe(model, batch, LexicalProbeSettings()).scores
    for position in range(batch.ids.shape[1]):
        real = batch.row_mask & batch.mask[:, position, None]
        expected = oracle(model, batch, position)
        torch.testing.assert_close(scores[..., position] * real, expected * real, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("attention", ["learned", "uniform"])
@pytest.mark.parametrize("merge", ["sum", "mean"])
def test_all_heads_attend_to_the_one_state(merge: str, attention: str) -> None:
    torch.manual_seed(0)
    tokenizer = zoo.marian_tokenizer()
    form = LstmSettings(width=8, heads=3, merge=merge, attention=attention, combination="linear")
    module = build_lstm(form, tokenizer).eval()
    model = sightline.load(module, tokenizer)
    batch = batch_of(model)
    scores = lexical_probe(model, batch, LexicalProbeSettings()).scores
    for position in range(3):
        expected = by_attending_to_one(model, batch, position)
        torch.testing.assert_close((scores[..., position] - expected) * batch.row_mask, torch.zeros_like(expected))


@pytest.mark.parametrize("name", READABLE)
def test_the_logit_is_the_probabilitys(name: str) -> None:
    model = zoo.model(name)
    batch = batch_of(model)
    beta = lexical_probe(model, batch, LexicalProbeSettings()).scores.double()
    logit = lexical_probe(model, batch, LexicalProbeSettings(of="logit")).scores.double()
    real = (batch.row_mask[..., None] & batch.mask[:, None]) & (beta < 0.99)
    torch.testing.assert_close(torch.logit(beta)[real], logit[real], atol=1e-3, rtol=1e-3)


def test_two_labels() -> None:
    """Snell et al., equations 8, 9 and 12: logits of the probe are (2y - 1) W' h_l, and their mean is the model's."""
    torch.manual_seed(0)
    tokenizer = zoo.bert_tokenizer()
    module = build_classifier(ClassifierSettings(width=8, alignment="mlp"), tokenizer, ["negative", "positive"]).eval()
    model = sightline.load(module, tokenizer)
    for label, sign in (("negative", -1), ("positive", 1)):
        batch = model.batch([model.encode("The cat sees the bird.", label)])
        (logits,) = lexical_probe(model, batch, LexicalProbeSettings(of="logit")).scores
        states = model.run_encoder(batch).states[0]
        weight = module.out_proj.weight[1] - module.out_proj.weight[0]
        bias = module.out_proj.bias[1] - module.out_proj.bias[0]
        torch.testing.assert_close(logits[0], sign * (states @ weight + bias), atol=1e-5, rtol=1e-4)
        with watch(module) as seen:
            correct = model.log_probs(batch).exp()[0, 0]
        alpha = seen[module.attention].weights[0, 0, 0]
        torch.testing.assert_close(correct, (alpha @ logits[0]).sigmoid())


@pytest.mark.parametrize("name", ["lstm-linear", "lstm-classifier", "transformer-classifier"])
def test_no_attention_is_better_than_the_best(name: str) -> None:
    """With the best weights in place of its own, the model gives its outputs at least as well (appendix A.1)."""
    model = zoo.precise(name)
    batch = batch_of(model)
    best = best_attention(model, batch, NoSettings()).scores  # (batch, target, source)
    layer = model.layers("cross")[0].module
    steps = 1 if batch.decoder_ids is None else batch.decoder_ids.shape[1]
    attended = best.new_zeros(len(batch), 1, steps, batch.mask.shape[1])  # (batch, head, target, source)
    for number, real in enumerate(batch.row_mask):
        attended[number, 0, batch.rows[number, real]] = best[number, real]
    with torch.no_grad():
        own = model.log_probs(batch)
        with watch(model.module, [layer], change=Change(weights=lambda _, weights: attended)):
            improved = model.log_probs(batch)
    assert ((improved >= own - 1e-4) | ~batch.row_mask).all()
    beta = lexical_probe(model, batch, LexicalProbeSettings()).scores
    alone = torch.where(batch.mask[:, None], beta, 0).amax(-1).log()
    assert ((improved >= alone - 1e-4) | ~batch.row_mask).all()


@pytest.mark.parametrize("name", ["lstm-linear", "lstm-classifier", "transformer-classifier"])
@torch.no_grad()
def test_what_the_best_attention_achieves_does_not_depend_on_the_batch(name: str) -> None:
    """Weights may: where two states serve alike, rounding decides between them."""
    model = zoo.model(name)
    several = batch_of(model)
    together = best_attention(model, several, NoSettings()).scores
    for number, example in enumerate(several.examples):
        batch = model.batch([example])
        alone = best_attention(model, batch, NoSettings()).scores[0]  # (target, source)
        logits = torch.stack(list(model.module.logits_by_position(**model.inputs(batch))), 2)[0, batch.rows[0]]
        rows, columns = alone.shape
        losses = [
            -(weights[:, :, None] * logits).sum(1).log_softmax(-1).gather(1, batch.outputs[0][:, None])[:, 0]
            for weights in (alone, together[number, :rows, :columns])
        ]
        np.testing.assert_allclose(*losses, atol=1e-4)


def test_the_best_attention_needs_a_linear_output() -> None:
    model = zoo.model("lstm")
    with pytest.raises(InputError, match="hidden layer after its attention"):
        best_attention(model, batch_of(model), NoSettings())


def test_padding_has_no_columns() -> None:
    model = zoo.model("lstm")
    together = lexical_probe(model, batch_of(model), LexicalProbeSettings()).scores
    example = model.encode(zoo.SOURCES[2], zoo.TARGETS[2])
    alone = lexical_probe(model, model.batch([example]), LexicalProbeSettings()).scores
    _, rows, columns = alone.shape
    np.testing.assert_allclose(together[2, :rows, :columns], alone[0], atol=1e-6)
    assert (together[2, :, columns:] == 0).all()


@pytest.mark.parametrize("name", ["marian", "conv", "bert-classifier", "gpt2"])
def test_models_without_this_reading(name: str) -> None:
    model = zoo.model(name)
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0] if model.task != "classify" else "LABEL_0")
    with pytest.raises(InputError, match="has no lexical probe"):
        lexical_probe(model, model.batch([example]), LexicalProbeSettings())


def test_an_unknown_quantity() -> None:
    with pytest.raises(InputError, match="There is no quantity 'logits'"):
        LexicalProbeSettings(of="logits")
