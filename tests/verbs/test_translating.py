"""translate: the model's own translation, and the alignment of what it really generated."""

from __future__ import annotations

import pytest
import torch
import zoo

import sightline
from sightline.alignment.extraction import extract_alignment
from sightline.alignment.links import Alignment
from sightline.alignment.markup import parse_markup, strip_markup
from sightline.alignment.restoring import link_placeholders, restore_markup
from sightline.alignment.scanning import find_markup
from sightline.errors import InputError
from sightline.text.words import tokens_of_ids
from sightline.verbs import explaining

NORMS = {"method": "norms", "layer": 1, "reading": "input", "extraction": "argmax"}


@pytest.mark.parametrize("name", ["marian", "m2m100", "t5", "gpt2"])
def test_translations_are_those_of_generate(name: str) -> None:
    model = zoo.model(name)
    for search in ({"num_beams": 1}, {"num_beams": 3, "length_penalty": 0.6}):
        found = sightline.translate(model, zoo.SOURCES, max_new_tokens=8, **search)
        for source, translation in zip(zoo.SOURCES, found, strict=True):
            ids = model.answer([model.encode(source, None)], max_new_tokens=8, **search)[0]
            assert translation.text == " ".join(tokens_of_ids(model.tokenizer, ids).words)
            assert translation.alignment is None


@pytest.mark.parametrize("name", ["marian", "m2m100", "t5"])
def test_the_alignment_is_that_of_what_was_generated(name: str) -> None:
    model = zoo.model(name)
    search = {"max_new_tokens": 12, "num_beams": 2}
    found = sightline.translate(model, zoo.SOURCES, align=NORMS, **search)
    settings = {"method": "norms", "layer": 1, "reading": "input"}
    for source, translation in zip(zoo.SOURCES, found, strict=True):
        why = sightline.explain(model, source, generation=search, **settings)
        assert translation.words == why.target.words
        assert translation.alignment is not None
        assert translation.alignment.links == extract_alignment(why, "argmax").links
        assert translation.alignment.target_length == len(translation.words)


def test_one_many_a_stream_and_empty_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.model("marian")
    sources = ["", *zoo.SOURCES, "   "]
    many = sightline.translate(model, sources, align=NORMS, max_new_tokens=6)
    one = sightline.translate(model, zoo.SOURCES[0], align=NORMS, max_new_tokens=6)
    assert one.text == many[1].text
    assert one.alignment is not None
    assert many[1].alignment is not None
    assert one.alignment.links == many[1].alignment.links
    assert many[0].text == many[-1].text == ""
    assert many[0].alignment == sightline.Alignment()
    monkeypatch.setattr(explaining, "WINDOW", 2)
    read = []

    def stream():
        for source in sources * 100:
            read.append(source)
            yield source

    results = sightline.translate(model, stream(), align=NORMS, max_new_tokens=6)
    assert read == []
    for expected in many:
        found = next(results)
        assert found.text == expected.text
        assert found.alignment is not None
        assert expected.alignment is not None
        assert found.alignment.links == expected.alignment.links
    assert len(read) < 20


def test_auto_and_both_directions() -> None:
    model = zoo.model("marian")
    found = sightline.translate(model, zoo.SOURCES, align=True, max_new_tokens=6)
    assert all(translation.alignment is not None for translation in found)
    joined = sightline.translate(
        model, zoo.SOURCES, align={"reverse": model, "symmetrize": "union", "join": "links", **NORMS}, max_new_tokens=6
    )
    alone = sightline.translate(model, zoo.SOURCES, align=NORMS, max_new_tokens=6)
    for both, one in zip(joined, alone, strict=True):
        assert both.alignment is not None
        assert one.alignment is not None
        assert both.alignment.links >= one.alignment.links


def test_a_model_in_training_is_left_so() -> None:
    model = zoo.fresh("marian")
    model.module.train()
    once, again = (sightline.translate(model, zoo.SOURCES, max_new_tokens=6) for _ in range(2))
    assert once == again
    assert model.module.training
    assert torch.is_grad_enabled()


def test_mistakes() -> None:
    with pytest.raises(InputError, match="does not generate text"):
        sightline.translate(zoo.model("bert-classifier"), "The cat")
    with pytest.raises(InputError, match="no option of generate 'beams'"):
        sightline.translate(zoo.model("marian"), "The cat", beams=3)
    with pytest.raises(InputError, match="no extraction 'magic'"):
        sightline.translate(zoo.model("marian"), "The cat", align={"extraction": "magic"})


# Markup


def test_markup_is_translated_around() -> None:
    model = zoo.model("marian")
    texts = ["The <b>cat</b> sleeps {0}.", "<p></p>", "", "no markup"]
    found = sightline.translate_markup(model, texts, align=NORMS, max_new_tokens=6)
    plain = sightline.translate(model, ["The cat sleeps .", "no markup"], align=NORMS, max_new_tokens=6)
    assert strip_markup(found[0]) == plain[0].words
    assert sorted(found[0][start:end] for start, end in find_markup(found[0])) == ["</b>", "<b>", "{0}"]
    assert found[1:3] == ["<p></p>", ""]
    assert found[3] == plain[1].text
    assert sightline.translate_markup(model, texts[0], align=NORMS, max_new_tokens=6) == found[0]
    assert list(sightline.translate_markup(model, iter(texts), align=NORMS, max_new_tokens=6)) == found


def test_markup_is_put_onto_a_translation_that_is_there() -> None:
    model = zoo.model("marian")
    sources = ["The <b>cat</b> sleeps on {0} &amp; %s.", "no markup at all", "<i></i>", ""]
    targets = ["El gato duerme en  {0} y %s.", "nada  de marcas", "", "algo"]
    found = sightline.transfer_markup(model, sources, targets, **NORMS)
    # Placeholders that the translation has stay in their places; an entity that it lacks became a word.
    assert strip_markup(found[0], frozenset(["{0}", "%s"])) == tuple(targets[0].split())
    assert found[0].count("<b>") == found[0].count("</b>") == 1
    assert "&amp;" not in found[0]
    # A translation of our own loses nothing.
    assert "&amp;" in sightline.translate_markup(model, sources[0], align=NORMS, max_new_tokens=6)
    assert found[1:] == ["nada de marcas", "<i></i>", "algo"]
    assert sightline.transfer_markup(model, sources[0], targets[0], **NORMS) == found[0]
    assert list(sightline.transfer_markup(model, iter(sources), iter(targets), **NORMS)) == found


def test_placeholders_of_both_sides_go_together() -> None:
    kept = frozenset(["{0}", "{1}"])
    markup = parse_markup("<b>{0}</b> and {1} <i>met</i> {0}", kept)
    words = ["{1}", "y", "{0}", "vieron", "a", "{0}."]
    linked = link_placeholders(markup, words, Alignment([(0, 0), (2, 1), (1, 1), (3, 3), (4, 2)], (), 5, 6))
    assert linked.links == {(0, 2), (4, 5), (2, 0), (1, 1), (3, 3)}
    assert restore_markup(markup, words, linked) == "{1} y <b>{0}</b> <i>vieron</i> a {0}."
