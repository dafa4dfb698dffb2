"""The tokenizer that is trained: words kept, both sides ended, the same every time, loadable."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from sightline.errors import InputError
from sightline.text.words import encode, tokens_of_ids, word_part
from sightline.training.vocabulary import train_tokenizer, train_two_sided_tokenizer

CORPUS = [
    "The cat sleeps on the mat, doesn't it?",
    "El gato duerme en la alfombra, ¿no?",
    "A well-known dog sees 25 cats.",
    "Un perro conocido ve 25 gatos.",
] * 3
TOKENIZER = train_tokenizer(CORPUS, 100, 64, ("en", "es"))


def test_the_vocabulary_has_the_size_asked_for_and_is_the_same_every_time() -> None:
    again = train_tokenizer(iter(CORPUS), 100, 64, ("en", "es"))
    assert len(TOKENIZER) == 100
    assert again.backend_tokenizer.to_str() == TOKENIZER.backend_tokenizer.to_str()


def test_source_and_target_end_with_the_end_token() -> None:
    source, target = TOKENIZER("The cat")["input_ids"], TOKENIZER(text_target="El gato")["input_ids"]
    assert source[-1] == target[-1] == TOKENIZER.eos_token_id
    assert TOKENIZER.pad_token_id == 0


words = st.lists(st.text("atehgocd.,'¿?25-żx", min_size=1, max_size=8), min_size=1, max_size=6)
spaces = st.sampled_from([" ", "  ", "\t", "\u00a0", "\n", "\u3000"])


@given(words, spaces)
def test_no_piece_crosses_white_space_and_every_word_has_pieces(words: list[str], space: str) -> None:
    text = space.join(words)
    spans = TOKENIZER(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    assert all(len(text[start:end].split()) <= 1 for start, end in spans), "a piece may begin with a space"
    encoded = encode(TOKENIZER, [word_part(tuple(words))])
    assert [word for word in encoded.word_ids if word is not None] == sorted(
        word for word in encoded.word_ids if word is not None
    )
    assert set(encoded.word_ids) == {*range(len(words)), None}


@pytest.mark.parametrize("text", CORPUS[:4])
def test_what_was_encoded_is_decoded_with_its_words(text: str) -> None:
    ids = TOKENIZER(text)["input_ids"]
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == text
    assert tokens_of_ids(TOKENIZER, ids).words == tuple(text.split())


def test_a_mark_is_one_piece_whether_the_text_is_split_at_it_or_not() -> None:
    tokenizer = train_tokenizer(["no , no ? ¿no? no, no?"] * 3, 100, 16)
    assert tokenizer.tokenize("no, no?") == ["▁no", ",", "▁no", "?"]
    assert tokenizer.tokenize("no , no ? ¿no?") == ["▁no", "▁,", "▁no", "▁?", "▁¿", "no", "?"]


def test_apostrophes_and_hyphens_do_not_split_a_word() -> None:
    assert not {"'", "-"} & set(TOKENIZER.tokenize("doesn't well-known"))


def test_a_language_token_is_one_special_piece_before_the_words() -> None:
    pieces = TOKENIZER.convert_ids_to_tokens(TOKENIZER(">>es<< The cat")["input_ids"])
    assert pieces == [">>es<<", *TOKENIZER.tokenize("The cat"), "</s>"]
    assert TOKENIZER.decode(TOKENIZER(">>es<< The cat")["input_ids"], skip_special_tokens=True) == "The cat"


def test_it_is_the_same_after_saving(tmp_path: Path) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    loaded: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.is_fast
    assert loaded.model_max_length == 64
    assert list(loaded(CORPUS[0])) == ["input_ids", "attention_mask"]
    for text in CORPUS[:4]:
        assert loaded(text)["input_ids"] == TOKENIZER(text)["input_ids"]


def test_a_vocabulary_smaller_than_the_alphabet_is_refused() -> None:
    with pytest.raises(InputError, match="A vocabulary of 20 is too small: the text's characters alone take"):
        train_tokenizer(CORPUS, 20, 64)


# Each side on its own

SOURCES, TARGETS = [CORPUS[0], CORPUS[2]] * 5, [CORPUS[1], CORPUS[3]] * 5


def test_each_side_is_cut_by_what_was_learned_on_it(tmp_path: Path) -> None:
    made = train_two_sided_tokenizer(SOURCES, TARGETS, 60, 64)
    alone = [train_tokenizer(side, 60, 64) for side in (SOURCES, TARGETS)]
    made.save_pretrained(tmp_path)
    for tokenizer in (made, AutoTokenizer.from_pretrained(tmp_path)):
        for key, texts, expected in zip(("text", "text_target"), (SOURCES, TARGETS), alone, strict=True):
            for text in texts[:2]:
                ids = tokenizer(**{key: text})["input_ids"]
                assert tokenizer.convert_ids_to_tokens(ids) == expected.tokenize(text, add_special_tokens=True)
                assert tokenizer.decode(ids, skip_special_tokens=True) == text
        assert tokenizer("gato")["input_ids"] != tokenizer(text_target="gato")["input_ids"]
        assert len(tokenizer) == len({*alone[0].get_vocab(), *alone[1].get_vocab()})


def test_words_are_found_on_either_side() -> None:
    tokenizer = train_two_sided_tokenizer(SOURCES, TARGETS, 60, 64)
    words = tuple(CORPUS[1].split())
    encoded = encode(tokenizer, [word_part(words)], as_target=True)
    assert encoded.tokens(words).word_ids == tokens_of_ids(tokenizer, encoded.ids).word_ids
