"""The recurrent model against its equations, a sentence, a step and a head at a time."""

from __future__ import annotations

import pytest
import torch
import zoo
from torch import Tensor, nn

from sightline.attend.watch import Change, watch
from sightline.models.lstm import LstmConfig, LstmForConditionalGeneration, LstmSettings, build_lstm

SIZE = {"vocab_size": 30, "width": 8}
FORMS = {
    "snell": LstmConfig(**SIZE),
    "summed heads": LstmConfig(**SIZE, heads=3, layers=1),
    "mean heads": LstmConfig(**SIZE, heads=3, merge="mean", combination="tanh"),
    "linear": LstmConfig(**SIZE, combination="linear"),
    "uniform": LstmConfig(**SIZE, attention="uniform", bidirectional=False),
    "ding": LstmConfig(**SIZE, layers=1, bidirectional=False, input_feeding=True, combination="tanh", tied="none"),
    "feeding both ways": LstmConfig(**SIZE, heads=2, input_feeding=True),
}


def cell(lstm: nn.LSTM, suffix: str, inputs: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """Do one step of one LSTM layer (Hochreiter and Schmidhuber, with a forget gate)."""
    named = dict(lstm.named_parameters())
    gates = named[f"weight_ih_{suffix}"] @ inputs + named[f"bias_ih_{suffix}"]
    gates = gates + named[f"weight_hh_{suffix}"] @ hidden + named[f"bias_hh_{suffix}"]
    enter, forget, new, leave = gates.chunk(4)
    memory = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * memory.tanh(), memory


def encoded(model: LstmForConditionalGeneration, ids: list[int]) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
    """Return the encoder's states h_l of one sentence, and of each layer the state that the decoder starts from."""
    encoder, config = model.model.encoder, model.config
    states = [encoder.embed_tokens.weight[token] for token in ids]
    starts = []
    for layer in range(config.layers):
        outputs, finals = [], []
        for backward in range(1 + config.bidirectional):
            hidden = memory = torch.zeros(config.width)
            given = []
            for state in reversed(states) if backward else states:
                hidden, memory = cell(encoder.lstm, f"l{layer}" + "_reverse" * backward, state, hidden, memory)
                given.append(hidden)
            outputs.append(given[::-1] if backward else given)
            finals.append((hidden, memory))
        states = [torch.cat(parts) for parts in zip(*outputs, strict=True)]
        hiddens, memories = zip(*finals, strict=True)
        starts.append((sum(hiddens) / len(hiddens), sum(memories) / len(memories)))
    return states, starts


def literal(model: LstmForConditionalGeneration, ids: list[int], decoder_ids: list[int]) -> tuple[Tensor, Tensor]:
    """Return the logits (target, vocabulary) and weights (head, target, source) of one pair."""
    decoder, attention, config = model.model.decoder, model.model.decoder.attention, model.config
    sources, memories = encoded(model, ids)
    fed = torch.zeros(config.width)
    logits, weights = [], []
    for token in decoder_ids:
        state = decoder.embed_tokens.weight[token]
        if config.input_feeding:
            state = torch.cat([state, fed])
        for layer in range(config.layers):
            memories[layer] = cell(decoder.lstm, f"l{layer}", state, *memories[layer])
            state = memories[layer][0]
        contexts, step = [], []
        for head in range(config.heads):
            scores = torch.zeros(len(ids))
            if attention.query is not None:
                matrix = attention.query.weight.chunk(config.heads)[head]
                scores = torch.stack([state @ matrix.T @ source for source in sources])
            alpha = scores.exp() / scores.exp().sum()
            contexts.append(sum(weight * source for weight, source in zip(alpha, sources, strict=True)))
            step.append(alpha)
        context = sum(contexts) / (config.heads if config.merge == "mean" else 1)
        if attention.out_proj is not None:
            context = attention.out_proj(context)
        if config.combination == "linear":
            fed = context + state
        else:
            hidden = decoder.hidden(torch.cat([context, state]))
            fed = hidden.tanh() if config.combination == "tanh" else hidden.clamp(min=0)
        logits.append(model.lm_head(fed))
        weights.append(torch.stack(step))
    return torch.stack(logits), torch.stack(weights, 1)


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_logits_and_weights_by_the_equations(form: str) -> None:
    torch.manual_seed(0)
    model = LstmForConditionalGeneration(FORMS[form]).eval()
    ids = torch.tensor([[4, 9, 4, 17, 2, 1], [8, 3, 1, 0, 0, 0]])
    mask = (ids != 0).long()
    decoder_ids = torch.tensor([[0, 5, 6, 7], [0, 9, 9, 20]])
    with watch(model, record=("weights", "values")) as seen:
        logits = model(ids, mask, decoder_ids).logits
    record = seen[model.model.decoder.attention]
    for row, length in enumerate(mask.sum(1).tolist()):
        expected, weights = literal(model, ids[row, :length].tolist(), decoder_ids[row].tolist())
        torch.testing.assert_close(logits[row], expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(record.weights[row, ..., :length], weights, atol=1e-5, rtol=1e-5)
        assert (record.weights[row, ..., length:] == 0).all()
        states, _ = encoded(model, ids[row, :length].tolist())
        torch.testing.assert_close(record.values[row, 0, :length], torch.stack(states), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_changed_step_with_input_feeding_changes_the_next() -> None:
    """What a watch does to one target position reaches later ones, and no earlier ones."""
    torch.manual_seed(0)
    model = LstmForConditionalGeneration(FORMS["ding"]).eval()
    ids, decoder_ids = torch.tensor([[4, 9, 4, 17, 2, 1]]), torch.tensor([[0, 5, 6, 7]])

    def only_the_last_source_at_step_one(call, weights):
        return torch.zeros_like(weights).index_fill(-1, torch.tensor([5]), 1.0) if call.first == 1 else weights

    clean = model(ids, None, decoder_ids).logits[0]
    with watch(model, change=Change(weights=only_the_last_source_at_step_one)) as seen:
        changed = model(ids, None, decoder_ids).logits[0]
    assert seen[model.model.decoder.attention].weights[0, 0, 1].tolist() == [0, 0, 0, 0, 0, 1]
    same = [torch.allclose(one, other, atol=1e-5) for one, other in zip(clean, changed, strict=True)]
    assert same == [True, False, False, False]


def test_the_size_is_the_papers() -> None:
    """Snell et al. name 6,132,544 parameters without embeddings, for a vocabulary of 8,000.

    Of these, 8,000 are the bias of the output and 512 that of the attention's query, which equation 1 does not have.
    """
    model = LstmForConditionalGeneration(LstmConfig(vocab_size=8000))
    embeddings = model.get_input_embeddings().weight.numel()
    assert embeddings == 2_048_000
    assert sum(parameter.numel() for parameter in model.parameters()) - embeddings == 6_132_544 - 8_000 - 512


def test_built_for_a_tokenizer() -> None:
    tokenizer = zoo.marian_tokenizer()
    model = build_lstm(LstmSettings(width=8, max_positions=50), tokenizer)
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.decoder_start_token_id == tokenizer.pad_token_id
    generated = model.generate(torch.tensor([[5, 6, 0]]))
    assert generated.shape[1] <= 50
    assert tokenizer.pad_token_id not in generated[0, 1:].tolist()
