"""Texts of two segments: as the tokenizer separates them, with segment ids, through every method."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.attend.watch import watch
from sightline.errors import InputError
from sightline.models.loaded import LoadedModel

FIRST, SECOND = "The cat sleeps on the mat.", "A small dog sees the bird."
ENCODERS = ["bert-classifier", "roberta-classifier", "distilbert-classifier"]


def own_attention(model: LoadedModel, *segments: str) -> np.ndarray:
    """Ask transformers for the weights: its own call of the tokenizer, its own eager attention."""
    inputs = model.tokenizer(*segments, return_tensors="pt")
    if "Distil" in type(model.module).__name__:
        del inputs["token_type_ids"]
    model.module.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = model.module(**inputs, output_attentions=True).attentions
    return torch.stack(attentions)[:, 0].numpy()


@pytest.mark.parametrize("name", ENCODERS)
def test_attention_is_the_models_own(name: str) -> None:
    model = zoo.fresh(name)
    model.module.double()
    why = sightline.explain(model, (FIRST, SECOND), method="attention", kind="encoder", head="all")
    theirs = own_attention(model, FIRST, SECOND)
    np.testing.assert_allclose(why.scores, theirs, atol=1e-6)  # an attribution is float32
    with torch.no_grad(), watch(model.module) as seen:
        model.run(model.batch([model.encode((FIRST, SECOND), None)]))
    ours = np.stack([layer.seen_by(seen).weights[0].numpy() for layer in model.layers("encoder")])
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    if name == "bert-classifier":  # the segment ids matter, so that their absence would be noticed
        one_segment = own_attention(model, f"{FIRST} [SEP] {SECOND}")
        assert one_segment.shape == theirs.shape
        assert np.abs(one_segment - theirs).max() > 0.05


def test_a_batch_of_texts_with_one_and_two_segments() -> None:
    model = zoo.fresh("bert-classifier")
    texts = [FIRST, (FIRST, SECOND), (SECOND, FIRST + " " + FIRST)]
    together = sightline.explain(model, texts, kind="encoder", head="all")
    for text, why in zip(texts, together, strict=True):
        segments = text if isinstance(text, tuple) else (text,)
        np.testing.assert_allclose(why.scores, own_attention(model, *segments), atol=1e-5)


@pytest.mark.parametrize("name", ENCODERS)
def test_words_are_counted_through_and_separators_belong_to_none(name: str) -> None:
    tokens = zoo.model(name).encode((FIRST, SECOND.split()), None).source
    assert tokens.words == (*FIRST.split(), *SECOND.split())
    assert set(tokens.word_ids) - {None} == set(range(12))
    known = [word for word in tokens.word_ids if word is not None]
    assert known == sorted(known)
    last_of_first = max(i for i, word in enumerate(tokens.word_ids) if word == 5)
    assert tokens.word_ids[last_of_first + 1] is None
    assert tokens.word_ids[0] is None
    assert tokens.word_ids[-1] is None
    separators = [piece for piece, word in zip(tokens.pieces, tokens.word_ids, strict=True) if word is None]
    expected = {"roberta-classifier": ["<s>", "</s>", "</s>", "</s>"]}.get(name, ["[CLS]", "[SEP]", "[SEP]"])
    assert separators == expected


def test_a_tokenizer_without_offsets() -> None:
    from sightline.text.words import encode, word_part

    tokenizer = zoo.marian_tokenizer()
    first, second = ("The", "cat", "sleeps"), ("A", "dog")
    encoded = encode(tokenizer, [word_part(first)], [word_part(second)])
    assert list(encoded.ids) == tokenizer(" ".join(first), " ".join(second))["input_ids"]
    words = encoded.tokens(first + second)
    assert set(words.word_ids) - {None} == set(range(5))
    pieces = {w: [i for i, x in zip(encoded.ids, encoded.word_ids, strict=True) if x == w] for w in range(5)}
    for number, word in enumerate(first + second):
        assert pieces[number] == tokenizer(word, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("method", ["erasure", "gradient", "word_saliency", "integrated_gradients", "norms"])
def test_methods_keep_the_segments(method: str) -> None:
    """Another embedding of the second segment changes the scores, and would not if its ids were lost."""
    model = zoo.fresh("bert-classifier")
    before = sightline.explain(model, (FIRST, SECOND), "0", method=method)
    with torch.no_grad():
        table = model.module.base_model.embeddings.token_type_embeddings.weight
        table[1] = torch.linspace(-1, 1, len(table[1]))
    after = sightline.explain(model, (FIRST, SECOND), "0", method=method)
    assert before.source == after.source
    assert np.abs(before.scores - after.scores).max() > 1e-3


def test_deleting_a_word_deletes_its_segment_id() -> None:
    model = zoo.fresh("bert-classifier")
    example = model.with_output(model.encode((FIRST, SECOND), None), (0,))
    why = sightline.explain(model, (FIRST, SECOND), "0", method="erasure", how="delete", of="log_probability")
    place = next(i for i, word in enumerate(example.source.word_ids) if word == 3)  # in the first segment
    inputs = model.tokenizer(FIRST, SECOND, return_tensors="pt")
    kept = [i for i in range(len(example.ids)) if i != place]
    with torch.no_grad():
        whole = model.module(**inputs).logits.log_softmax(-1)[0, 0]
        rest = model.module(**{key: tensor[:, kept] for key, tensor in inputs.items()}).logits.log_softmax(-1)[0, 0]
    assert abs(why.scores[0, place]) == pytest.approx(abs(float(whole - rest)), abs=1e-5)


def test_faithfulness_takes_two_segments() -> None:
    (one,) = sightline.measure_faithfulness(zoo.model("bert-classifier"), [(FIRST, SECOND)], methods=["erasure"])
    assert one.method == "erasure"


def test_a_gap_in_the_second_segment() -> None:
    model = zoo.model("bert-filler")
    why = sightline.explain(model, (FIRST, "A small [MASK] sees the bird."), "dog", method="attention", layer=0)
    assert why.target.words == ("dog",)
    assert len(why.source.words) == 12


# What is refused


@pytest.mark.parametrize("text", ["The cat [SEP] sleeps", "[CLS] The cat", ("The cat", "the [SEP] dog")])
def test_separators_in_the_text_are_refused(text: str | tuple[str, str]) -> None:
    with pytest.raises(InputError, match=r"only the tokenizer may add: give two segments as a tuple \(first, second\)"):
        sightline.explain(zoo.model("bert-classifier"), text)


@pytest.mark.parametrize("name", ["marian", "gpt2"])
def test_models_that_read_one_text_refuse_two_segments(name: str) -> None:
    with pytest.raises(InputError, match="reads one text: two segments are for encoders"):
        sightline.explain(zoo.model(name), (FIRST, SECOND), "El gato")


def test_a_tuple_is_not_many_texts() -> None:
    model = zoo.model("bert-classifier")
    with pytest.raises(InputError, match="give many texts as a list"):
        sightline.explain(model, ("a", "b", "c"))
    with pytest.raises(InputError, match="give many texts as a list"):
        sightline.align(zoo.model("marian"), ("a", "b"), ("c", "d"))
    with pytest.raises(InputError, match="a tuple of 3"):
        sightline.explain(model, [("a", "b", "c")])
    with pytest.raises(InputError, match="second segment of source 2 is empty"):
        sightline.explain(model, [("a", "b"), ("c", " ")])
