"""Loading: by folder, name or object, in whatever wrapping; and one clear sentence where it cannot be."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
import transformers as tf
import zoo
from safetensors.torch import load_file, save_file
from torch import nn

import sightline
from sightline.errors import InputError
from sightline.models.loaded import LoadedModel

LORA = peft.LoraConfig(target_modules=["q_proj", "v_proj", "out_proj"], r=2, init_lora_weights=False)


def save(model: LoadedModel, folder: Path) -> Path:
    model.module.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def marian(tmp_path: Path) -> Path:
    return save(zoo.model("marian"), tmp_path / "marian")


# What can be loaded


@pytest.mark.parametrize("name", zoo.ZOO)
def test_a_saved_model_explains_as_the_one_in_memory(name: str, tmp_path: Path) -> None:
    model = zoo.model(name)
    languages = dict(zip(("source_lang", "target_lang"), zoo.LANGUAGES.get(name, ()), strict=False))
    loaded = sightline.load(save(model, tmp_path / name), **languages)
    assert not loaded.module.training
    assert loaded.task == model.task
    sources, targets = zoo.texts(name), zoo.targets(name)
    for ours, theirs in zip(
        sightline.explain(loaded, sources, targets), sightline.explain(model, sources, targets), strict=True
    ):
        assert ours.target == theirs.target
        # Where weights lie in memory can change the last digit of a matrix product.
        np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-6)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of mine")
    with pytest.raises(InputError, match=r"model cannot be written: Not a directory"):
        zoo.model("marian").save(tmp_path / "file" / "model")


def test_a_path_a_string_or_a_relative_path(marian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(marian.parent)
    for given in (marian, str(marian), "./marian", "marian"):
        assert sightline.load(given).task == "translate"


def test_a_loaded_model_is_itself() -> None:
    model = zoo.model("marian")
    assert sightline.load(model) is model


@pytest.mark.parametrize("dtype", ["bfloat16", torch.float16, "float32"])
def test_data_types(marian: Path, dtype: str | torch.dtype) -> None:
    expected = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    assert sightline.load(marian, dtype=dtype, device="cpu").module.dtype == expected
    fresh = zoo.fresh("marian")
    assert sightline.load(fresh.module, fresh.tokenizer, dtype=dtype).module.dtype == expected


def test_a_tokenizer_from_elsewhere(marian: Path) -> None:
    model = zoo.model("marian")
    for tokenizer in (model.tokenizer, marian, str(marian)):
        assert sightline.load(model.module, tokenizer).encode("The cat", None) == model.encode("The cat", None)


def test_weights_as_tensors_in_a_bin_file(marian: Path) -> None:
    model = zoo.model("marian")
    (marian / "model.safetensors").unlink()
    torch.save(model.module.state_dict(), marian / "pytorch_model.bin")
    pair = zoo.SOURCES[0], zoo.TARGETS[0]
    assert sightline.explain(marian, *pair) == sightline.explain(model, *pair)


class Malicious:
    """What a pickle can hold: a call that is made when it is read."""

    def __init__(self, evidence: Path) -> None:
        self.evidence = evidence

    def __reduce__(self):
        return os.mkdir, (str(self.evidence),)


def test_code_in_a_bin_file_is_never_run(marian: Path, tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    (marian / "model.safetensors").unlink()
    state = zoo.model("marian").module.state_dict()
    torch.save({**state, "more": Malicious(evidence)}, marian / "pytorch_model.bin")
    with pytest.raises(InputError, match="damaged or hold code, which is never run"):
        sightline.load(marian)
    assert not evidence.exists()


# What cannot


def test_names_and_folders_that_are_not_there(tmp_path: Path) -> None:
    for name in ("/no/such/folder", "./nowhere", "~/nowhere", "a/b/c"):
        with pytest.raises(InputError, match="There is no folder"):
            sightline.load(name)
    for name in ("no-such-model", "nobody/no-such-model", ""):
        with pytest.raises(InputError, match=f"The model '{name}' cannot be loaded: "):
            sightline.load(name)
    with pytest.raises(InputError, match="cannot be loaded: Unrecognized model"):
        sightline.load(tmp_path)


@pytest.mark.parametrize("name", zoo.ZOO)
def test_a_folder_without_a_tokenizer(name: str, tmp_path: Path) -> None:
    zoo.model(name).module.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="save it next to the model"):
        sightline.load(tmp_path)


def test_an_object_without_a_tokenizer() -> None:
    with pytest.raises(InputError, match="needs its tokenizer"):
        sightline.load(zoo.model("marian").module)


def test_damaged_files(marian: Path) -> None:
    def refused(match: str) -> None:
        with pytest.raises(InputError, match=match) as caught:
            sightline.load(marian)
        assert "\n" not in str(caught.value)

    weights, config = marian / "model.safetensors", marian / "config.json"
    whole, settings = load_file(weights), json.loads(config.read_text())
    config.write_text(json.dumps(settings | {"encoder_ffn_dim": 48}))
    refused("do not fit its config.json")
    config.write_text(json.dumps(settings | {"architectures": ["NoSuchModel"]}))
    refused("is a NoSuchModel, which is no model that transformers has")
    config.write_text(json.dumps(settings | {"model_type": "nonsense"}))
    refused("nonsense")
    config.write_text("{broken")
    refused("not a valid JSON")
    config.write_text(json.dumps(settings))
    (marian / "vocab.json").write_text("{broken")
    refused("tokenizer of .* cannot be loaded")
    partial = {name: tensor for name, tensor in whole.items() if "decoder.layers.1.fc" not in name}
    save_file(partial, weights, metadata={"format": "pt"})
    refused(r"lacks 4 of its weights, model.decoder.layers.1.fc1.bias among them")
    weights.write_bytes(b"not tensors")
    refused("cannot be loaded")
    weights.unlink()
    refused("cannot be loaded")


def test_devices_and_data_types_that_are_not_there(marian: Path) -> None:
    with pytest.raises(InputError, match="The device 'abacus' cannot be used"):
        sightline.load(marian, device="abacus")
    for dtype in ("int8", "half-precision", "nn"):
        with pytest.raises(InputError, match=f"no data type '{dtype}'"):
            sightline.load(marian, dtype=dtype)


@pytest.mark.parametrize("name", zoo.LANGUAGES)
def test_languages_that_a_tokenizer_does_not_know(name: str) -> None:
    for side in ("source_lang", "target_lang"):
        for lang in ("tlh", "<unk>" if name != "nllb" else "en"):
            with pytest.raises(InputError, match=f"does not know the language '{lang}'"):
                zoo.fresh(name, **{side: lang})


def test_languages_where_there_are_none() -> None:
    with pytest.raises(InputError, match="MarianTokenizer takes no language"):
        zoo.fresh("marian", target_lang="deu")
    with pytest.raises(InputError, match="takes no language"):
        zoo.fresh("bert-classifier", source_lang="en")


def test_a_chat_without_a_template() -> None:
    with pytest.raises(InputError, match="no chat template"):
        zoo.fresh("gpt2", chat=True)


def test_models_that_are_none_of_ours() -> None:
    tokenizer = zoo.bert_tokenizer()
    with pytest.raises(InputError, match="Linear is not a Hugging Face model"):
        sightline.load(nn.Linear(2, 2), tokenizer)
    tiny = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    answering = tf.BertForQuestionAnswering(tf.BertConfig(**tiny))
    with pytest.raises(InputError, match="BertForQuestionAnswering is not a model that Sightline can explain"):
        sightline.load(answering, tokenizer)
    rating = tf.BertForSequenceClassification(tf.BertConfig(**tiny, num_labels=1))
    with pytest.raises(InputError, match="gives one number, not one of several labels"):
        sightline.load(rating, tokenizer)
    heads = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 50, **heads}
    classifier = tf.BartForSequenceClassification(tf.BartConfig(**sizes))
    with pytest.raises(InputError, match="does not explain yet"):
        sightline.load(classifier, tokenizer)


# What is wrapped around a model


def scores(model: LoadedModel, **settings: object):
    return sightline.explain(model, zoo.SOURCES[:2], zoo.TARGETS[:2], **settings)


def assert_like(ours: list, theirs: list, atol: float = 1e-5) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.labels() == other.labels()
        assert abs(one.scores - other.scores).max() <= atol


@pytest.mark.parametrize("name", ["marian", "llama", "bert-classifier"])
def test_lora_counts_as_it_acts(name: str) -> None:
    model = zoo.fresh(name)
    targets = {"marian": LORA.target_modules, "llama": ["q_proj", "o_proj"], "bert-classifier": ["query", "dense"]}[
        name
    ]
    config = peft.LoraConfig(target_modules=targets, r=2, init_lora_weights=False)
    wrapped = peft.get_peft_model(model.module, config).eval()
    sources, answers = zoo.SOURCES[:2], zoo.targets(name) and zoo.targets(name)[:2]
    adapted = sightline.load(wrapped, model.tokenizer)
    ours = sightline.explain(adapted, sources, answers)
    layer = adapted.attention_layers[-1]
    with torch.no_grad():
        output_map = layer.output_map(zoo.HEADS)
        merged = sightline.load(wrapped.merge_and_unload(), model.tokenizer)
        assert_like(ours, sightline.explain(merged, sources, answers))
        plain = sightline.explain(zoo.model(name), sources, answers)
        assert max(abs(one.scores - other.scores).max() for one, other in zip(ours, plain, strict=True)) > 1e-3
        torch.testing.assert_close(output_map, merged.attention_layers[-1].output_map(zoo.HEADS), atol=1e-5, rtol=1e-5)


def test_a_prompt_tuned_model_is_refused() -> None:
    model = zoo.fresh("gpt2")
    wrapped = peft.get_peft_model(model.module, peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3))
    with pytest.raises(InputError, match="inputs that are no tokens: load its base model"):
        sightline.load(wrapped, model.tokenizer)


def test_a_compiled_model() -> None:
    model = zoo.fresh("marian")
    compiled = torch.compile(model.module, backend="eager")
    assert_like(scores(sightline.load(compiled, model.tokenizer)), scores(zoo.model("marian")))


def test_a_model_that_was_compiled_in_place_is_refused() -> None:
    whole, part = zoo.fresh("marian"), zoo.fresh("marian")
    whole.module.compile(backend="eager")
    part.module.model.encoder = torch.compile(part.module.model.encoder, backend="eager")
    for model in (whole, part):
        with pytest.raises(InputError, match=r"compiled in place, .* load it before compiling it"):
            sightline.load(model.module, model.tokenizer)


@pytest.mark.filterwarnings("ignore")
def test_a_quantised_model_keeps_its_attention() -> None:
    """Eight bits cost a few hundredths of a weight; nothing is refused, nothing else changes."""
    model = zoo.fresh("marian")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised = torch.ao.quantization.quantize_dynamic(model.module, {nn.Linear}, dtype=torch.qint8)
    loaded = sightline.load(quantised, model.tokenizer)
    assert_like(scores(loaded), scores(zoo.model("marian")), atol=0.05)
    with torch.no_grad():
        ours = loaded.layers("cross")[0].output_map(zoo.HEADS)
        exact = zoo.model("marian").layers("cross")[0].output_map(zoo.HEADS)
    torch.testing.assert_close(ours, exact, atol=0.02, rtol=0)


@pytest.mark.parametrize("name", zoo.LANGUAGES)
def test_two_directions_of_one_tokenizer_do_not_spoil_each_other(name: str) -> None:
    module, tokenizer = zoo.ZOO[name]()
    english, spanish = zoo.LANGUAGES[name]
    before = (tokenizer.src_lang, tokenizer.tgt_lang, tokenizer("The cat").input_ids)
    there = sightline.load(module, tokenizer, source_lang=english, target_lang=spanish)
    expected = there.encode("The cat", "El gato")
    back = sightline.load(module, tokenizer, source_lang=spanish, target_lang=english)
    assert back.encode("The cat", "El gato") != expected
    assert there.encode("The cat", "El gato") == expected
    assert (there.tokenizer.src_lang, back.tokenizer.src_lang) == (english, spanish)
    assert (tokenizer.src_lang, tokenizer.tgt_lang, tokenizer("The cat").input_ids) == before
    assert sightline.load(module, tokenizer).tokenizer is tokenizer


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"dtype": "float64"}, "dtype"),
        ({"device": "cpu"}, "device"),
        ({"source_lang": "en", "target_lang": "es"}, "source_lang and target_lang"),
        ({"prefix": "translate: "}, "prefix"),
        ({"chat": True}, "chat"),
        ({"max_memory": "1GB"}, "max_memory"),
        ({"tokenizer": "a folder"}, "tokenizer"),
    ],
)
def test_options_for_a_model_that_is_loaded_already(options: dict, named: str) -> None:
    model = zoo.model("marian")
    assert sightline.load(model) is model
    with pytest.raises(InputError, match=f"loaded already, so {named} cannot be changed"):
        sightline.load(model, **options)


NONSENSE = [
    ("config.json", "bos_token_id", []),
    ("config.json", "model_type", []),
    ("config.json", "architectures", [[None]]),
    ("config.json", "architectures", ["pipeline"]),
    ("config.json", "architectures", ["MarianTokenizer"]),
    ("config.json", "d_model", 10**30),
    ("generation_config.json", "eos_token_id", float("nan")),
    ("generation_config.json", "eos_token_id", "x"),
    ("tokenizer_config.json", "model_max_length", "x"),
    ("tokenizer_config.json", None, 5),
    ("vocab.json", "▁cat", None),
]


@pytest.mark.parametrize(("file", "key", "value"), NONSENSE)
def test_nonsense_in_the_json_of_a_folder_is_told(file: str, key: str | None, value: object, tmp_path: Path) -> None:
    model = zoo.fresh("marian")
    model.module.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    plain = json.loads((tmp_path / file).read_text())
    (tmp_path / file).write_text(json.dumps(value if key is None else plain | {key: value}))
    with pytest.raises(InputError, match=r"cannot be loaded|no model that transformers has|do not fit"):
        sightline.load(str(tmp_path))
