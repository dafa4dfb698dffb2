"""Attention in single precision inside a 16-bit pass."""

import pytest
import torch
import zoo

from sightline.attend.precision import FLOAT32, attend_in_float32


@pytest.mark.parametrize("name", ["marian", "pegasus"])
def test_attention_is_computed_in_single_precision_under_autocast(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.fresh(name).module
    ids = torch.tensor([[5, 6, 7, 8], [6, 7, 8, model.config.pad_token_id]])
    inputs = {"input_ids": ids, "attention_mask": ids.ne(model.config.pad_token_id), "decoder_input_ids": ids[:, :3]}
    expected = model(**inputs, use_cache=False).logits
    seen = set()
    kernel = torch.nn.functional.scaled_dot_product_attention

    def noting(query: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        seen.add((query.dtype, torch.is_autocast_enabled("cpu")))
        return kernel(query, *args, **kwargs)

    attend_in_float32(model)
    torch.testing.assert_close(model(**inputs, use_cache=False).logits, expected, rtol=0, atol=1e-6)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", noting)
    with torch.autocast("cpu", torch.bfloat16):
        model(**inputs, use_cache=False)
    assert seen == {(torch.float32, False)}


def test_a_model_that_was_told_to_be_eager_stays_so() -> None:
    model = zoo.fresh("marian").module
    model.set_attn_implementation("eager")
    attend_in_float32(model)
    assert model.config._attn_implementation == "eager" != FLOAT32
