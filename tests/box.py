"""A tiny model that translates both ways, trained for a moment, and a box to put it into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import zoo

from sightline.models.box import BOX_MODEL
from sightline.models.transformer import TransformerSettings, build_transformer
from sightline.training.vocabulary import train_tokenizer

LANGUAGES = ("en", "es")


def build() -> tuple[Any, Any]:
    """Build a Transformer with random weights and a tokenizer with a token for each language."""
    tokenizer = train_tokenizer(zoo.CORPUS, 200, 256, LANGUAGES)
    torch.manual_seed(0)
    settings = TransformerSettings(encoder_layers=1, decoder_layers=2, width=16, heads=2, feed_forward=32)
    return build_transformer(settings, tokenizer), tokenizer


def fill(box: Path) -> Path:
    """Save such a model into a box, in half precision; give its folder."""
    model, tokenizer = build()
    folder = box / BOX_MODEL
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
