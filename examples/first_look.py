"""A first look, in two minutes and without any download.

A small Transformer learns to translate a generated language, in which the gold word alignment of every sentence is
known. Then Sightline shows where the model looked for each word that it said.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # idle threads must not keep the cores busy

import torch
from rich.console import Console
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import MarianMTModel, PreTrainedTokenizerFast

import sightline
from sightline.data.language import GeneratedLanguage, GeneratedPair, LanguageSettings
from sightline.models.transformer import TransformerSettings, build_transformer

SECONDS = 60
BATCH = 32
LAST_LAYER = -1  # the layer nearest to the output looks at the word that is being translated
FOLDER = Path("first_look")
PAGE = FOLDER / "page.html"
console = Console()


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


def train(model: MarianMTModel, tokenizer: PreTrainedTokenizerFast, pairs: Iterator[GeneratedPair]) -> None:
    """Train for a fixed time, with a rate that rises, then falls to zero at the end."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, betas=(0.9, 0.98), weight_decay=0)
    model.train()
    start = reported = time.perf_counter()
    while (passed := (time.perf_counter() - start) / SECONDS) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(passed / 0.1, (1 - passed) / 0.9)
        batch = list(itertools.islice(pairs, BATCH))
        inputs = tokenizer([pair.source for pair in batch], padding=True, return_tensors="pt")
        labels = tokenizer([pair.target for pair in batch], padding=True, return_tensors="pt")["input_ids"]
        labels[labels == tokenizer.pad_token_id] = -100
        loss = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if time.perf_counter() - reported > 10:
            reported = time.perf_counter()
            console.print(f"  after {reported - start:2.0f} seconds the loss of a word is {loss.item():.2f}")
    model.eval()


def main() -> None:
    torch.manual_seed(0)
    language = GeneratedLanguage(LanguageSettings(stems=40, clauses=1, ambiguity=0.0))
    tokenizer = build_tokenizer(language)
    sizes = TransformerSettings(encoder_layers=2, decoder_layers=2, width=128, heads=2, feed_forward=256, dropout=0.0)
    model = build_transformer(sizes, tokenizer)
    console.print(f"Training a small Transformer on a made-up language for {SECONDS} seconds:")
    train(model, tokenizer, language.stream("train"))

    model.save_pretrained(FOLDER)
    tokenizer.save_pretrained(FOLDER)
    translator = sightline.load(FOLDER)
    examples = [pair for pair in language.pairs(50, "test") if 6 <= len(pair.links) <= 8][:2]
    attributions = []
    for pair in examples:
        why = sightline.explain(translator, pair.source, method="attention", layer=LAST_LAYER).words()
        console.rule()
        console.print(f"source     {pair.source}")
        console.print(f"model      {' '.join(why.target.words)}")
        console.print(f"reference  {pair.target}")
        why.show(console)
        attributions.append(why)
    report_links(translator, language)
    PAGE.write_text(attributions[0].to_html(), encoding="utf-8")
    console.print(f"The first picture, to click on: {PAGE}. The model, to go on with: sightline.load({str(FOLDER)!r})")


def report_links(translator: object, language: GeneratedLanguage) -> None:
    """Count how often the input that is looked at most is one that the grammar says is right."""
    pairs = language.pairs(200, "test")
    found = right = 0
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    whys = sightline.explain(translator, sources, targets, method="attention", layer=LAST_LAYER, progress=False)
    for pair, why in zip(pairs, whys, strict=True):
        linked = {target for _, target in pair.links}
        for target, (best,) in enumerate(why.words().without_special().top()):
            if target in linked:
                found += 1
                right += (best.column, target) in pair.links
    console.rule()
    console.print(f"In {len(pairs)} sentences, attention is highest on a right word for {right} of {found} words.")


if __name__ == "__main__":
    main()
