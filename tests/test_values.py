"""Values of settings: of their type, or refused in one sentence."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import zoo

import sightline
from sightline.cli.settings import read_settings
from sightline.errors import InputError
from sightline.methods import METHODS
from sightline.values import check_share


@pytest.mark.parametrize("name", METHODS)
def test_the_defaults_are_of_their_types(name: str) -> None:
    defaults = METHODS[name].defaults
    given = {field.name: getattr(defaults, field.name) for field in fields(defaults)}
    assert METHODS[name].settings(name, given) == defaults


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("value", ["foo", "nan", "-1", "inf", "true", "none", "9" * 30, "9" * 5000, "", "1e400"])
def test_every_setting_takes_or_refuses_any_text(name: str, value: str) -> None:
    for field in fields(METHODS[name].defaults):
        with suppress(InputError):
            METHODS[name].settings(name, read_settings([f"{field.name}={value}"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smoothgrad=foo", "The setting smoothgrad of attention is 'foo': it should be a whole number"),
        ("seed=-1", "The seed of attention is -1: it should be a whole number from 0"),
        ("seed=99999999999999", "The seed of attention is"),
        ("sigma=nan", "The setting sigma of attention is nan: it should be a number"),
        ("relative=5", "The setting relative of attention is 5: it should be true or false"),
        ("kind=5", "The setting kind of attention is 5: it should be a name or none"),
    ],
)
def test_a_value_of_another_type_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sightline.explain(zoo.model("marian"), "the cat", "el gato", **read_settings([text]))


def test_numbers_of_numpy_are_numbers() -> None:
    assert METHODS["attention"].settings("attention", {"layer": np.int64(1), "sigma": np.float32(0.5)}).layer == 1


@pytest.mark.parametrize("threshold", [float("nan"), -0.1, 1.5])
def test_a_threshold_is_a_number_from_0_to_1(threshold: Any) -> None:
    with pytest.raises(InputError, match=r"The threshold is .*: it should be a number from 0 to 1"):
        sightline.align(zoo.model("marian"), ["the cat"], ["el gato"], extraction="threshold", threshold=threshold)
    check_share("threshold", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_beams": 100_000}, "num_beams is 100000: it should be a whole number from 1 to 256"),
        ({"num_beams": 0}, "num_beams is 0"),
        ({"num_beams": "many"}, "num_beams is 'many'"),
        ({"num_beams": 2, "length_penalty": float("nan")}, "length_penalty is nan: it should be a number"),
        ({"max_new_tokens": -5}, "The options of generate cannot be used"),
    ],
)
def test_options_of_generate(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sightline.translate(zoo.model("marian"), "the cat", **options)
