"""The layer of an encoder whose states are compared."""

from __future__ import annotations

import pytest
import torch
import transformers
import zoo

import sightline
from sightline.errors import InputError
from sightline.methods.similarity import SimilaritySettings, encoder_states


def test_two_thirds_of_the_way_up_unless_a_layer_is_named() -> None:
    tokenizer = zoo.bert_tokenizer()
    sizes = {"hidden_size": 8, "num_hidden_layers": 12, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=len(tokenizer), **sizes)
    model = sightline.load(transformers.BertForMaskedLM(config).eval(), tokenizer)
    batch = model.batch([model.encode("The cat [MASK].", None)])
    with torch.no_grad():
        states = model.module.base_model(
            input_ids=batch.ids, attention_mask=batch.mask.long(), output_hidden_states=True
        ).hidden_states
        for layer, expected in ((None, 8), (0, 0), (12, 12), (-1, 12), (-13, 0)):
            settings = SimilaritySettings(layer=layer, measure="dot")
            torch.testing.assert_close(encoder_states(model, batch, settings), states[expected])
        for layer in (13, -14):
            with pytest.raises(InputError, match=f"no layer {layer}: the encoder's states are numbered 0 to 12"):
                encoder_states(model, batch, SimilaritySettings(layer=layer))
