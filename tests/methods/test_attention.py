"""Which rows, columns and heads of attention are read."""

from __future__ import annotations

import pytest
import torch
import zoo

from sightline.errors import InputError
from sightline.methods.attention import choose_head, read_layers
from sightline.methods.settings import LayerSettings


def test_heads_are_chosen_averaged_or_kept() -> None:
    scores = torch.arange(24.0).view(1, 3, 2, 4)
    for head in range(3):
        assert torch.equal(choose_head(scores, head), scores[:, head])
        assert torch.equal(choose_head(scores, head - 3), scores[:, head])
    assert torch.equal(choose_head(scores, "mean"), scores[:, 1])  # heads are 8 apart
    assert torch.equal(choose_head(scores, "all"), scores)
    for head in (3, -4):
        with pytest.raises(InputError, match=f"There is no head {head}: this layer has 3, numbered 0 to 2"):
            choose_head(scores, head)


def test_a_causal_classifier_reads_the_last_token() -> None:
    model = zoo.model("gpt2-classifier")
    batch = model.batch([model.encode(source, None) for source in zoo.SOURCES])
    lengths = batch.mask.sum(1)
    assert len(set(lengths.tolist())) > 1
    query = torch.arange(batch.ids.shape[1], dtype=torch.float32)
    scores = query[:, None].expand(len(batch), 2, -1, batch.ids.shape[1])
    rows = read_layers(model, LayerSettings(head="all")).rows_of(model, batch, scores)
    assert torch.equal(rows, (lengths - 1.0)[:, None, None, None].expand_as(rows))


def test_a_classifier_that_averages_its_states_reads_the_mean_of_its_rows() -> None:
    model = zoo.fresh("bert-classifier")
    model.module.config.classifier_pooling = "mean"  # as ModernBERT's may be
    batch = model.batch([model.encode(source, None) for source in zoo.SOURCES])
    query = torch.arange(batch.ids.shape[1], dtype=torch.float32)
    scores = query[:, None].expand(len(batch), 2, -1, batch.ids.shape[1])
    rows = read_layers(model, LayerSettings(head="all")).rows_of(model, batch, scores)
    means = (batch.mask.sum(1) - 1) / 2  # of 0, 1, ..., n - 1
    assert torch.equal(rows, means[:, None, None, None].expand(len(batch), 2, 1, batch.ids.shape[1]))


def test_the_real_columns_of_a_decoder_are_its_own_steps() -> None:
    model = zoo.model("marian")
    pairs = zip(zoo.SOURCES, zoo.TARGETS, strict=True)
    batch = model.batch([model.encode(source, target) for source, target in pairs])
    assert torch.equal(read_layers(model, LayerSettings()).real_columns(batch), batch.mask)
    real = read_layers(model, LayerSettings(kind="decoder")).real_columns(batch)
    for row, example in zip(real.tolist(), batch.examples, strict=True):
        steps = len(example.decoder_ids)
        assert row == [True] * steps + [False] * (len(row) - steps)
