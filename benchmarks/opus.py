"""What the benchmarks share: a Marian of OPUS-MT's size with random weights, its tokenizer, sentences, and clocks."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import BertConfig, BertModel, BertTokenizer, MarianConfig, MarianMTModel, MarianTokenizer

import sightline
from sightline.data.language import GeneratedLanguage
from sightline.models.loaded import LoadedModel

VOCABULARY = 58101  # opus-mt-en-de's
WORDS = 24


def sentences(count: int) -> tuple[list[str], list[str]]:
    """Return pairs of generated sentences, cut or joined to 24 words a side."""
    stream = GeneratedLanguage().stream("train")
    pairs = []
    source: list[str] = []
    target: list[str] = []
    while len(pairs) < count:
        pair = next(stream)
        source += pair.source_words
        target += pair.target_words
        if min(len(source), len(target)) >= WORDS:
            pairs.append((" ".join(source[:WORDS]), " ".join(target[:WORDS])))
            source, target = [], []
    sources, targets = zip(*pairs, strict=True)
    return list(sources), list(targets)


def marian(texts: list[str] | None = None) -> LoadedModel:
    """Build a Marian of 6 + 6 layers, width 512 and 8 heads, with pieces of the texts or of the generated language."""
    folder = Path(tempfile.mkdtemp())
    texts = texts or [text for side in sentences(2000) for text in side]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_prefix=str(folder / "both"),
        vocab_size=8000,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes((folder / "both.model").read_bytes())
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "both.model"))
    pieces = [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
    unused = [f"unused{i}" for i in range(VOCABULARY - len(pieces) - 3)]
    vocabulary = ["</s>", "<unk>", *pieces, *unused, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(vocabulary)}))
    tokenizer = MarianTokenizer(*(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")))
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        max_position_embeddings=512,
        # Inseq 0.7.1 would scale a Marian decoder's embeddings twice under transformers 5, and give other numbers.
        scale_embedding=False,
        activation_function="swish",
        pad_token_id=VOCABULARY - 1,
        eos_token_id=0,
        decoder_start_token_id=VOCABULARY - 1,
    )
    return sightline.load(MarianMTModel(config).eval(), tokenizer)


def bert(length: int) -> tuple[LoadedModel, str]:
    """Build an encoder of BERT-base's shape and a text of so many tokens."""
    torch.manual_seed(0)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(1000))]
    tokenizer = BertTokenizer(vocab={name: i for i, name in enumerate(names)})
    model = BertModel(BertConfig(vocab_size=len(names)), add_pooling_layer=False).eval()
    return sightline.load(model, tokenizer), " ".join(f"w{i % 1000}" for i in range(length - 2))


def seconds(run: Callable[[], Any], repeats: int = 3) -> float:
    """Time a function: the best of some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def in_process(code: str) -> Any:
    """Run code in a process of its own and give the JSON that it prints last, with its peak memory in bytes."""
    text = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return json.loads(text.strip().splitlines()[-1])


def peak_bytes() -> int:
    """Return this process's peak memory. (`ru_maxrss` would begin with that of the process that started this one.)"""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024
