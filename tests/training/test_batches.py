"""Batches: every pair once an epoch, within the size, the same from the same seed, continued anywhere."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.models.marian.modeling_marian import shift_tokens_right

from sightline.errors import InputError
from sightline.training.batches import IGNORED, EncodedPairs, Ragged, batches_from, encode_pairs, epoch_batches
from sightline.training.vocabulary import train_tokenizer

rows = st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=9), min_size=1, max_size=30)


@st.composite
def encoded(draw: Any) -> EncodedPairs:
    source = draw(rows)
    target = draw(
        st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=9), min_size=len(source), max_size=len(source))
    )
    return EncodedPairs(Ragged.of(source), Ragged.of(target), pad_id=0, start_id=0)


@settings(max_examples=40)
@given(rows, st.data())
def test_padded_rows_are_the_rows(rows: list[list[int]], data: Any) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=5))
    padded = Ragged.of(rows).padded(np.array(chosen), -1)
    width = max(len(rows[i]) for i in chosen)
    assert padded.tolist() == [rows[i] + [-1] * (width - len(rows[i])) for i in chosen]


@settings(max_examples=40)
@given(encoded())
def test_tensors_are_shifted_as_the_model_shifts_labels(pairs: EncodedPairs) -> None:
    tensors = pairs.tensors(np.arange(len(pairs)), torch.device("cpu"))
    assert torch.equal(tensors["decoder_input_ids"], shift_tokens_right(tensors["labels"], 0, 0))
    assert torch.equal(tensors["attention_mask"].bool(), tensors["input_ids"] != 0)
    assert int((tensors["labels"] != IGNORED).sum()) == pairs.target_tokens(np.arange(len(pairs)))


@settings(max_examples=40)
@given(encoded(), st.integers(1, 60), st.integers(0, 5), st.integers(0, 3))
def test_an_epoch_has_every_pair_once_in_batches_within_the_size(
    pairs: EncodedPairs, batch_tokens: int, seed: int, epoch: int
) -> None:
    batches = epoch_batches(pairs, batch_tokens, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
    widths = np.maximum(pairs.source.lengths, pairs.target.lengths)
    assert all(len(batch) == 1 or len(batch) * widths[batch].max() <= batch_tokens for batch in batches)
    again = epoch_batches(pairs, batch_tokens, seed, epoch)
    assert [batch.tolist() for batch in batches] == [batch.tolist() for batch in again]


@settings(max_examples=40)
@given(encoded(), st.integers(0, 40))
def test_batches_go_on_from_any_position(pairs: EncodedPairs, done: int) -> None:
    whole = [
        (epoch, number, rows.tolist()) for epoch, number, rows in islice(batches_from(pairs, 20, 1, 0, 0), done + 5)
    ]
    epoch, number = (0, 0) if done == 0 else whole[done - 1][:2]
    rest = [
        (epoch, number, rows.tolist()) for epoch, number, rows in islice(batches_from(pairs, 20, 1, epoch, number), 5)
    ]
    assert rest == whole[done:]


def test_epochs_differ_and_like_lengths_stand_together() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 40, 3000)
    rows = Ragged.of([[1] * length for length in lengths])
    pairs = EncodedPairs(rows, Ragged.of([[1] * max(1, length + rng.integers(-2, 3)) for length in lengths]), 0, 0)
    first, second = (epoch_batches(pairs, 500, 1, epoch) for epoch in (0, 1))
    assert {tuple(sorted(batch)) for batch in first} != {tuple(sorted(batch)) for batch in second}
    for side in (pairs.source, pairs.target):
        padded = sum(len(batch) * side.lengths[batch].max() for batch in first)
        assert side.lengths.sum() / padded > 0.93
    order = [pairs.source.lengths[batch].mean() for batch in first]
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.2, "short batches do not come first"


def test_pairs_are_encoded_both_ways_with_the_language_of_the_target() -> None:
    pairs = [("the cat", "el gato"), ("a dog", "un perro")]
    tokenizer = train_tokenizer([side for pair in pairs for side in pair] * 3, 80, 16, ("en", "es"))
    both, kept = encode_pairs(pairs, tokenizer, 16, ("en", "es"))
    assert kept == pairs
    texts = []
    for row in range(len(both)):
        tensors = both.tensors(np.array([row]), torch.device("cpu"))
        texts.append((tokenizer.decode(tensors["input_ids"][0]), tokenizer.decode(tensors["labels"][0])))
    assert texts == [
        (">>es<< the cat</s>", "el gato</s>"),
        (">>es<< a dog</s>", "un perro</s>"),
        (">>en<< el gato</s>", "the cat</s>"),
        (">>en<< un perro</s>", "a dog</s>"),
    ]


def test_a_pair_of_too_many_pieces_is_left_out() -> None:
    pairs = [("a b c d", "a"), ("a", "a b"), ("a", "a b c d")]
    tokenizer = train_tokenizer(["a b c d"] * 3, 20, 16)
    encoded, kept = encode_pairs(pairs, tokenizer, 3)
    assert kept == [("a", "a b")]
    assert len(encoded) == 1
    with pytest.raises(InputError, match="Every pair has more than 1 pieces on a side"):
        encode_pairs(pairs, tokenizer, 1)


def test_a_fingerprint_tells_texts_apart() -> None:
    one, same, other = (
        EncodedPairs(Ragged.of(rows), Ragged.of([[1], [2]]), 0, 0)
        for rows in ([[1, 2], [3]], [[1, 2], [3]], [[1], [2, 3]])
    )
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
