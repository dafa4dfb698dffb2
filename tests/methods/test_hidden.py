"""Gradients by and of encoder states against automatic differentiation, one entry at a time."""

from __future__ import annotations

import pytest
import torch
import zoo
from methods.literal import close, example_of

import sightline
from sightline.errors import InputError


@pytest.mark.parametrize("name", ["marian", "t5", "nllb"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_states_for_outputs(name: str, norm: str) -> None:
    model, example = example_of(name)
    batch = model.batch([example])
    with torch.no_grad():
        states = model.module.get_encoder()(input_ids=batch.ids)[0]

    def probabilities(states: torch.Tensor) -> torch.Tensor:
        logits = model.module(encoder_outputs=(states,), decoder_input_ids=batch.decoder_ids).logits[0]
        return logits.softmax(-1)[torch.arange(len(example.outputs)), list(example.outputs)]

    jacobian = torch.autograd.functional.jacobian(probabilities, states)[:, 0]
    expected = jacobian.abs().mean(-1) if norm == "l1" else jacobian.norm(dim=-1)
    why = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method="hidden_gradient", norm=norm)
    close(why.scores, expected)


@pytest.mark.parametrize("name", ["marian", "bert-filler", "distilbert-classifier"])
@pytest.mark.parametrize("toward", ["state", "jacobian"])
def test_inputs_for_states(name: str, toward: str) -> None:
    model, example = example_of(name)
    batch = model.batch([example])
    module = model.embedding_sites["source"].module
    scale = model.embedding_sites["source"].scale
    clean = module(batch.ids).detach() * scale

    def states_of(embedding: torch.Tensor) -> torch.Tensor:
        hook = module.register_forward_hook(lambda *_: embedding / scale)
        try:
            return model.run_encoder(batch).states[0]
        finally:
            hook.remove()

    if toward == "state":
        jacobian = torch.autograd.functional.jacobian(lambda e: states_of(e).norm(dim=-1), clean)[:, 0]
        expected = jacobian.norm(dim=-1)
    else:
        jacobian = torch.autograd.functional.jacobian(states_of, clean)[:, :, 0]  # (state, width, input, width)
        expected = jacobian.square().sum((1, 3)).sqrt()
    target = zoo.targets(name)
    why = sightline.explain(model, zoo.texts(name)[0], target and target[0], method="hidden_gradient", toward=toward)
    close(why.scores, expected)
    assert why.target == why.source


@pytest.mark.parametrize("name", ["roberta-classifier", "lstm-classifier", "transformer-classifier"])
def test_states_for_a_label(name: str) -> None:
    model, example = example_of(name)
    batch = model.batch([example])
    with torch.no_grad():
        states = model.last_stack(input_ids=batch.ids, attention_mask=batch.mask.long())[0]

    def probability(states: torch.Tensor) -> torch.Tensor:
        def put(_module, _args, output):
            output[next(iter(output))] = states
            return output

        hook = model.last_stack.register_forward_hook(put)
        try:
            logits = model.module(input_ids=batch.ids, attention_mask=batch.mask.long()).logits
            return logits.softmax(-1)[0, example.outputs[0]]
        finally:
            hook.remove()

    jacobian = torch.autograd.functional.jacobian(probability, states)[0]
    why = sightline.explain(model, zoo.texts(name)[0], method="hidden_gradient")
    close(why.scores[0], jacobian.norm(dim=-1))


def test_a_pooler_hides_the_states() -> None:
    with pytest.raises(InputError, match="does not read its label"):
        sightline.explain(zoo.precise("bert-classifier"), zoo.SOURCES[0], method="hidden_gradient")
