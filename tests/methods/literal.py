"""Slow, literal computations of what the methods define, one example and one output at a time."""

from __future__ import annotations

from contextlib import contextmanager

import torch
import zoo
from torch import Tensor, nn

from sightline.models.examples import Batch, Example
from sightline.models.loaded import LoadedModel


def example_of(name: str, number: int = 0) -> tuple[LoadedModel, Example]:
    """Return a model in double precision with one of its examples, answered by the model where no target is given."""
    model = zoo.precise(name)
    targets = zoo.targets(name)
    example = model.encode(zoo.texts(name)[number], None if targets is None else targets[number])
    if not example.labels:
        example = model.with_output(example, model.answer([example])[0])
    return model, example


@contextmanager
def embeddings(module: nn.Module, change):
    """Change what an embedding module gives."""
    hook = module.register_forward_hook(lambda _module, _args, output: change(output))
    try:
        yield
    finally:
        hook.remove()


def output_number(model: LoadedModel, batch: Batch, output: int, of: str = "log_probability") -> Tensor:
    """Return one output's log-probability or probability by a whole pass of its own."""
    inputs = {"input_ids": batch.ids, "attention_mask": batch.mask.long()}
    if batch.decoder_ids is not None:
        inputs["decoder_input_ids"] = batch.decoder_ids
    logits = model.module(**inputs).logits
    row = logits[0] if model.task == "classify" else logits[0, batch.rows[0, output]]
    log_prob = row.log_softmax(-1)[batch.outputs[0, output]]
    return log_prob if of == "log_probability" else log_prob.exp()


def embedding_gradients(
    model: LoadedModel, example: Example, of: str = "log_probability", side: str = "source", noise: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return d number(t) / d e_i by a whole forward and backward pass per output, and the clean (scaled) embeddings."""
    batch = model.batch([example])
    site = model.embedding_sites[side]
    rows = []
    clean: list[Tensor] = []
    for output in range(len(example.outputs)):
        leaf: list[Tensor] = []

        def change(embedding: Tensor, leaf: list[Tensor] = leaf) -> Tensor:
            scaled = embedding * site.scale
            clean.append(scaled.detach())
            leaf.append((scaled if noise is None else scaled + noise).detach().requires_grad_())
            return leaf[0] / site.scale

        with torch.enable_grad(), embeddings(site.module, change):
            number = output_number(model, batch, output, of)
            rows.append(torch.autograd.grad(number, leaf[0])[0][0])
    return torch.stack(rows), clean[0][0]


def close(ours, theirs: Tensor) -> None:
    """Compare what was computed in double precision; an attribution then keeps single precision."""
    theirs = theirs.detach().float()
    assert tuple(ours.shape) == tuple(theirs.shape)
    scale = theirs.abs().max().item()
    torch.testing.assert_close(torch.from_numpy(ours.copy()), theirs, atol=1e-6 * scale + 1e-12, rtol=1e-6)
