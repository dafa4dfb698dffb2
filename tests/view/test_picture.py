import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from view.attributions import build, cat

from sightline.errors import InputError
from sightline.view.picture import read_picture, write_number


def with_heads():
    return build(["a", "b", "c"], ["x", "y"], axes={"layer": 3, "head": 4})


def test_leading_axes_are_averaged_or_selected():
    attribution = with_heads()
    scores = np.array(attribution["scores"])
    for at, expected, said in [
        ({}, scores.mean((0, 1)), "mean over layers and heads"),
        ({"layer": 1}, scores[1].mean(0), "layer 1, mean over heads"),
        ({"head": 2}, scores[:, 2].mean(0), "head 2, mean over layers"),
        ({"layer": -1, "head": 0}, scores[2, 0], "layer 2, head 0"),
    ]:
        picture = read_picture(attribution, at)
        np.testing.assert_allclose(picture.scores, expected, rtol=1e-6)
        assert picture.selection == said
    assert read_picture(cat()).selection == ""


@pytest.mark.parametrize(
    ("at", "message"),
    [({"heads": 1}, "no leading axis 'heads'. Did you mean 'head'"), ({"layer": 3}, "no layer 3: choose from 0 to 2")],
)
def test_a_position_that_is_not_there(at, message):
    with pytest.raises(InputError, match=message):
        read_picture(with_heads(), at)


def test_scores_that_do_not_fit_the_tokens():
    with pytest.raises(InputError, match="2 rows and 3 columns"):
        read_picture(build(["a", "b", "c"], ["x", "y"], scores=[[1, 2], [3, 4]]))
    with pytest.raises(InputError, match="1 leading axes"):
        read_picture(build(["a"], ["x"], axes={"layer": 1}, scores=[[1]]))


def test_scores_that_are_not_numbers():
    with pytest.raises(InputError, match="target position 1 and column 0 is not a finite number"):
        read_picture(build(["a"], ["x", "y"], scores=[[1.0], [float("nan")]]))


def test_an_axis_without_positions():
    with pytest.raises(InputError, match="'layer' of the scores has no positions"):
        read_picture(build(["a"], ["x"], axes={"layer": 0}, scores=np.zeros((0, 1, 1))))


@given(arrays(np.float32, (3, 4), elements=st.floats(-100, 100, width=32)))
def test_strengths_and_shares_are_what_they_say(scores):
    picture = read_picture(build("abcd", "xyz", scores=scores))
    for row, strengths, shares in zip(scores.astype(float), picture.strengths, picture.shares, strict=True):
        largest, total = max(abs(row)), sum(abs(row))
        np.testing.assert_allclose(strengths, row / largest if largest else 0 * row, rtol=1e-5, atol=1e-30)
        np.testing.assert_allclose(shares, row / total if total else 0 * row, rtol=1e-5, atol=1e-30)
    assert picture.signed == bool((scores < 0).any())


def test_strongest_is_by_magnitude_with_ties_to_the_earlier_and_without_zeros():
    picture = read_picture(build("abcde", "x", scores=[[0.2, -0.5, 0.0, 0.2, 0.1]]))
    assert picture.strongest(0, 3) == [1, 0, 3]
    assert picture.strongest(0, 9) == [1, 0, 3, 4]


def test_special_positions_and_the_boundary():
    picture = read_picture(build(["a", "</s>"], ["x", "y"], prefix=["x"], special_source=[1]))
    assert [label.special for label in picture.columns] == [False, True, False]
    assert [label.text for label in picture.columns] == ["a", "</s>", "x"]
    assert picture.boundary == 2
    assert picture.has_prefix
    assert not read_picture(cat()).has_prefix


def test_long_sides_are_cut_with_a_note():
    attribution = build([f"s{i}" for i in range(2000)], [f"t{i}" for i in range(7)], prefix=[f"t{i}" for i in range(7)])
    picture = read_picture(attribution, row_limit=5, column_limit=6)
    scores = np.array(attribution["scores"], np.float32)
    kept = [*range(6), *range(2000, 2006)]
    np.testing.assert_array_equal(picture.scores, scores[:5, kept])
    assert [label.text for label in picture.columns] == [f"s{i}" for i in range(6)] + [f"t{i}" for i in range(6)]
    assert picture.boundary == 6
    assert picture.notes == (
        "Only the first 6 of 2,000 source tokens are shown; colours are relative to what is shown.",
        "Only the first 6 of 7 prefix tokens are shown; colours are relative to what is shown.",
        "Only the first 5 of 7 target tokens are shown.",
    )
    assert read_picture(attribution).notes == ()


@pytest.mark.parametrize(("source", "target"), [([], ["x"]), (["a"], []), ([], [])])
def test_a_side_may_be_empty(source, target):
    picture = read_picture(build(source, target, axes={"layer": 2}))
    assert picture.strengths.shape == (len(target), len(source))


def test_settings_are_written_as_text():
    picture = read_picture(build("a", "x", settings={"on": True, "layers": [1, 2], "name": "é\n", "long": "y" * 500}))
    assert dict(picture.settings) == {"on": "true", "layers": "[1, 2]", "name": r"é\n", "long": "y" * 99 + "…"}


def test_scores_without_a_method_still_have_a_name():
    assert read_picture(build("a", "x", method="")).method == "scores"


@pytest.mark.parametrize(
    ("score", "text"),
    [(0, "0.000"), (0.4, "0.400"), (-0.7919, "-0.792"), (0.03456, "0.0346"), (1.2e-7, "1.2e-07"), (123.4, "123")],
)
def test_numbers_are_short(score, text):
    assert write_number(score) == text


def test_settings_at_their_default_are_left_out():
    picture = read_picture(
        cat() | {"settings": {"layer": 1, "head": "sum"}, "defaults": {"layer": "all", "head": "sum"}}
    )
    assert picture.settings == (("layer", "1"),)
