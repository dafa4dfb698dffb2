"""Training a tokenizer: byte-pair encoding (Sennrich et al. 2016), for both languages or for each; or whole words.

Words are kept: a piece never crosses white space, and a punctuation mark is a piece of its own. The result is a
transformers tokenizer with character offsets; source and target both end with `</s>`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from sightline.errors import InputError
from sightline.models.directions import language_token
from sightline.models.tokenization import TwoSidedTokenizer

PAD, END, UNKNOWN = "<pad>", "</s>", "<unk>"
WORD_START = "▁"
# Apostrophes and hyphens stay in their word; a mark that begins a word, or is one, keeps its space.
PUNCTUATION = rf"{WORD_START}?[^\p{{L}}\p{{M}}\p{{N}}'’{WORD_START}-]"
MIN_FREQUENCY = 2
MIN_WORD_COUNT = 3
"""Words that are seen fewer times are unknown (Snell et al. 2021)."""


def train_tokenizer(
    sentences: Iterable[str], size: int, max_length: int, languages: Sequence[str] = ()
) -> PreTrainedTokenizerFast:
    """Train a vocabulary of at most `size` pieces; with `languages` it has a token for each."""
    codes = [language_token(language) for language in languages]
    return _finished(max_length, codes, _train_pieces(sentences, size, codes))


def train_two_sided_tokenizer(
    sources: Iterable[str], targets: Iterable[str], size: int, max_length: int
) -> TwoSidedTokenizer:
    """Train at most `size` pieces on each side; a piece that both have is one."""
    sides = [json.loads(_train_pieces(sentences, size, []).to_str()) for sentences in (sources, targets)]
    pieces: dict[str, None] = {}
    for side in sides:
        pieces |= dict.fromkeys(side["model"]["vocab"])
    for side in sides:
        side["model"]["vocab"] = {piece: number for number, piece in enumerate(pieces)}
    finished = _finished(max_length, [], *(Tokenizer.from_str(json.dumps(side)) for side in sides))
    assert isinstance(finished, TwoSidedTokenizer)
    return finished


def _train_pieces(sentences: Iterable[str], size: int, codes: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always", split=True),
            pre_tokenizers.Split(Regex(PUNCTUATION), "isolated"),
        ]
    )
    tokenizer.decoder = decoders.Metaspace(replacement=WORD_START, prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=[PAD, END, UNKNOWN, *codes],
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    if tokenizer.get_vocab_size() > size:
        raise InputError(
            f"A vocabulary of {size:,} is too small: the text's characters alone take "
            f"{tokenizer.get_vocab_size():,} pieces. Raise tokenizer.vocabulary."
        )
    return tokenizer


def collect_words(texts: Iterable[str], size: int, max_length: int) -> PreTrainedTokenizerFast:
    """Make a vocabulary of the most frequent words, as white space delimits them, at most `size` with the specials."""
    counts = Counter(word for text in texts for word in text.split())
    frequent = sorted((-count, word) for word, count in counts.items() if count >= MIN_WORD_COUNT)
    specials = [PAD, END, UNKNOWN]
    words = [word for _, word in frequent if word not in specials]
    vocabulary = {word: number for number, word in enumerate([*specials, *words][:size])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(specials)
    return _finished(max_length, [], tokenizer)


def _finished(max_length: int, codes: list[str], *sides: Tokenizer) -> PreTrainedTokenizerFast:
    """Let tokenizers end every text, and make one of transformers' of one for both sides, or of one for each."""
    for tokenizer in sides:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {END}",
            pair=f"$A {END} $B {END}",
            special_tokens=[(END, tokenizer.token_to_id(END))],
        )
    options: dict[str, Any] = {
        "pad_token": PAD,
        "eos_token": END,
        "unk_token": UNKNOWN,
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
    } | ({"extra_special_tokens": codes} if codes else {})
    if len(sides) == 2:
        return TwoSidedTokenizer.of(*sides, **options)
    return PreTrainedTokenizerFast(tokenizer_object=sides[0], **options)
