"""explain: one text or many, in order, the same in any batch, with the model left as it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.attend.watch import eager_attention
from sightline.attribution import Attribution
from sightline.errors import InputError
from sightline.models.loaded import LoadedModel
from sightline.verbs import explaining


def assert_same(ours: Attribution, theirs: Attribution) -> None:
    """Compare what was computed in double precision; an attribution then keeps single precision."""
    assert ours.labels() == theirs.labels()
    np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-7, rtol=1e-6)


# One, many, any number


def test_one_text_many_texts_an_iterator() -> None:
    model = zoo.precise("marian")
    one = sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0])
    many = sightline.explain(model, zoo.SOURCES, zoo.TARGETS)
    stream = sightline.explain(model, iter(zoo.SOURCES), iter(zoo.TARGETS))
    assert isinstance(one, Attribution)
    assert isinstance(many, list)
    assert not isinstance(stream, list)
    for ours, theirs in zip(stream, many, strict=True):
        assert_same(ours, theirs)
    assert_same(one, many[0])
    assert sightline.explain(model, [], []) == []


def test_an_iterator_is_read_only_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "WINDOW", 4)
    read = []

    def sources():
        for number in range(1000):
            read.append(number)
            yield zoo.SOURCES[number % 5]

    results = sightline.explain(zoo.precise("bert-classifier"), sources())
    assert read == []
    for _ in range(5):
        next(results)
    assert len(read) <= 9


@pytest.mark.parametrize("name", zoo.ZOO)
def test_order_is_kept_and_batches_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.precise(name)
    sources = [zoo.texts(name)[i % len(zoo.texts(name))] for i in (4, 0, 2, 1, 3, 0, 2)]
    targets = zoo.targets(name) and [zoo.TARGETS[i] for i in (4, 0, 2, 1, 3, 0, 2)]
    together = sightline.explain(model, sources, targets, layer="all", head="all")
    for number, attribution in enumerate(together):
        assert attribution.source.words == tuple(sources[number].split())
    monkeypatch.setattr(explaining, "MAX_BATCH_SIZE", 1)
    for ours, theirs in zip(together, sightline.explain(model, sources, targets, layer="all", head="all"), strict=True):
        assert_same(ours, theirs)


def test_words_that_the_user_split() -> None:
    model = zoo.precise("marian")
    split = sightline.explain(model, [zoo.SOURCES[0].split()], [["El", "gato", "duerme", "en", "la", "alfombra."]])
    assert_same(split[0], sightline.explain(model, zoo.SOURCES[0], zoo.TARGETS[0]))
    joined = sightline.explain(model, [["The", "cat", "sleeps"]], ["El gato"])
    assert joined[0].source.words == ("The", "cat", "sleeps")


# Outputs


def test_positions_choose_rows() -> None:
    for name in ("marian", "llama"):
        whole = sightline.explain(zoo.precise(name), zoo.SOURCES, zoo.TARGETS)
        for positions in ([0], [1, -1], [2, 0]):
            sources, targets = zoo.SOURCES[:2] + zoo.SOURCES[3:], zoo.TARGETS[:2] + zoo.TARGETS[3:]
            some = sightline.explain(zoo.precise(name), sources, targets, positions=positions)
            for ours, theirs in zip(some, whole[:2] + whole[3:], strict=True):
                rows = [position % len(theirs.target) for position in positions]
                assert_same(ours, theirs.take(rows, range(len(theirs.source) + len(theirs.prefix))))
    with pytest.raises(InputError, match="There is no output 9: the target has 4 tokens, numbered 0 to 3"):
        sightline.explain(zoo.precise("marian"), "The cat", "la la la", positions=[9])


@pytest.mark.parametrize("name", [*zoo.TRANSLATORS, *zoo.DECODERS])
def test_without_a_target_the_models_own_answer_is_explained(name: str) -> None:
    model = zoo.precise(name)
    options = {"max_new_tokens": 6}
    why = sightline.explain(model, zoo.SOURCES[1], generation=options)
    example = model.encode(zoo.SOURCES[1], None)
    ids = model.answer([example], **options)[0]
    answered = model.with_output(example, ids)
    assert why.target == answered.target
    with torch.no_grad():
        batch = model.batch([answered])
        assert batch.outputs[0].tolist() == list(ids[1:] if model.task == "translate" else ids)
        assert model.logits(batch)[0].argmax(-1)[1:].tolist() == list(answered.outputs[1:])  # greedy


def test_a_classification_has_one_row_its_label() -> None:
    for name in zoo.CLASSIFIERS:
        model = zoo.precise(name)
        own = sightline.explain(model, zoo.SOURCES)
        assert all(why.scores.shape[-2] == 1 for why in own)
        label = model.module.config.id2label[1]
        named = sightline.explain(model, zoo.SOURCES[0], label)
        assert named.target.pieces == (label,)
        np.testing.assert_allclose(named.scores, own[0].scores, rtol=1e-6)  # attention does not know the label


def test_masked_words() -> None:
    model = zoo.precise("bert-filler")
    source = "The [MASK] sees the [MASK] ."
    own = sightline.explain(model, source)
    assert own.scores.shape[-2] == 2
    given = sightline.explain(model, source, "dog cat")
    assert given.target.words == ("dog", "cat")
    with torch.no_grad(), eager_attention(model.module) as eager:
        weights = eager.bert(**model.tokenizer(source, return_tensors="pt"), output_attentions=True).attentions
    gaps = [i for i, piece in enumerate(given.source.pieces) if piece == "[MASK]"]
    expected = np.stack([layer[0].mean(0)[gaps].numpy() for layer in weights])
    np.testing.assert_allclose(given.scores, expected, atol=1e-6)


def test_a_model_that_only_represents_shows_its_whole_map() -> None:
    classifier = zoo.precise("bert-classifier")
    model = sightline.load(classifier.module.bert, classifier.tokenizer)
    why = sightline.explain(model, zoo.SOURCES[0])
    assert why.source == why.target
    with torch.no_grad(), eager_attention(model.module) as eager:
        inputs = classifier.tokenizer(zoo.SOURCES[0], return_tensors="pt")
        expected = torch.cat(eager(**inputs, output_attentions=True).attentions).mean(1)
    np.testing.assert_allclose(why.scores, expected.numpy(), atol=1e-6)
    with pytest.raises(InputError, match="has no output, so give no target"):
        sightline.explain(model, "The cat", "El gato")


# Settings


def test_layers_heads_and_kinds() -> None:
    model = zoo.precise("marian")
    pair = zoo.SOURCES[0], zoo.TARGETS[0]
    every = sightline.explain(model, *pair, head="all")
    assert every.axes == ("layer", "head")
    assert every.scores.shape[:2] == (zoo.LAYERS, zoo.HEADS)
    np.testing.assert_allclose(every.scores.sum(-1), 1, atol=1e-6)
    assert_close = np.testing.assert_allclose
    assert_close(sightline.explain(model, *pair).scores, every.heads().scores, atol=1e-6)
    assert_close(sightline.explain(model, *pair, layer=-1, head=2).scores, every.layer(1).heads(2).scores, atol=1e-6)
    assert_close(sightline.explain(model, *pair, layer="mean").scores, every.flat().scores, atol=1e-6)
    encoder = sightline.explain(model, *pair, kind="encoder")
    assert encoder.target == encoder.source == every.source
    decoder = sightline.explain(model, *pair, kind="decoder", layer=0)
    assert len(decoder.source) == 0
    assert decoder.prefix.pieces[1:] == decoder.target.pieces[:-1]
    assert np.allclose(np.triu(decoder.scores, 1), 0)


def test_the_reading_by_input_is_one_step_later() -> None:
    model = zoo.precise("marian")
    pair = zoo.SOURCES[0], zoo.TARGETS[0]
    output = sightline.explain(model, *pair)
    by_input = sightline.explain(model, *pair, reading="input")
    np.testing.assert_allclose(by_input.scores, output.scores[..., 1:, :], atol=1e-6)
    assert by_input.target.pieces == output.target.pieces[:-1]


# What cannot be explained

PAIR = ("The cat", "El gato")
MISTAKES = {
    "no method 'atention'. Did you mean 'attention'": (PAIR, {"method": "atention"}),
    "no setting of attention 'layers'. Did you mean 'layer'": (PAIR, {"layers": 2}),
    "no layer 7: the model has 2 layers of cross attention, numbered 0 to 1": (PAIR, {"layer": 7}),
    "no head 9: this layer has 4": (PAIR, {"head": 9}),
    "The layer is 'last'": (PAIR, {"layer": "last"}),
    "no kind of attention 'self'": (PAIR, {"kind": "self"}),
    "no reading 'backwards'": (PAIR, {"reading": "backwards"}),
    "source 1 is empty": (("  ", "El gato"), {}),
    "target 1 is empty": (("The cat", ""), {}),
    "source 2 is empty": ((["The cat", ""], ["El gato", "El"]), {}),
    "source 1 is too long": (("cat " * 300, "El gato"), {}),
    "source is one text, so the target": (("The cat", ["El gato"]), {}),
    "source is many texts and the target is one": ((["The cat"], "El gato"), {}),
    "There are 2 sources and 1 targets": ((["The cat", "The dog"], ["El gato"]), {}),
    "word 'the cat'": (([["the cat", "sleeps"]], [["el"]]), {}),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_told_in_one_sentence(message: str) -> None:
    texts, settings = MISTAKES[message]
    with pytest.raises(InputError) as caught:
        sightline.explain(zoo.precise("marian"), *texts, **settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("dtype", "cause"), [(torch.float32, "weights are damaged"), (torch.bfloat16, "in float32")])
def test_a_model_whose_numbers_are_none_is_refused(dtype: torch.dtype, cause: str) -> None:
    model = zoo.fresh("marian")
    model.module.to(dtype)
    with torch.no_grad():
        model.module.get_output_embeddings().weight[:] = float("nan")
    with pytest.raises(InputError, match=rf"The scores of gradient are no numbers \(NaN\).*{cause}"):
        sightline.explain(model, "a cat", "un gato", method="gradient")


def test_iterators_of_different_lengths() -> None:
    for sources, targets, longer in ((2, 3, "targets"), (3, 2, "sources")):
        results = sightline.explain(zoo.precise("marian"), iter(zoo.SOURCES[:sources]), iter(zoo.TARGETS[:targets]))
        with pytest.raises(InputError, match=f"more {longer} than .* end after 2"):
            list(results)


def test_a_mistake_is_told_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadedModel, "encode", lambda *_, **__: pytest.fail("began to work"))
    model = zoo.precise("marian")
    with pytest.raises(InputError):
        sightline.explain(model, iter(zoo.SOURCES), method="magic")
    with pytest.raises(InputError):
        sightline.explain(model, zoo.SOURCES, zoo.TARGETS[:4])


# Leaving no trace


def state(model: LoadedModel) -> dict[str, object]:
    modules = list(model.module.modules())
    return {
        "training": [m.training for m in modules],
        "requires_grad": [p.requires_grad for p in model.module.parameters()],
        "grad": [p.grad is None for p in model.module.parameters()],
        "implementations": [m.config._attn_implementation for m in modules if hasattr(m, "config")],
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in modules],
        "weights": [p.double().sum().item() for p in model.module.parameters()],
    }


@pytest.mark.parametrize("name", ["marian", "t5", "llama", "distilbert-classifier"])
@pytest.mark.parametrize("method", ["attention", "gradient"])
def test_a_model_is_left_as_it_was(name: str, method: str) -> None:
    model = zoo.fresh(name)
    model.module.train()
    next(model.module.children()).eval()
    next(model.module.parameters()).requires_grad_(False)
    before = state(model)
    settings = {"layer": 99} if method == "attention" else {"nonsense": 1}
    sightline.explain(model, zoo.SOURCES[:2], zoo.targets(name) and zoo.TARGETS[:2], method=method)
    assert state(model) == before
    with pytest.raises(InputError):
        sightline.explain(model, zoo.SOURCES[0], zoo.targets(name) and zoo.TARGETS[0], method=method, **settings)
    assert state(model) == before


def test_progress_is_shown_on_a_terminal_only(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = zoo.precise("bert-classifier")
    sightline.explain(model, zoo.SOURCES)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    sightline.explain(model, zoo.SOURCES, progress=False)
    assert capfd.readouterr() == ("", "")
    sightline.explain(model, zoo.SOURCES)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Explaining" in err
