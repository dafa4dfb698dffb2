"""Erasure against a whole pass for every input taken away and every output."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import zoo
from methods.literal import close, embeddings, example_of, output_number

import sightline
from sightline.errors import InputError


def explained(name: str, **settings):
    target = zoo.targets(name)
    return sightline.explain(zoo.precise(name), zoo.texts(name)[0], target and target[0], **settings)


def numbers(model, example, of: str) -> torch.Tensor:
    batch = model.batch([example])
    with torch.no_grad():
        return torch.stack([output_number(model, batch, output, of) for output in range(len(example.outputs))])


@pytest.mark.parametrize("name", ["marian", "t5", "m2m100", "bert-classifier", "roberta-classifier"])
def test_deletion_of_a_source_token(name: str) -> None:
    model, example = example_of(name)
    whole = numbers(model, example, "probability")
    why = explained(name, method="erasure")
    signed = explained(name, method="erasure", signed=True, of="log_probability")
    log_whole = numbers(model, example, "log_probability")
    for column, word in enumerate(example.source.word_ids):
        if word is None:
            assert (why.scores[:, column] == 0).all()
            continue
        without = dataclasses.replace(example, ids=example.ids[:column] + example.ids[column + 1 :])
        close(why.scores[:, column], (whole - numbers(model, without, "probability")).abs())
        close(signed.scores[:, column], log_whole - numbers(model, without, "log_probability"))


def test_a_source_of_one_word_can_be_without_it() -> None:
    model = zoo.precise("marian")
    example = model.encode("the", "el gato")
    assert len(example.ids) == 2  # the word and the end
    why = sightline.explain(model, "the", "el gato", method="erasure")
    without = dataclasses.replace(example, ids=example.ids[1:])
    close(why.scores[:, 0], (numbers(model, example, "probability") - numbers(model, without, "probability")).abs())


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_deletion_in_a_prompt_and_its_continuation(name: str) -> None:
    """The text without the token is a prompt and a continuation of their own; outputs before it cannot change."""
    model, example = example_of(name)
    why = explained(name, method="erasure", of="log_probability", signed=True)
    start = len(example.source)
    for column in range(1, start + len(example.prefix)):
        ids = example.ids[:column] + example.ids[column + 1 :]
        with torch.no_grad():
            log_probs = model.module(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
            whole = model.module(input_ids=torch.tensor([example.ids])).logits[0].log_softmax(-1)
        for output, (token, row) in enumerate(zip(example.outputs, example.rows, strict=True)):
            shifted = row - 1 if row >= column else row
            expected = whole[row, token] - log_probs[shifted, token]
            assert why.scores[output, column] == pytest.approx(expected.item(), rel=1e-6, abs=1e-9)
            if row < column:
                assert why.scores[output, column] == pytest.approx(0, abs=1e-9)


def test_deletion_around_gaps() -> None:
    model, example = example_of("bert-filler", 1)
    why = sightline.explain(model, zoo.texts("bert-filler")[1], method="erasure")
    whole = numbers(model, example, "probability")
    gaps = list(example.label_rows)
    assert len(gaps) == 2
    assert (why.scores[:, gaps] == 0).all()
    column = gaps[0] + 1
    ids = example.ids[:column] + example.ids[column + 1 :]
    moved = dataclasses.replace(example, ids=ids, label_rows=(gaps[0], gaps[1] - 1))
    close(why.scores[:, column], (whole - numbers(model, moved, "probability")).abs())


@pytest.mark.parametrize("how", ["zero", "unknown"])
@pytest.mark.parametrize("name", ["marian", "bart", "bert-classifier"])
def test_replaced_embeddings(name: str, how: str) -> None:
    model, example = example_of(name)
    whole = numbers(model, example, "probability")
    prefix = {"prefix": True} if model.task == "translate" else {}
    why = explained(name, method="erasure", how=how, **prefix)
    sides = [("source", 0, len(example.ids))]
    if prefix:
        sides.append(("prefix", len(example.ids), len(example.decoder_ids)))
    for side, offset, length in sides:
        module = model.embedding_sites[side].module
        unknown = module(torch.tensor([model.tokenizer.unk_token_id]))[0]
        for position in range(length):

            def change(
                embedding: torch.Tensor, position: int = position, unknown: torch.Tensor = unknown
            ) -> torch.Tensor:
                embedding = embedding.clone()
                embedding[:, position] = 0 if how == "zero" else unknown
                return embedding

            ids = example.ids if side == "source" else example.decoder_ids
            if ids[position] == model.tokenizer.eos_token_id:
                assert (why.scores[:, offset + position] == 0).all()
                continue
            with embeddings(module, change):
                without = numbers(model, example, "probability")
            close(why.scores[:, offset + position], (whole - without).abs())


@pytest.mark.parametrize("name", ["marian", "t5"])
def test_a_state_taken_away(name: str) -> None:
    model, example = example_of(name)
    whole = numbers(model, example, "probability")
    why = explained(name, method="hidden_erasure")
    batch = model.batch([example])
    with torch.no_grad():
        states = model.module.get_encoder()(input_ids=batch.ids)
        for column in range(len(example.ids)):
            mask = torch.ones_like(batch.ids)
            mask[:, column] = 0
            logits = model.module(
                encoder_outputs=states, attention_mask=mask, decoder_input_ids=batch.decoder_ids
            ).logits[0]
            left = logits.softmax(-1)[torch.arange(len(example.outputs)), list(example.outputs)]
            close(why.scores[:, column], (whole - left).abs())


def test_a_forbidden_output_gives_no_nan() -> None:
    model = zoo.fresh("marian")
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    model.module.final_logits_bias[0, example.labels[0]] = -torch.inf
    for method in ("erasure", "gradient", "word_saliency"):
        why = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0], method=method, of="log_probability")
        assert np.isfinite(why.scores).all()


def test_ways_are_checked() -> None:
    with pytest.raises(InputError, match="no way to erase 'drop'"):
        explained("marian", method="erasure", how="drop")
    with pytest.raises(InputError, match="no mask token"):
        explained("marian", method="erasure", how="mask")
    with pytest.raises(InputError, match="no cross attention"):
        explained("gpt2", method="hidden_erasure")
