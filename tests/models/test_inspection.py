"""Attention layers: each found, of its kind, with the projection that it really uses; and refused where unsure."""

from __future__ import annotations

import pytest
import torch
import transformers as tf
import zoo
from torch import Tensor, nn

import sightline
from sightline.attend.watch import watch
from sightline.errors import InputError
from sightline.models import inspection
from sightline.models.examples import Batch
from sightline.models.inspection import AttentionLayer
from sightline.models.loaded import LoadedModel


def batch_of(model: LoadedModel, name: str) -> Batch:
    targets = zoo.targets(name) or [None] * len(zoo.texts(name))
    examples = [model.encode(s, t) for s, t in zip(zoo.texts(name), targets, strict=True)]
    return model.batch(examples)


@pytest.mark.parametrize("name", zoo.ZOO)
def test_kinds_and_numbers(name: str) -> None:
    model = zoo.model(name)
    found = [(layer.kind, layer.index) for layer in model.attention_layers]
    if name in zoo.OURS:
        kinds = ["cross"] if name != "conv" else ["cross", "cross"]
        selves = [("encoder", 0), ("encoder", 1)] if name == "transformer-classifier" else []
        assert found == [*selves, *((kind, index) for index, kind in enumerate(kinds))]
    elif name in zoo.TRANSLATORS:
        assert found == [("encoder", 0), ("encoder", 1), ("decoder", 0), ("cross", 0), ("decoder", 1), ("cross", 1)]
    else:
        kind = "decoder" if name in zoo.DECODERS or name.startswith("gpt2") else "encoder"
        assert found == [(kind, 0), (kind, 1)]
    calls = [layer.call for layer in model.attention_layers]
    modules = {layer.module for layer in model.attention_layers}
    assert (calls, len(modules)) == (([0, 1], 1) if name == "albert-filler" else ([0] * len(found), len(found)))


def seen_by_projections(model: LoadedModel, batch: Batch) -> dict[AttentionLayer, tuple[Tensor, Tensor, Tensor]]:
    """Return weights, values and the output projection's output of each layer."""
    outputs: dict[nn.Module, list[Tensor]] = {}

    def keep(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        outputs.setdefault(module, []).append(output)

    layers = [layer for layer in model.attention_layers if layer.output is not None]
    handles = [module.register_forward_hook(keep) for module in {layer.output for layer in layers}]
    with watch(model.module, record=("weights", "values")) as seen:
        model.run(batch)
    for handle in handles:
        handle.remove()
    records = {layer: layer.seen_by(seen) for layer in layers}
    return {
        layer: (record.weights, record.values, outputs[layer.output][layer.call]) for layer, record in records.items()
    }


@pytest.mark.parametrize("name", zoo.ZOO)
@torch.no_grad()
def test_a_layers_output_is_the_sum_of_what_each_head_took_from_each_source(name: str) -> None:
    """Kobayashi et al. (2020), equation 3: sum over heads and sources of alpha f(x), and the bias."""
    model = zoo.model(name)
    batch = batch_of(model, name)
    seen = seen_by_projections(model, batch)
    # With input feeding the context is not projected before it joins the state.
    assert len(seen) == (0 if name == "lstm-input-feeding" else len(model.attention_layers))
    for layer, (weights, values, output) in seen.items():
        transformed = values @ layer.output_map(values.shape[1])  # (batch, head, source, width)
        total = torch.einsum("bhts,bhsd->btd", weights, transformed)
        if getattr(layer.output, "bias", None) is not None:
            total = total + layer.output.bias
        torch.testing.assert_close(total, output.reshape(total.shape), atol=1e-4, rtol=1e-4)


def test_projections_are_the_models_own() -> None:
    marian, t5, gpt2, bert = (zoo.model(name) for name in ("marian", "t5", "gpt2", "bert-classifier"))
    assert marian.layers("cross")[1].output is marian.module.model.decoder.layers[1].encoder_attn.out_proj
    assert t5.layers("decoder")[0].output is t5.module.decoder.block[0].layer[0].SelfAttention.o
    assert gpt2.layers("decoder")[1].output is gpt2.module.transformer.h[1].attn.c_proj
    assert bert.layers("encoder")[1].output is bert.module.bert.encoder.layer[1].attention.output.dense


def test_an_unknown_projection_is_no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "OUTPUT_NAMES", ("fc1", "q_proj"))
    model = zoo.fresh("marian")
    assert len(model.layers("cross")) == 2  # attention itself is still there
    with pytest.raises(InputError, match=r"output projection of MarianAttention is not known.*use attention"):
        model.layers("cross")[0].output_map(zoo.HEADS)


def test_a_kind_that_a_model_lacks() -> None:
    with pytest.raises(InputError, match="GPT2LMHeadModel has no cross attention; it has decoder"):
        zoo.model("gpt2").layers("cross")


# Models that cannot be watched are refused: never a wrong number


def mamba() -> LoadedModel:
    tokenizer = zoo.gpt2_tokenizer()
    config = tf.MambaConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, state_size=4)
    return sightline.load(tf.MambaForCausalLM(config).eval(), tokenizer)


def fsmt() -> LoadedModel:
    """A model that computes its attention itself, whatever implementation it is told to use."""
    tokenizer = zoo.marian_tokenizer()
    config = tf.FSMTConfig(
        langs=["en", "es"],
        src_vocab_size=len(tokenizer),
        tgt_vocab_size=len(tokenizer),
        d_model=zoo.WIDTH,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=0,
        eos_token_id=0,
        decoder_start_token_id=0,
    )
    return sightline.load(tf.FSMTForConditionalGeneration(config).eval(), tokenizer)


@pytest.mark.parametrize("build", [mamba, fsmt])
def test_a_model_without_attention_to_watch(build) -> None:
    model = build()
    with pytest.raises(InputError, match="has no attention that Sightline can watch: use a gradient method or erasure"):
        sightline.explain(model, "the cat", "el gato")


@pytest.mark.parametrize("build", [mamba, fsmt])
def test_a_model_without_attention_still_has_gradients(build) -> None:
    model = build()
    batch = model.batch([model.encode("the cat sees the cat", "el gato")])
    multiplier = torch.ones(batch.ids.shape[1], requires_grad=True)
    with model.changed_embeddings(source=lambda embeddings: embeddings * multiplier[None, :, None]):
        (gradient,) = torch.autograd.grad(model.log_probs(batch).sum(), multiplier)
    assert (gradient != 0).sum() >= len(model.encode("the cat sees the cat", None).ids) - 1


def test_a_model_that_gives_other_numbers_under_watch() -> None:
    model = zoo.fresh("gpt2")
    plain = model.module.forward

    def forward(**inputs):
        output = plain(**inputs)
        if model.module.config._attn_implementation != "eager":
            output.logits = output.logits * 1.01
        return output

    model.module.forward = forward
    with pytest.raises(InputError, match=r"does not reproduce \(its logits differ by .* under watch\)"):
        sightline.explain(model, "the cat", "el gato")


def test_looking_leaves_no_hook() -> None:
    model = zoo.fresh("bert-classifier")
    assert model.attention_layers
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.module.modules())


# Value projections


@pytest.mark.parametrize("name", [name for name in zoo.ZOO if name not in zoo.OURS])
def test_the_value_map_gives_the_values(name: str) -> None:
    """x W_V + b_V of each head, with x as the projection is given it, is what the layer attends to."""
    model = zoo.fresh(name)
    batch = batch_of(model, name)
    inputs: dict[nn.Module, list[Tensor]] = {}

    def keep(module: nn.Module, args: tuple[Tensor, ...], _output: Tensor) -> None:
        inputs.setdefault(module, []).append(args[0])

    assert all(layer.value is not None for layer in model.attention_layers)
    modules = {layer.value.module for layer in model.attention_layers if layer.value is not None}
    for module in modules:
        module.register_forward_hook(keep)
    with torch.no_grad(), watch(model.module, record=("values",)) as seen:
        model.run(batch)
    for layer in model.attention_layers:
        values = layer.seen_by(seen).values
        matrices, biases = layer.value_map(values.shape[1])
        x = inputs[layer.value.module][layer.call]
        expected = torch.stack([x @ matrices[h] + biases[h] for h in range(values.shape[1])], 1)
        torch.testing.assert_close(values, expected.detach(), atol=1e-4, rtol=1e-4)


def test_an_unknown_value_projection_is_named() -> None:
    (layer,) = zoo.model("lstm").attention_layers
    assert layer.value is None
    with pytest.raises(InputError, match=r"value projection of .* is not known"):
        layer.value_map(1)
