"""Scores: they print like sacreBLEU's and cannot be changed."""

import dataclasses
import json
import pickle

import pytest

from sightline.scores import Score
from sightline.version import __version__

SCORE = Score("AER", 10.754, (9.9, 11.61), {"sentences": 447, "seed": 1}, version="1.2")


@pytest.mark.parametrize(
    ("score", "printed"),
    [
        (SCORE, "AER|sentences:447|seed:1|sightline:1.2 = 10.75 [9.90, 11.61]"),
        (Score("tau", 0.41), f"tau|sightline:{__version__} = 0.41"),
        (
            Score("JSD", 0.0012, settings={"unit": "nats"}, decimals=4, version="1.2"),
            "JSD|unit:nats|sightline:1.2 = 0.0012",
        ),
    ],
)
def test_printing(score, printed):
    assert str(score) == printed


def test_as_data():
    assert json.loads(json.dumps(SCORE.to_dict())) == {
        "name": "AER",
        "value": 10.754,
        "interval": [9.9, 11.61],
        "signature": "sentences:447|seed:1|sightline:1.2",
    }
    assert float(SCORE) == 10.754


def test_immutable_and_comparable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SCORE.value = 0.0
    with pytest.raises(TypeError):
        SCORE.settings["seed"] = 2
    assert pickle.loads(pickle.dumps(SCORE)) == SCORE
    assert len({SCORE, pickle.loads(pickle.dumps(SCORE))}) == 1
