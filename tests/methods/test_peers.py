"""The names that Inseq uses give Inseq's numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import zoo

import sightline


@pytest.mark.parametrize("method", ["saliency", "input_x_gradient", "occlusion"])
def test_inseq_computes_the_same(method: str) -> None:
    inseq = pytest.importorskip("inseq", reason="Inseq is in the extra `bench`")
    model = zoo.fresh("marian")
    # Inseq 0.7.1 would scale a Marian decoder's embeddings twice under transformers 5.
    for stack in (model.module.get_encoder(), model.module.get_decoder()):
        stack.embed_scale = 1.0
    sources, targets = zoo.SOURCES[:3], zoo.TARGETS[:3]
    ours = sightline.explain(model, sources, targets, method=method)
    peer = inseq.load_model(model.module, method, tokenizer=model.tokenizer)
    theirs = peer.attribute(sources, targets, batch_size=3, show_progress=False).sequence_attributions
    for one, other in zip(ours, theirs, strict=True):
        scores: torch.Tensor = other.source_attributions
        scores = scores.norm(dim=-1) if scores.ndim == 3 else scores
        np.testing.assert_allclose(one.scores, scores.T.numpy(), atol=1e-4 * one.scores.max())
