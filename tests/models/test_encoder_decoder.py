"""What every translation model written here promises, whatever its architecture."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
import zoo
from models.corpus import Corpus, generated_corpus, learn_by_heart

import sightline
from sightline.errors import InputError
from sightline.methods.gradients import word_saliency
from sightline.methods.settings import WordSaliencySettings
from sightline.models.conv import ConvConfig, ConvForConditionalGeneration, ConvSettings
from sightline.models.lstm import LstmConfig, LstmForConditionalGeneration, LstmSettings
from sightline.models.settings import check_choice

SIZE = {"vocab_size": 40, "width": 12}
FORMS = {
    "lstm": LstmConfig(**SIZE),
    "lstm-heads": LstmConfig(**SIZE, heads=3, merge="mean", combination="tanh"),
    "lstm-linear": LstmConfig(**SIZE, combination="linear", tied="all"),
    "lstm-uniform": LstmConfig(**SIZE, attention="uniform"),
    "lstm-feeding": LstmConfig(
        **SIZE, layers=1, bidirectional=False, input_feeding=True, combination="tanh", tied="none"
    ),
    "lstm-feeding-bidirectional": LstmConfig(**SIZE, heads=2, input_feeding=True),
    "conv": ConvConfig(**SIZE),
    "conv-wide": ConvConfig(**SIZE, kernel=4, tied="all"),
}
EVERY_FORM = pytest.mark.parametrize("form", FORMS)


def build(form: str, **changes):
    """Build a model of a form anew."""
    torch.manual_seed(0)
    config = type(FORMS[form]).from_dict(FORMS[form].to_dict() | changes)
    cls = LstmForConditionalGeneration if isinstance(config, LstmConfig) else ConvForConditionalGeneration
    return cls(config).eval()


def settings_of(model) -> dict:
    """Return the settings that a model's configuration holds."""
    return {field.name: getattr(model.config, field.name) for field in fields(model.config.settings_class)}


def some_batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return sources of three lengths, their mask, and decoder inputs."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(2, 40, (3, 7), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    mask[2, 2:] = 0
    return ids * mask, mask, torch.randint(2, 40, (3, 6), generator=generator)


@EVERY_FORM
@torch.no_grad()
def test_a_later_target_token_changes_no_earlier_logits(form: str) -> None:
    model = build(form)
    ids, mask, decoder_ids = some_batch()
    logits = model(ids, mask, decoder_ids, use_cache=False).logits
    for position in range(1, decoder_ids.shape[1]):
        changed = decoder_ids.clone()
        changed[:, position] = (changed[:, position] + 1) % 38 + 2
        other = model(ids, mask, changed, use_cache=False).logits
        torch.testing.assert_close(other[:, :position], logits[:, :position])
        assert not torch.allclose(other[:, position], logits[:, position], atol=1e-4)


@EVERY_FORM
@torch.no_grad()
def test_padding_changes_nothing(form: str) -> None:
    model = build(form)
    ids, mask, decoder_ids = some_batch()
    together = model(ids, mask, decoder_ids, use_cache=False)
    for row in range(len(ids)):
        real = ids[row : row + 1, : mask[row].sum()]
        alone = model(real, torch.ones_like(real), decoder_ids[row : row + 1], use_cache=False)
        torch.testing.assert_close(together.logits[row], alone.logits[0], atol=1e-5, rtol=1e-5)
        states = together.encoder_last_hidden_state[row, : real.shape[1]]
        torch.testing.assert_close(states, alone.encoder_last_hidden_state[0], atol=1e-5, rtol=1e-5)
    other_padding = ids + 7 * (1 - mask)
    torch.testing.assert_close(model(other_padding, mask, decoder_ids, use_cache=False).logits, together.logits)
    order = mask.argsort(dim=1, stable=True)  # padding to the left
    left = model(ids.gather(1, order), mask.gather(1, order), decoder_ids, use_cache=False)
    torch.testing.assert_close(left.logits, together.logits, atol=1e-5, rtol=1e-5)


@EVERY_FORM
def test_one_step_changes_every_parameter(form: str) -> None:
    model = build(form).train()
    ids, mask, decoder_ids = some_batch()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    model(ids, mask, labels=decoder_ids).loss.backward()
    torch.optim.SGD(model.parameters(), lr=10.0).step()
    unchanged = [name for name, parameter in model.named_parameters() if torch.equal(parameter, before[name])]
    assert unchanged == []


@EVERY_FORM
@torch.no_grad()
def test_the_loss_is_the_mean_cross_entropy_of_real_labels(form: str) -> None:
    model = build(form)
    ids, mask, labels = some_batch()
    labels[0, 4:] = -100
    loss = model(ids, mask, labels=labels).loss
    decoder_ids = torch.cat([torch.zeros(3, 1, dtype=torch.long), labels[:, :-1].clamp(min=0)], 1)
    assert model.prepare_decoder_input_ids_from_labels(labels).tolist() == decoder_ids.tolist()
    log_probs = model(ids, mask, decoder_ids).logits.log_softmax(-1)
    expected = [-log_probs[i, t, labels[i, t]] for i in range(3) for t in range(6) if labels[i, t] >= 0]
    torch.testing.assert_close(loss, torch.stack(expected).mean())


@EVERY_FORM
@torch.no_grad()
def test_saved_and_loaded_it_is_the_same(form: str, tmp_path: Path) -> None:
    model = build(form)
    ids, mask, decoder_ids = some_batch()
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").is_file()
    loaded = type(model).from_pretrained(tmp_path).eval()
    assert asdict(loaded.config.settings_class(**settings_of(loaded))) == settings_of(loaded) == settings_of(model)
    torch.testing.assert_close(loaded(ids, mask, decoder_ids).logits, model(ids, mask, decoder_ids).logits)
    for options in ({"do_sample": False}, {"num_beams": 3}):
        generated = [m.generate(ids, attention_mask=mask, max_new_tokens=8, **options) for m in (model, loaded)]
        assert generated[0].tolist() == generated[1].tolist()


@EVERY_FORM
def test_embeddings_are_one_as_told(form: str, tmp_path: Path) -> None:
    for tied in ("none", "inputs", "all"):
        model = build(form, tied=tied)
        model.save_pretrained(tmp_path / tied)
        for same in (model, type(model).from_pretrained(tmp_path / tied)):
            source, target = (s.get_input_embeddings().weight for s in (same.get_encoder(), same.get_decoder()))
            assert (source is target) == (tied != "none")
            assert (same.get_output_embeddings().weight is source) == (tied == "all")


@EVERY_FORM
@torch.no_grad()
def test_decoding_with_a_state_is_recomputation(form: str) -> None:
    model = build(form)
    ids, mask, decoder_ids = some_batch()
    expected = model(ids, mask, decoder_ids, use_cache=False)
    assert expected.past_key_values is None
    encoded = model.get_encoder()(input_ids=ids, attention_mask=mask)
    past, given = None, []
    for part in decoder_ids.split([2, 1, 3], 1):  # one step, or several at a time
        output = model(
            attention_mask=mask, decoder_input_ids=part, encoder_outputs=encoded, past_key_values=past, use_cache=True
        )
        past = output.past_key_values
        given.append(output.logits)
    torch.testing.assert_close(torch.cat(given, 1), expected.logits, atol=1e-5, rtol=1e-5)
    past.reorder_cache(torch.tensor([2, 0, 2]))
    chosen = torch.tensor([2, 0, 2])
    more = torch.tensor([[5], [6], [7]])
    encoded = type(encoded)(*(part[chosen] for part in encoded.to_tuple()))
    step = model(
        attention_mask=mask[chosen],
        decoder_input_ids=more,
        encoder_outputs=encoded,
        past_key_values=past,
        use_cache=True,
    )
    whole = model(ids[chosen], mask[chosen], torch.cat([decoder_ids[chosen], more], 1), use_cache=False)
    torch.testing.assert_close(step.logits[:, 0], whole.logits[:, -1], atol=1e-5, rtol=1e-5)


@EVERY_FORM
@torch.no_grad()
def test_generation_reads_each_token_once(form: str) -> None:
    model = build(form)
    ids, mask, _ = some_batch()
    lengths: list[int] = []
    hook = model.get_decoder().register_forward_pre_hook(
        lambda _module, _args, kwargs: lengths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    options = {"max_new_tokens": 9, "min_new_tokens": 9, "num_beams": 2}
    quick = model.generate(ids, attention_mask=mask, **options)
    assert lengths == [1] * 9
    slow = model.generate(ids, attention_mask=mask, use_cache=False, **options)
    assert lengths[9:] == list(range(1, 10))
    hook.remove()
    assert quick.tolist() == slow.tolist()


# Learning


LEARNERS = {
    "lstm": (LstmForConditionalGeneration, LstmConfig, {}, 1e-2),
    "lstm-feeding": (
        LstmForConditionalGeneration,
        LstmConfig,
        {"layers": 1, "bidirectional": False, "input_feeding": True, "combination": "tanh", "tied": "none"},
        1e-2,
    ),
    "conv": (ConvForConditionalGeneration, ConvConfig, {}, 3e-3),
}


@cache
def learned(name: str, count: int, width: int) -> tuple[object, Corpus, float]:
    torch.manual_seed(0)
    corpus = generated_corpus(count)
    model_class, config_class, form, rate = LEARNERS[name]
    model = model_class(config_class(vocab_size=corpus.vocabulary, width=width, dropout=0.0, **form))
    accuracy = learn_by_heart(model, corpus, rate, 400)
    return model.eval(), corpus, accuracy


@pytest.mark.parametrize("name", LEARNERS)
def test_learns_a_few_pairs_by_heart(name: str) -> None:
    model, corpus, accuracy = learned(name, 12, 32)
    assert accuracy == 1
    generated = model.generate(corpus.sources, attention_mask=corpus.mask, max_new_tokens=corpus.labels.shape[1])
    for ids, labels in zip(generated.tolist(), corpus.labels.tolist(), strict=True):
        label = [token for token in labels if token >= 0]
        assert ids[1 : len(label) + 1] == label


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_learns_a_hundred_pairs_by_heart(name: str) -> None:
    _, _, accuracy = learned(name, 100, 64)
    assert accuracy == 1


@pytest.mark.parametrize("name", LEARNERS)
@torch.no_grad()
def test_beam_search_finds_no_worse_than_greedy(name: str) -> None:
    model, corpus, _ = learned(name, 12, 32)
    # New sentences, of which the model is unsure.
    sources = corpus.sources.roll(3, 1).where(corpus.mask.bool(), 0)
    scores = {}
    for beams in (1, 6):
        generated = model.generate(
            sources, attention_mask=corpus.mask, max_new_tokens=12, num_beams=beams, length_penalty=0
        )
        logits = model(sources, corpus.mask, generated[:, :-1], use_cache=False).logits
        losses = F.cross_entropy(logits.transpose(1, 2), generated[:, 1:], reduction="none")
        ended = (generated[:, 1:] == 1).cumsum(1) - (generated[:, 1:] == 1).long()
        scores[beams] = -(losses * (ended == 0)).sum(1)
    assert (scores[6] >= scores[1] - 1e-4).all()
    assert (scores[6] > scores[1] + 1e-4).any()


# Explaining


@pytest.mark.parametrize("name", ["lstm", "lstm-input-feeding", "conv", "lstm-classifier", "transformer-classifier"])
def test_gradients_are_finite_differences(name: str) -> None:
    """In float64: word saliency is the derivative by a factor of a word's embedding."""
    model = zoo.fresh(name)
    model.module.double()
    targets = ["fair", "good"] if model.task == "classify" else zoo.TARGETS[:2]
    batch = model.batch([model.encode(s, t) for s, t in zip(zoo.SOURCES[:2], targets, strict=True)])
    with model.evaluating():
        scored = word_saliency(model, batch, WordSaliencySettings()).scores

        @torch.no_grad()
        def log_probs(position: int, factor: float) -> torch.Tensor:
            factors = torch.ones(batch.ids.shape[1], dtype=torch.float64)
            factors[position] = factor
            with model.changed_embeddings(source=lambda embedding: embedding * factors[:, None]):
                return model.log_probs(batch)

        for position in range(batch.ids.shape[1]):
            slope = (log_probs(position, 1 + 1e-4) - log_probs(position, 1 - 1e-4)) / 2e-4
            real = batch.row_mask & batch.mask[:, position, None]
            torch.testing.assert_close(scored[..., position].double() * real, slope * real, atol=1e-5, rtol=1e-3)


def test_a_saved_folder_is_loaded_and_explained(tmp_path: Path) -> None:
    for name in zoo.OURS:
        model = zoo.model(name)
        model.module.save_pretrained(tmp_path / name)
        model.tokenizer.save_pretrained(tmp_path / name)
        loaded = sightline.load(tmp_path / name)
        assert type(loaded.module) is type(model.module)
        assert loaded.task == model.task


# Mistakes


@pytest.mark.parametrize(
    ("settings", "mistake", "sentence"),
    [
        (LstmSettings, {"layers": 0}, "layers is 0: it must be at least 1."),
        (LstmSettings, {"dropout": 1.0}, "dropout is 1.0: it must be at least 0 and less than 1."),
        (ConvSettings, {"kernel": 0}, "kernel is 0: it must be at least 1."),
    ],
)
def test_mistakes(settings: type, mistake: dict, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        settings(**mistake)
    assert str(error.value).startswith(sentence)
    config = LstmConfig if settings is LstmSettings else ConvConfig
    with pytest.raises(InputError):
        config(**mistake)


def test_a_name_that_is_none_of_the_valid_ones() -> None:
    with pytest.raises(InputError, match="There is no combination 'relo'"):
        check_choice(SimpleNamespace(combination="relo"), "combination", ("relu", "tanh"))
