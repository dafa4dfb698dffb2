"""Words: every piece goes to the word it came from, whatever the tokenizer."""

import time

import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import InputError
from sightline.text.words import encode, split_words, tokens_of_ids, word_part

TEXTS = zoo.SOURCES + zoo.TARGETS + ["the committee's  dogs, (see: cats!) don't sing", "a-b c/d e.f", "éàü çñ"]


@pytest.mark.parametrize("name", zoo.ZOO)
@pytest.mark.parametrize("text", TEXTS)
def test_pieces_spell_their_words(name: str, text: str) -> None:
    tokenizer = zoo.model(name).tokenizer
    words = split_words(text, "source")
    encoded = encode(tokenizer, [word_part(words)])
    assert list(encoded.ids) == tokenizer(" ".join(words))["input_ids"]
    for number, word in enumerate(words):
        ids = [i for i, owner in zip(encoded.ids, encoded.word_ids, strict=True) if owner == number]
        spelled = tokenizer.decode(ids, clean_up_tokenization_spaces=False).replace(" ", "")
        known = tokenizer.unk_token_id is None or tokenizer.unk_token_id not in ids
        if known:
            plain = tokenizer.decode(tokenizer(word, add_special_tokens=False)["input_ids"])
            assert spelled == plain.replace(" ", "")


@pytest.mark.parametrize("name", ["marian", "m2m100", "llama", "gpt2", "bert-filler", "t5"])
@pytest.mark.parametrize("text", zoo.TARGETS)
def test_generated_ids_find_the_same_words_as_text(name: str, text: str) -> None:
    tokenizer = zoo.model(name).tokenizer
    words = split_words(text.lower(), "target")
    encoded = encode(tokenizer, [word_part(words)])
    tokens = tokens_of_ids(tokenizer, encoded.ids)
    if tokenizer.unk_token_id not in encoded.ids and name != "bert-filler":
        assert tokens.words == words
        assert tokens.word_ids == encoded.word_ids


@given(st.lists(st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=6), min_size=1, max_size=6))
def test_byte_level_words_of_any_script(words: list[str]) -> None:
    words = [word for word in words if word.split() == [word]] or ["x"]
    encoded = encode(zoo.model("gpt2").tokenizer, [word_part(tuple(words))])
    assert sorted(set(encoded.word_ids)) == list(range(len(words)))
    assert list(encoded.word_ids) == sorted(encoded.word_ids)


def test_words_that_the_user_split() -> None:
    assert split_words(["don't", "go"], "source") == ("don't", "go")
    assert split_words(" don't  go\n", "source") == ("don't", "go")
    for bad in ([""], ["two words"], ["a", "\t"]):
        with pytest.raises(InputError, match="neither empty nor hold white space"):
            split_words(bad, "source")
    with pytest.raises(InputError, match="source 3 is empty"):
        split_words("  ", "source 3")


def test_too_many_words_are_refused_at_once() -> None:
    before = time.process_time()
    with pytest.raises(InputError, match="The source 2 has 200,000 words, and a text may have 10,000: split it"):
        split_words("a " * 200_000, "source 2")
    assert time.process_time() - before < 1
    assert len(split_words("a " * 10_000, "source")) == 10_000


@pytest.mark.parametrize("name", ["gpt2", "marian"])
def test_the_search_for_the_word_of_a_piece_is_linear(name: str) -> None:
    words = ("cat",) * 10_000
    tokenizer = zoo.model(name).tokenizer
    before = time.process_time()
    encoded = encode(tokenizer, [word_part(words)])
    assert time.process_time() - before < 5
    assert set(encoded.word_ids) - {None} == set(range(10_000))


def test_a_tokenizer_that_joins_words_is_refused() -> None:
    from tokenizers import Tokenizer, models, trainers
    from transformers import PreTrainedTokenizerFast

    joined = Tokenizer(models.BPE(unk_token="?"))  # no pre-tokenizer: pieces cross white space
    joined.train_from_iterator(
        ["of the of the of the"] * 50, trainers.BpeTrainer(special_tokens=["?"], show_progress=False)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=joined, unk_token="?")
    with pytest.raises(InputError, match="across a word boundary"):
        encode(tokenizer, [word_part(("of", "the"))])


def test_a_slow_tokenizer_that_joins_words_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = zoo.marian_tokenizer()
    plain = type(tokenizer).__call__

    def merging(self, text=None, **more):
        encoding = plain(self, text, **more)
        if text and " " in text:
            encoding["input_ids"] = encoding["input_ids"][::-1]
        return encoding

    monkeypatch.setattr(type(tokenizer), "__call__", merging)
    with pytest.raises(InputError, match="does not keep the words"):
        encode(tokenizer, [word_part(("The", "cat"))])
