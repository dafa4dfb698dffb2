"""Alternatives are what the model's own softmax ranks highest; a contrast looks where two targets first differ."""

import numpy as np
import pytest
import torch
import zoo

import sightline
from sightline.errors import InputError

SOURCE, TARGET = "The cat sleeps on the mat.", "El gato duerme en la alfombra."


@pytest.mark.parametrize("name", ["marian", "lstm", "gpt2", "t5"])
def test_alternatives_are_ranked_by_the_models_own_probabilities(name):
    model = zoo.model(name)
    found = sightline.alternatives(model, SOURCE, TARGET, word=1, count=5)
    example = model.encode(SOURCE, TARGET)
    position = example.label_tokens.word_ids.index(1)
    with torch.no_grad(), model.evaluating():
        row = example.label_rows[position]
        probabilities = model.module(**model.inputs(model.batch([example]))).logits[0, row].float().softmax(-1)
    expected = probabilities.sort(descending=True).values[:5]
    assert [one.rank for one in found] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose([one.probability for one in found], expected, rtol=1e-5)
    assert all(one.text for one in found)


def test_an_alternative_is_completed_to_a_whole_word():
    model = sightline.load()
    found = sightline.alternatives(model, "I heard the thunderstorm.", "Oí la tormenta.", word=2)
    pieces = [model.encode("I", one.text).labels for one in found]
    assert max(map(len, pieces)) > 2  # at least one has several pieces, and the end token


def test_labels_are_the_alternatives_of_a_classifier():
    model = zoo.model("bert-classifier")
    found = sightline.alternatives(model, SOURCE)
    assert {one.text for one in found} == set(model.module.config.id2label.values())
    assert sum(one.probability for one in found) == pytest.approx(1)


@pytest.mark.parametrize("name", ["marian", "gpt2", "lstm"])
@pytest.mark.parametrize("method", ["erasure", "gradient"])
def test_a_contrast_is_the_difference_where_two_targets_first_differ(name, method):
    model = zoo.model(name)
    other = TARGET.replace("duerme", "perro pequeño")  # of another length
    found = sightline.contrast(model, SOURCE, TARGET, "perro pequeño", word=2, method=method)
    one, two = model.encode(SOURCE, TARGET).labels, model.encode(SOURCE, other).labels
    position = next(i for i in range(len(one)) if one[i] != two[i])
    assert found.scores.shape[0] == 1
    assert found.target.pieces == model.encode(SOURCE, TARGET).at([position]).target.pieces
    # a target of the same length with the foil at that place is contrasted as before
    same_length = sightline.explain(model, SOURCE, TARGET, method=method, positions=[position], contrast=other)
    np.testing.assert_array_equal(found.scores, same_length.scores)


def test_a_contrast_measured_by_erasure_is_what_the_probabilities_say():
    model = zoo.model("marian")
    words = SOURCE.split()
    found = (
        sightline.contrast(model, SOURCE, TARGET, "perro", word=1, signed=True).words(source="mean").without_special()
    )
    example = model.encode(SOURCE, TARGET)
    foil = model.encode(SOURCE, TARGET.replace("gato", "perro")).labels
    position = next(i for i in range(len(foil)) if example.labels[i] != foil[i])

    def preference(source):
        batch = model.batch([model.encode(source, TARGET)])
        with torch.no_grad(), model.evaluating():
            probabilities = model.logits(batch)[0, position].double().softmax(-1)
        return float(probabilities[example.labels[position]] - probabilities[foil[position]])

    whole = preference(SOURCE)
    for number, word in enumerate(words):
        if len([w for w in model.encode(SOURCE, TARGET).source.word_ids if w == number]) == 1:  # a word of one piece
            without = preference(" ".join(words[:number] + words[number + 1 :]))
            assert found.scores[0, number] == pytest.approx(whole - without, abs=1e-5), word


MISTAKES = {
    "There is no word 9": {"word": 9, "instead": "perro"},
    "is what the target has there already": {"word": 1, "instead": "gato"},
    "cannot contrast two outputs": {"word": 1, "instead": "perro", "method": "norms"},
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_mistakes_are_told(sentence):
    with pytest.raises(InputError, match=sentence):
        sightline.contrast(zoo.model("marian"), SOURCE, TARGET, **MISTAKES[sentence])


def test_there_is_no_such_word_to_replace():
    with pytest.raises(InputError, match="There is no word 6: the target has 6, numbered 0 to 5"):
        sightline.alternatives(zoo.model("marian"), SOURCE, TARGET, word=6)
