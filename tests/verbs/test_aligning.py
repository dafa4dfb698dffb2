"""align: one pair or many, in order, by any method, in one direction or both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.alignment import symmetrization
from sightline.alignment.bitext import build_bitext
from sightline.alignment.extraction import extract_alignment
from sightline.alignment.joining import join_scores, word_shares
from sightline.alignment.saved import save_aligner
from sightline.alignment.statistical import train_aligner
from sightline.alignment.symmetrization import symmetrize
from sightline.errors import InputError
from sightline.models.loaded import LoadedModel
from sightline.verbs import explaining

NORMS = {"method": "norms", "layer": 1, "reading": "input", "extraction": "argmax"}


def test_one_pair_many_pairs_an_iterator() -> None:
    model = zoo.model("marian")
    one = sightline.align(model, zoo.SOURCES[0], zoo.TARGETS[0], **NORMS)
    many = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **NORMS)
    stream = sightline.align(model, iter(zoo.SOURCES), iter(zoo.TARGETS), **NORMS)
    assert isinstance(one, sightline.Alignment)
    assert isinstance(many, list)
    assert not isinstance(stream, list)
    assert [alignment.links for alignment in stream] == [alignment.links for alignment in many]
    assert one.links == many[0].links
    for alignment, source, target in zip(many, zoo.SOURCES, zoo.TARGETS, strict=True):
        assert (alignment.source_length, alignment.target_length) == (len(source.split()), len(target.split()))
        assert len(alignment) > 0
        assert all(0 < confidence <= 1 for confidence in alignment.confidences.values())


def test_links_are_what_the_attribution_shows() -> None:
    model = zoo.model("marian")
    whys = sightline.explain(model, zoo.SOURCES, zoo.TARGETS, method="norms", layer=1, reading="input")
    for extraction in ("argmax", "pieces", "mutual"):
        found = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **NORMS | {"extraction": extraction})
        for alignment, why in zip(found, whys, strict=True):
            assert alignment.links == extract_alignment(why, extraction).links


def test_words_that_the_user_split_stay() -> None:
    split = [["The", "cat", "sleeps", "."]], [["El", "gato", "duerme", "."]]
    (alignment,) = sightline.align(zoo.model("t5"), *split, **NORMS)
    assert (alignment.source_length, alignment.target_length) == (4, 4)


def test_a_pair_with_an_empty_side_has_no_links_and_the_others_stay_in_order() -> None:
    model = zoo.model("marian")
    sources = ["", zoo.SOURCES[0], "A cat", zoo.SOURCES[1], "  "]
    targets = ["El gato", zoo.TARGETS[0], "", zoo.TARGETS[1], ""]
    found = sightline.align(model, sources, targets, **NORMS)
    full = sightline.align(model, zoo.SOURCES[:2], zoo.TARGETS[:2], **NORMS)
    assert [alignment.links for alignment in found] == [set(), full[0].links, set(), full[1].links, set()]
    assert [(a.source_length, a.target_length) for a in found] == [(0, 2), (6, 6), (2, 0), (9, 9), (0, 0)]
    with pytest.raises(InputError, match="source 3 is too long"):  # numbered as the user counts
        sightline.align(model, ["", "A", "cat " * 300], ["", "El", "gato"], **NORMS)


def test_an_iterator_is_read_only_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "WINDOW", 4)
    monkeypatch.setattr(symmetrization, "PAIRS_AT_ONCE", 2)
    read = []

    def sources():
        for number in range(1000):
            read.append(number)
            yield zoo.SOURCES[number % 5]

    def targets():
        for number in range(1000):
            yield zoo.TARGETS[number % 5]

    model = zoo.model("marian")
    results = sightline.align(model, sources(), targets(), **NORMS, reverse=model)
    assert read == []
    for _ in range(5):
        next(results)
    assert len(read) <= 9


def test_links_of_both_directions_are_joined() -> None:
    model, reverse = zoo.model("marian"), zoo.fresh("m2m100")
    forward = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **NORMS)
    backward = [one.flipped() for one in sightline.align(reverse, zoo.TARGETS, zoo.SOURCES, **NORMS)]
    for rule in ("intersection", "union", None):
        options = {"reverse": reverse, "symmetrize": rule, "join": "links"}
        joined = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **NORMS, **options)
        for found, one, other in zip(joined, forward, backward, strict=True):
            assert found.links == symmetrize(one, other, rule or "grow-diag-strict").links


def test_scores_of_both_directions_are_joined() -> None:
    model, reverse = zoo.model("marian"), zoo.fresh("m2m100")
    joined = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **NORMS, reverse=reverse)
    settings = {name: value for name, value in NORMS.items() if name != "extraction"}
    for found, source, target in zip(joined, zoo.SOURCES, zoo.TARGETS, strict=True):
        ahead, back = (
            sightline.explain(*pair, **settings) for pair in ((model, source, target), (reverse, target, source))
        )
        one, other = (extract_alignment(why, NORMS["extraction"]) for why in join_scores([ahead], [back]))
        assert found.links == symmetrize(one, other.flipped(), "grow-diag-strict").links


@pytest.mark.parametrize("extraction", ["argmax", "argmax-words", "pieces", "threshold", "mutual", "mutual-pieces"])
def test_an_extraction_does_what_it_says_whether_scores_are_joined_or_not(extraction: str) -> None:
    model, reverse = zoo.model("marian"), zoo.fresh("m2m100")
    settings = {"method": "attention", "layer": 1, "reading": "output"}
    options = settings | {"extraction": extraction, "reverse": reverse}
    joined = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **options)
    whys = sightline.explain(model, zoo.SOURCES, zoo.TARGETS, **settings)
    backs = sightline.explain(reverse, zoo.TARGETS, zoo.SOURCES, **settings)
    for found, why, back in zip(joined, whys, backs, strict=True):
        one, other = (extract_alignment(reading, extraction) for reading in join_scores([why], [back]))
        assert found == symmetrize(one, other.flipped(), "grow-diag-strict")
    plain = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **options | {"extraction": "argmax-words"})
    if extraction in ("pieces", "threshold"):
        assert joined != plain


def test_an_unknown_way_to_join_is_refused() -> None:
    with pytest.raises(InputError, match="scores"):
        sightline.align(zoo.model("marian"), "a", "b", join="words")


@pytest.mark.parametrize("name", [*zoo.TRANSLATORS, "gpt2", "llama"])
def test_every_family_aligns(name: str) -> None:
    found = sightline.align(zoo.model(name), zoo.SOURCES, zoo.TARGETS, layer=-1)
    for alignment, source, target in zip(found, zoo.SOURCES, zoo.TARGETS, strict=True):
        assert (alignment.source_length, alignment.target_length) == (len(source.split()), len(target.split()))


@pytest.mark.parametrize("method", ["word_saliency", "erasure", "similarity", "attention"])
def test_other_methods_align(method: str) -> None:
    found = sightline.align(zoo.model("marian"), zoo.SOURCES[:2], zoo.TARGETS[:2], method=method)
    assert all(len(alignment) > 0 for alignment in found)


# Similarity of encoder states


def test_similarity_compares_the_states_of_two_passes() -> None:
    model = zoo.model("bert-classifier")
    encoder = sightline.load(model.module.bert, model.tokenizer)
    for measure, layer in (("cosine", 1), ("dot", -1)):
        options = {"method": "similarity", "measure": measure, "layer": layer}
        found = sightline.align(encoder, zoo.SOURCES, zoo.TARGETS, **options, extraction="mutual-pieces")
        for alignment, source, target in zip(found, zoo.SOURCES, zoo.TARGETS, strict=True):
            with torch.no_grad():
                states = [
                    model.module.bert(**model.tokenizer(text, return_tensors="pt"), output_hidden_states=True)
                    .hidden_states[layer][0]
                    .numpy()
                    for text in (source, target)
                ]
            if measure == "cosine":
                states = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in states]
            scores = (states[1] @ states[0].T)[1:-1, 1:-1]
            scores = np.maximum(scores, 0)
            words = [encoder.encode(text, None).source.word_ids[1:-1] for text in (source, target)]
            expected = {
                (words[0][i], words[1][j])
                for j, i in np.ndindex(*scores.shape)
                if scores[j, i] > 0 and i == scores[j].argmax() and j == scores[:, i].argmax()
            }
            assert alignment.links == expected


def test_a_text_is_most_like_itself() -> None:
    for name in ("marian", "bert-filler", "m2m100"):
        model = zoo.model(name)
        if model.task == "fill":
            model = sightline.load(model.module.base_model, model.tokenizer)
        texts = ["The cat sleeps on a mat.", "A dog sees birds"]
        for alignment in sightline.align(model, texts, texts, method="similarity"):
            assert {(i, i) for i in range(alignment.source_length or 0)} <= alignment.links


# Mistakes

MISTAKES = {
    "no method 'norm'. Did you mean 'norms'": {"method": "norm"},
    "no extraction 'armgax'. Did you mean 'argmax'": {"extraction": "armgax"},
    "no setting of norms 'layers'. Did you mean 'layer'": {"layers": 1},
    "no setting of similarity 'head'": {"method": "similarity", "head": 1},
    "no measure of similarity 'cos'": {"method": "similarity", "measure": "cos"},
    "threshold belongs to the extractions": {"threshold": 0.5},
    "joins two directions": {"symmetrize": "union"},
    "no symmetrisation rule 'grow'": {"symmetrize": "grow"},
    "no layer 7": {"layer": 7},
    "no option 'symetrize' of align. Did you mean 'symmetrize'?": {"symetrize": "union"},
    "no effort 'great'": {"effort": "great"},
    "encoder's states are numbered 0 to 2": {"method": "similarity", "layer": 9},
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_told_in_one_sentence(message: str) -> None:
    with pytest.raises(InputError) as caught:
        sightline.align(zoo.model("marian"), "The cat", "El gato", **MISTAKES[message])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mistakes_are_told_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadedModel, "encode", lambda *_, **__: pytest.fail("began to work"))
    for mistake in ({"method": "magic"}, {"extraction": "magic"}, {"symmetrize": "magic"}):
        with pytest.raises(InputError):
            sightline.align(zoo.model("marian"), iter(zoo.SOURCES), iter(zoo.TARGETS), **mistake)


def test_a_model_without_targets_is_sent_to_similarity() -> None:
    with pytest.raises(InputError, match="makes no target from a source: align with the method similarity"):
        sightline.align(zoo.model("bert-classifier"), "The cat", "El gato")
    with pytest.raises(InputError, match="no targets to align with"):
        sightline.align(zoo.model("marian"), zoo.SOURCES, None)


# Confidence, and a statistical aligner joined with the model


def test_links_that_are_not_sure_enough_are_left_out() -> None:
    model = zoo.model("marian")
    every = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **NORMS)
    sure = sightline.align(model, zoo.SOURCES, zoo.TARGETS, **NORMS, min_confidence=0.3)
    assert 0 < sum(map(len, sure)) < sum(map(len, every))
    for some, links in zip(sure, every, strict=True):
        assert dict(some.confidences) == {link: c for link, c in links.confidences.items() if c >= 0.3}
    with pytest.raises(InputError, match="min_confidence is 2"):
        sightline.align(model, zoo.SOURCES, zoo.TARGETS, min_confidence=2.0)


@pytest.mark.parametrize("one_way", [True, False])
def test_a_statistical_aligner_is_joined_by_the_product(one_way: bool, tmp_path: Path) -> None:
    model, reverse = zoo.model("marian"), zoo.fresh("m2m100")
    words = [(source.split(), target.split()) for source, target in zip(zoo.SOURCES, zoo.TARGETS, strict=True)]
    aligner = train_aligner(build_bitext(words), "diagonal")
    save_aligner(aligner, tmp_path / "aligner.npz")
    options = NORMS | {"extraction": "argmax-words", "reverse": False if one_way else reverse}
    named = {"symmetrize": None if one_way else "intersection"}
    found = {
        how: sightline.align(model, iter(zoo.SOURCES), iter(zoo.TARGETS), **options, **named, with_aligner=given)
        for how, given in (("trained", "diagonal"), ("file", tmp_path / "aligner.npz"), ("given", aligner))
    }
    settings = {name: NORMS[name] for name in ("method", "layer", "reading")}
    for number, (trained, read, given) in enumerate(zip(*found.values(), strict=True)):
        assert trained.links == read.links == given.links
        ahead = sightline.explain(model, zoo.SOURCES[number], zoo.TARGETS[number], **settings)
        back = sightline.explain(reverse, zoo.TARGETS[number], zoo.SOURCES[number], **settings)
        (posteriors,) = aligner.posteriors(words[number : number + 1])
        joint = word_shares(ahead).of_words
        if not one_way:
            joint = np.sqrt(joint * word_shares(back).of_words.T)
        joint = joint * posteriors
        links = {(int(row.argmax()), target) for target, row in enumerate(joint) if row.max() > 0}
        if not one_way:
            links &= {(source, int(column.argmax())) for source, column in enumerate(joint.T) if column.max() > 0}
        assert trained.links == links


def test_an_aligner_and_what_it_cannot_be_joined_with(tmp_path: Path) -> None:
    model = zoo.model("marian")
    with pytest.raises(InputError, match="no probabilities"):
        sightline.align(model, "The cat", "El gato", method="similarity", with_aligner="hmm")
    with pytest.raises(InputError, match="nothing is no file of a saved aligner, and none of ibm1, diagonal, hmm"):
        sightline.align(model, "The cat", "El gato", with_aligner=tmp_path / "nothing")
