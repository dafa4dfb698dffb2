"""A loaded model: what it says about a text is what Hugging Face's own forward pass says."""

from __future__ import annotations

import pytest
import torch
import zoo
from torch import Tensor

import sightline
from sightline.errors import InputError
from sightline.models.examples import Example
from sightline.models.loaded import LoadedModel

ENDS = {"mbart": 2}  # mBART ends with an end token and a language, all others with one special token
STARTS = {"bart": 1, "m2m100": 1, "nllb": 1, "llama": 1, "gemma2": 1, "gpt_oss": 1} | {
    name: 1 for name in (*zoo.CLASSIFIERS, *zoo.FILLERS) if not name.startswith("gpt2")
}
NO_END = {*zoo.DECODERS, "gpt2-classifier"}


def encoded(model: LoadedModel, name: str) -> list[Example]:
    """Encode the zoo's texts; where there is no target, with the model's own answer."""
    targets = zoo.targets(name)
    if targets is not None:
        return [model.encode(s, t) for s, t in zip(zoo.texts(name), targets, strict=True)]
    examples = [model.encode(source, None) for source in zoo.texts(name)]
    return [model.with_output(e, ids) for e, ids in zip(examples, model.answer(examples), strict=True)]


def reference(model: LoadedModel, source: str, target: str | None) -> tuple[Tensor, Tensor]:
    """Compute, without Sightline, the log-probability of each output, and transformers' own loss over them."""
    module, tokenizer = model.module, model.tokenizer
    ids = torch.tensor([tokenizer(source)["input_ids"]])
    if model.task == "translate":
        labels = torch.tensor([tokenizer(text_target=target)["input_ids"]])
        output = module(input_ids=ids, labels=labels)
        logits, outputs = output.logits[0], labels[0]
    elif model.task == "continue":
        whole = torch.tensor([tokenizer(f"{source} {target}")["input_ids"]])
        start = ids.shape[1]
        labels = whole.clone()
        labels[:, :start] = -100
        output = module(input_ids=whole, labels=labels)
        logits, outputs = output.logits[0, start - 1 : -1], whole[0, start:]
    elif model.task == "classify":
        labels = module(input_ids=ids).logits.argmax(-1)
        output = module(input_ids=ids, labels=labels)
        logits, outputs = output.logits, labels
    else:
        gaps = ids == tokenizer.mask_token_id
        best = module(input_ids=ids).logits.argmax(-1)
        output = module(input_ids=ids, labels=torch.where(gaps, best, -100))
        logits, outputs = output.logits[gaps], best[gaps]
    return logits.log_softmax(-1)[torch.arange(len(outputs)), outputs], output.loss


@pytest.mark.parametrize("name", zoo.ZOO)
@torch.no_grad()
def test_log_probabilities_are_hugging_faces(name: str) -> None:
    model = zoo.model(name)
    examples = encoded(model, name)
    batch = model.batch(examples)
    padded = model.log_probs(batch)
    for number, (source, example) in enumerate(zip(zoo.texts(name), examples, strict=True)):
        target = None if zoo.targets(name) is None else zoo.targets(name)[number]
        expected, loss = reference(model, source, target)
        together = padded[number][batch.row_mask[number]]
        alone = model.log_probs(model.batch([example]))[0]
        torch.testing.assert_close(together, expected, atol=1e-5, rtol=5e-5)  # the unlikeliest output is near -30
        torch.testing.assert_close(alone, expected, atol=1e-5, rtol=5e-5)
        torch.testing.assert_close(-together.mean(), loss, atol=1e-5, rtol=5e-5)


@pytest.mark.parametrize("name", zoo.ZOO)
def test_special_positions_are_those_that_the_tokenizer_adds(name: str) -> None:
    model = zoo.model(name)
    for source in zoo.texts(name):
        tokens = model.encode(source, None).source
        start, end = STARTS.get(name, 0), 0 if name in NO_END else ENDS.get(name, 1)
        assert tokens.special.tolist() == [i < start or i >= len(tokens) - end for i in range(len(tokens))]
        assert tokens.words == tuple(source.split())
        assert {word for word in tokens.word_ids if word is not None} == set(range(len(tokens.words)))


@pytest.mark.parametrize("name", zoo.TRANSLATORS)
def test_a_prefix_is_the_target_one_step_later(name: str) -> None:
    example = zoo.model(name).encode(zoo.SOURCES[0], zoo.TARGETS[0])
    assert example.prefix.pieces[1:] == example.target.pieces[:-1]
    assert example.prefix.word_ids[0] is None
    assert example.decoder_ids[1:] == example.outputs[:-1]


@pytest.mark.parametrize("name", zoo.DECODERS)
def test_a_continuation_follows_its_prompt(name: str) -> None:
    model = zoo.model(name)
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    assert model.text_of(example.ids).split() == f"{zoo.SOURCES[0]} {zoo.TARGETS[0]}".split()
    assert model.text_of(example.outputs).split() == zoo.TARGETS[0].split()
    assert example.ids[example.rows[0] + 1] == example.outputs[0]
    assert example.target.words == tuple(zoo.TARGETS[0].split())


@pytest.mark.parametrize("name", [*zoo.TRANSLATORS, *zoo.DECODERS])
def test_an_answer_does_not_depend_on_its_batch(name: str) -> None:
    model = zoo.model(name)
    examples = [model.encode(source, None) for source in zoo.SOURCES]
    together = model.answer(examples)
    assert together == [model.answer([example])[0] for example in examples]
    for example, ids in zip(examples, together, strict=True):
        answered = model.with_output(example, ids)
        assert answered.outputs == ids[1:] if model.task == "translate" else ids
        assert len(answered.target) == len(answered.prefix) + (model.task == "continue")


@pytest.mark.parametrize("name", ["marian", "t5", "llama"])
def test_an_answer_is_what_generate_gives(name: str) -> None:
    model = zoo.model(name)
    example = model.encode(zoo.SOURCES[1], None)
    options = {"max_new_tokens": 7, "num_beams": 3}
    generated = model.module.generate(torch.tensor([example.ids]), **options)[0].tolist()
    start = len(example.ids) if model.task == "continue" else 0
    assert list(model.answer([example], **options)[0]) == generated[start:]


def test_the_users_length_of_an_answer_counts() -> None:
    model = zoo.model("marian")
    examples = [model.encode(source, None) for source in zoo.SOURCES]
    assert max(len(ids) for ids in model.answer(examples, max_length=4)) == 4


# Languages, prefixes, templates


@pytest.mark.parametrize("name", zoo.LANGUAGES)
def test_the_target_language_is_forced_on_the_decoder(name: str) -> None:
    model = zoo.fresh(name)
    lang = zoo.LANGUAGES[name][1]
    code = model.tokenizer.get_lang_token(lang) if name == "m2m100" else lang
    example = model.encode(zoo.SOURCES[0], None)
    answered = model.with_output(example, model.answer([example], max_new_tokens=4)[0])
    side, position = (answered.prefix, 0) if name == "mbart" else (answered.target, 0)
    assert side.pieces[position] == code
    assert side.word_ids[position] is None
    given = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    codes = [word for piece, word in zip(given.prefix.pieces, given.prefix.word_ids, strict=True) if piece == code]
    assert codes == [None]


@pytest.mark.parametrize("name", zoo.LANGUAGES)
def test_the_source_language_is_a_special_position(name: str) -> None:
    model = zoo.fresh(name)
    code = model.tokenizer.convert_ids_to_tokens(
        model.tokenizer.cur_lang_id
        if name == "m2m100"
        else model.tokenizer.convert_tokens_to_ids(zoo.LANGUAGES[name][0])
    )
    tokens = model.encode(zoo.SOURCES[0], None).source
    assert [word for piece, word in zip(tokens.pieces, tokens.word_ids, strict=True) if piece == code] == [None]


def test_opus_mt_takes_its_target_language_before_the_source() -> None:
    model = zoo.fresh("marian", target_lang="spa")
    tokens = model.encode(zoo.SOURCES[0], zoo.TARGETS[0]).source
    assert tokens.pieces[0] == ">>spa<<"
    assert tokens.word_ids[:2] == (None, 0)
    assert model.encode(zoo.SOURCES[0], None).ids == tuple(model.tokenizer(f">>spa<< {zoo.SOURCES[0]}")["input_ids"])


def test_a_prefix_is_read_but_is_no_word() -> None:
    model = zoo.fresh("t5", prefix="translate English to Spanish: ")
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    assert example.ids == tuple(model.tokenizer(f"translate English to Spanish: {zoo.SOURCES[0]}")["input_ids"])
    plain = zoo.model("t5").encode(zoo.SOURCES[0], zoo.TARGETS[0])
    assert [word for word in example.source.word_ids if word is not None] == list(plain.source.word_ids[:-1])
    assert example.source.word_ids[0] is None
    assert example.target == plain.target


def test_a_chat_template_is_read_but_is_no_word() -> None:
    model = zoo.fresh("qwen2", chat=True)
    example = model.encode(zoo.SOURCES[0], zoo.TARGETS[0])
    prompt = f"<|user|> {zoo.SOURCES[0]} <|endoftext|><|assistant|> "
    assert model.tokenizer.decode(example.ids) == prompt + zoo.TARGETS[0]
    assert example.target.words == tuple(zoo.TARGETS[0].split())
    words = [word for word in example.source.word_ids if word is not None]
    assert sorted(set(words)) == list(range(6))
    first, last = example.source.word_ids.index(0), len(example.source) - example.source.word_ids[::-1].index(5)
    assert None not in example.source.word_ids[first:last]
    assert model.tokenizer.decode(example.ids[first:last]).strip() == zoo.SOURCES[0]
    answered = model.with_output(model.encode(zoo.SOURCES[0], None), (5, 6))
    assert model.tokenizer.decode(answered.ids[:-2]) == prompt


# What a text may not be


def test_a_text_that_is_too_long_says_how_long_it_may_be() -> None:
    long = "cat " * 200
    for name in ("marian", "gpt2", "bert-classifier", "roberta-classifier"):
        with pytest.raises(
            InputError, match=r"source is too long: .* positions, and this model takes 12[68]. Split it"
        ):
            zoo.model(name).encode(long, None)
    with pytest.raises(InputError, match="too long"):
        zoo.model("marian").encode("cat", long)


def test_a_text_as_long_as_the_model_takes_is_taken() -> None:
    for name in ("marian", "gpt2", "bert-classifier", "roberta-classifier"):
        model = zoo.model(name)
        longest = max(n for n in range(100, 130) if len(model.tokenizer("cat " * n)["input_ids"]) <= model.max_length)
        example = model.encode("cat " * longest, None)
        assert len(example) >= model.max_length - 1
        with torch.no_grad():
            model.run(model.batch([example]) if model.task != "translate" else with_start(model, example))


def with_start(model: LoadedModel, example: Example):
    return model.batch([model.with_output(example, (model.module.config.decoder_start_token_id, 5))])


def test_no_room_for_an_answer() -> None:
    model = zoo.model("gpt2")
    example = model.encode(" ".join(["cat"] * 127), None)
    assert len(example) == model.max_length
    with pytest.raises(InputError, match="takes all 128 positions"):
        model.answer([example])


def test_a_tokenizer_of_another_model() -> None:
    model = sightline.load(zoo.fresh("bert-classifier").module, zoo.gpt2_tokenizer())
    with pytest.raises(InputError, match="knows 160: use its own tokenizer"):
        model.encode("The cat sleeps.", None)


def test_gaps() -> None:
    model = zoo.model("bert-filler")
    with pytest.raises(InputError, match=r"has no \[MASK\]"):
        model.encode("The cat sleeps.", None)
    with pytest.raises(InputError, match="2 words for 1 gaps"):
        model.encode("The [MASK] sleeps.", "cat dog")
    with pytest.raises(InputError, match="more than one piece"):
        model.encode("The [MASK] sleeps.", "committee")
    example = model.encode("The [MASK] sees the [MASK].", "dog cat")
    assert model.tokenizer.convert_ids_to_tokens(example.outputs) == ["dog", "cat"]
    assert [example.ids[row] for row in example.rows] == [model.tokenizer.mask_token_id] * 2
    assert example.target.words == ("dog", "cat")


def test_a_gap_of_a_byte_level_model_takes_the_word_with_its_space() -> None:
    model = zoo.model("roberta-filler")
    example = model.encode("The <mask> sleeps.", "cat")
    assert model.tokenizer.decode(example.outputs) == " cat"


def test_labels_by_name_and_number() -> None:
    model = zoo.model("bert-classifier")
    assert model.encode("The cat", "LABEL_2").outputs == (2,)
    assert model.encode("The cat", "1").outputs == (1,)
    assert model.encode("The cat", "1").target.pieces == ("LABEL_1",)
    with pytest.raises(InputError, match="no label 'happy': this model knows LABEL_0, LABEL_1, LABEL_2"):
        model.encode("The cat", "happy")


def test_a_classifier_without_padding_takes_one_text_at_a_time() -> None:
    model = zoo.fresh("gpt2-classifier")
    model.module.config.pad_token_id = None
    examples = [model.encode(source, None) for source in zoo.SOURCES[:2]]
    assert len(model.answer(examples[:1])) == 1
    with pytest.raises(InputError, match=r"one text at a time: set model.config.pad_token_id"):
        model.answer(examples)


def test_padding_is_what_the_model_calls_so() -> None:
    model = zoo.fresh("gpt2-classifier")
    model.module.config.pad_token_id = 7  # a causal classifier looks for the last token that is none
    model.tokenizer.pad_token_id = None
    examples = [model.encode(source, None) for source in zoo.SOURCES]
    with torch.no_grad():
        together = model.module(**model.inputs(model.batch(examples))).logits
        alone = torch.cat([model.module(**model.inputs(model.batch([example]))).logits for example in examples])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


# Leaving no trace


def test_evaluating_leaves_every_flag_as_it_was() -> None:
    model = zoo.fresh("marian")
    model.module.train()
    model.module.model.encoder.eval()
    model.module.model.encoder.requires_grad_(False)
    before = flags(model)
    with model.evaluating():
        assert not any(training for training, _ in flags(model))
    assert flags(model) == before
    with pytest.raises(RuntimeError, match="stop"), model.evaluating():
        raise RuntimeError("stop")
    assert flags(model) == before


def flags(model: LoadedModel) -> list[tuple[bool, list[bool]]]:
    return [(m.training, [p.requires_grad for p in m.parameters(recurse=False)]) for m in model.module.modules()]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_log_probabilities_are_never_in_half_precision(dtype: torch.dtype) -> None:
    model = zoo.fresh("marian")
    model.module.to(dtype)
    log_probs = model.log_probs(model.batch([model.encode(zoo.SOURCES[0], zoo.TARGETS[0])]))
    assert log_probs.dtype == torch.promote_types(dtype, torch.float32)
    exact = zoo.model("marian").log_probs(zoo.model("marian").batch([model.encode(zoo.SOURCES[0], zoo.TARGETS[0])]))
    torch.testing.assert_close(log_probs.float(), exact, atol=1.0, rtol=0.1)
