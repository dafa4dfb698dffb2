"""A small Transformer that learns a made-up language, in which the gold alignment of every sentence is known."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import MarianMTModel, PreTrainedTokenizerFast

from sightline.alignment.links import Alignment
from sightline.data.language import GeneratedLanguage, GeneratedPair, LanguageSettings
from sightline.demo.material import GoldSet, Material, Sentence
from sightline.models.loading import load
from sightline.models.transformer import TransformerSettings, build_transformer

LANGUAGE = LanguageSettings(stems=40, clauses=1, ambiguity=0.0)
SIZES = TransformerSettings(encoder_layers=2, decoder_layers=2, width=128, heads=2, feed_forward=256, dropout=0.0)
BATCH = 32
HIGHEST_RATE = 3e-3
WARMUP = 0.1  # the share of the time in which the rate rises
REPORT_EVERY = 10  # seconds
SENTENCES, GOLD_PAIRS = 12, 66


def train_on_made_up_language(seconds: float, say: Callable[[str], None]) -> Material:
    """Train for a number of seconds; return the model, and sentences that it has not seen."""
    torch.manual_seed(0)
    language = GeneratedLanguage(LANGUAGE)
    tokenizer = build_tokenizer(language)
    model = build_transformer(SIZES, tokenizer)
    say(f"Training a small Transformer on a made-up language for {seconds:g} seconds.")
    train(model, tokenizer, language.stream("train"), seconds, say)
    sentences = [pair.source for pair in language.pairs(200, "shown") if 6 <= len(pair.links) <= 8][:SENTENCES]
    gold = language.pairs(GOLD_PAIRS, "test")
    gold_set = GoldSet(
        "made-up",
        tuple(pair.source for pair in gold),
        tuple(pair.target for pair in gold),
        tuple(Alignment(pair.links) for pair in gold),
    )
    return Material(
        f"A made-up language, with a model of {seconds:g} seconds of training",
        load(model, tokenizer),
        tuple(map(Sentence, sentences)),
        _marked_up(sentences[0]),
        (gold_set,),
    )


def build_tokenizer(language: GeneratedLanguage) -> PreTrainedTokenizerFast:
    """Make a vocabulary of the whole words of both languages."""
    words = {word for pair in language.pairs(20_000) for word in pair.source_words + pair.target_words}
    vocabulary = {word: number for number, word in enumerate(["<pad>", "</s>", "<unk>", *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=128
    )


def train(
    model: MarianMTModel,
    tokenizer: PreTrainedTokenizerFast,
    pairs: Iterator[GeneratedPair],
    seconds: float,
    say: Callable[[str], None],
) -> None:
    """Train for a fixed time, with a rate that rises, then falls to zero at the end."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, betas=(0.9, 0.98), weight_decay=0)
    model.train()
    start = reported = time.perf_counter()
    while (passed := (time.perf_counter() - start) / seconds) < 1:
        for group in optimizer.param_groups:
            group["lr"] = HIGHEST_RATE * min(passed / WARMUP, (1 - passed) / (1 - WARMUP))
        batch = list(itertools.islice(pairs, BATCH))
        inputs = tokenizer([pair.source for pair in batch], padding=True, return_tensors="pt")
        labels = tokenizer([pair.target for pair in batch], padding=True, return_tensors="pt")["input_ids"]
        labels[labels == tokenizer.pad_token_id] = -100
        loss = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if time.perf_counter() - reported > REPORT_EVERY:
            reported = time.perf_counter()
            say(f"  after {reported - start:2.0f} seconds the loss of a word is {loss.item():.2f}")
    model.eval()


def _marked_up(sentence: str) -> str:
    """Put tags around some words of a sentence."""
    first, second, third, *rest = sentence.split()
    return " ".join([f"<b>{first} {second}</b>", third, *rest[:-1], f"<i>{rest[-1]}</i>"])
