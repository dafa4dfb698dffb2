"""The Transformer translation model, built from settings: transformers' Marian, or Pegasus for pre-norm layers.

Sinusoidal positions as in Vaswani et al. (2017); one embedding serves source, target and output. The two differ only in
where they normalise: Marian after each block (Vaswani et al.), Pegasus before it and once at the end.
"""

from __future__ import annotations

from typing import Any

from transformers import MarianConfig, MarianMTModel, PegasusConfig, PegasusForConditionalGeneration

from sightline.models.encoder_decoder import set_generation
from sightline.models.settings import TransformerSettings

CLASSES: dict[str, tuple[type, type]] = {
    "post": (MarianConfig, MarianMTModel),
    "pre": (PegasusConfig, PegasusForConditionalGeneration),
}


def build_transformer(settings: TransformerSettings, tokenizer: Any) -> MarianMTModel | PegasusForConditionalGeneration:
    """Build a Transformer with random weights for a tokenizer's vocabulary."""
    make_config, make_model = CLASSES[settings.norm]
    config = make_config(
        vocab_size=len(tokenizer),
        d_model=settings.width,
        encoder_layers=settings.encoder_layers,
        decoder_layers=settings.decoder_layers,
        encoder_attention_heads=settings.heads,
        decoder_attention_heads=settings.heads,
        encoder_ffn_dim=settings.feed_forward,
        decoder_ffn_dim=settings.feed_forward,
        dropout=settings.dropout,
        attention_dropout=settings.attention_dropout,
        activation_function=settings.activation,
        max_position_embeddings=settings.max_positions,
        # Embeddings are multiplied by the root of the width: with this deviation they begin at unit size, beside
        # positions of unit size, and square matrices begin as Glorot's rule has them.
        scale_embedding=True,
        init_std=settings.width**-0.5,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=None,
    )
    model = make_model(config)
    set_generation(model, settings.max_positions)
    return model
