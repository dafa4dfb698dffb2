"""The model that is shipped: small enough, whole, and as good as its card says."""

from __future__ import annotations

import re

import pytest

import sightline
from sightline.data.gold import ALL_REGISTERS, REGISTERS, read_gold
from sightline.models.box import BOX_MODEL, CALIBRATED_MODEL, box_folder, has_box_model

pytestmark = pytest.mark.skipif(not has_box_model(), reason="this checkout lacks the model in the box")
MAX_BYTES, MAX_PARAMETERS = 16_000_000, 8_000_000


def test_it_is_small() -> None:
    assert sum(file.stat().st_size for file in box_folder().rglob("*") if file.is_file()) <= MAX_BYTES
    assert sightline.load().module.num_parameters() < MAX_PARAMETERS


@pytest.mark.parametrize("name", [BOX_MODEL, CALIBRATED_MODEL])
def test_it_aligns_as_its_card_says(name: str) -> None:
    model = sightline.load(name)
    card = (box_folder() / BOX_MODEL / "README.md").read_text(encoding="utf-8")
    for register in REGISTERS:
        gold = read_gold(register)
        found = sightline.align(model, [pair.source for pair in gold], [pair.target for pair in gold])
        rate = sightline.score(found, [pair.alignment for pair in gold]).aer.value
        stated = re.search(rf"^\| {name} \| {register} \| ([\d.]+) \|", card, re.MULTILINE)
        assert stated is not None
        # A last digit of a score may differ between processors, and with it a link or two of the eight hundred.
        assert rate == pytest.approx(float(stated[1]), abs=0.5)


def test_it_translates_both_ways() -> None:
    model = sightline.load()
    assert model.other_way is not None
    assert sightline.translate(model, "The cat is black.", num_beams=4).text == "El gato es negro."
    assert sightline.translate(model.other_way, "El gato es negro.", num_beams=4).text == "The cat is black."


def test_it_recognises_both_languages() -> None:
    model = sightline.load()
    for pair in read_gold(*ALL_REGISTERS):
        for spanish, english in ((pair.target, pair.source), (pair.target.upper(), pair.source.upper())):
            assert model.facing(english) is model
            assert model.facing(english, spanish) is model
            assert model.facing(spanish) is model.other_way
            assert model.facing(spanish, english) is model.other_way
    for unclear in ("No.", "Madrid", "1987", "Tom", "hotel", "...", "OK"):
        assert model.facing(unclear) is model
    assert sightline.translate(model, "El gato es negro.", num_beams=4).text == "The cat is black."
