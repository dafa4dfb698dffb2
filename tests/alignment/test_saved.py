"""Aligners on disk: the same after loading, and refused in one sentence when anything in the file cannot be."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sightline.alignment.bitext import build_bitext
from sightline.alignment.saved import load_aligner, save_aligner
from sightline.alignment.statistical import ALIGNERS, train_aligner
from sightline.errors import InputError

PAIRS = [
    (["the", "red", "house"], ["la", "maison", "rouge"]),
    (["the", "door"], ["la", "porte"]),
    (["red", "door"], ["porte", "rouge"]),
]


@pytest.fixture(params=ALIGNERS)
def saved(request, tmp_path):
    path = tmp_path / "aligner"
    ambiguous = [(["the", letter], [article, letter]) for article in ("la", "le") for letter in "bcd"]
    aligner = train_aligner(build_bitext([*PAIRS, *ambiguous, (["ŝi", "a b"], ["dix‑huit"])]), request.param)
    save_aligner(aligner, path)
    return aligner, path


def change(path, name, new):
    """Replace an array, or what a function makes of it, in a saved file."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    arrays[name] = new(arrays[name]) if callable(new) else new
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def change_about(path, edit):
    def new(array):
        about = json.loads(array.tobytes())
        edit(about)
        return np.frombuffer(json.dumps(about).encode(), np.uint8)

    change(path, "about", new)


def test_saved_and_loaded(saved):
    aligner, path = saved
    assert [file.name for file in path.parent.iterdir()] == ["aligner"]
    loaded = load_aligner(path)
    assert list(loaded.align(PAIRS)) == list(aligner.align(PAIRS))
    for one, other in ((loaded.forward, aligner.forward), (loaded.backward, aligner.backward)):
        assert one.log_likelihoods == other.log_likelihoods
        for found, expected in zip(one.posteriors(PAIRS), other.posteriors(PAIRS), strict=True):
            assert np.array_equal(found, expected)


def test_files_that_are_no_aligner(saved):
    path = saved[1]
    with pytest.raises(InputError, match="no file"):
        load_aligner(path.with_name("nowhere"))
    for length in (0, 10, len(path.read_bytes()) - 100):
        cut = path.with_name("cut")
        cut.write_bytes(path.read_bytes()[:length])
        with pytest.raises(InputError, match="not an aligner"):
            load_aligner(cut)
    encrypted = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # a bit of the flags, before and after the members
        encrypted[encrypted.index(mark) + place] |= 1
    path.write_bytes(encrypted)
    with pytest.raises(InputError, match="encrypted"):
        load_aligner(path)
    np.savez(path.open("wb"), about=np.zeros(3, np.uint8))
    with pytest.raises(InputError, match="not an aligner"):
        load_aligner(path)


def at(place, value):
    def changed(array):
        array = array.copy()
        array[place] = value
        return array

    return changed


IMPOSSIBLE = {
    "a row before the table": ("forward.starts", at(0, -5)),
    "a row behind the table": ("forward.starts", at(-1, 10**9)),
    "rows that go back": ("forward.starts", at(1, 10**9)),
    "too few rows": ("backward.starts", lambda array: array[:-1]),
    "rows of another type": ("backward.starts", lambda array: array.astype(np.float64)),
    "a table of two dimensions": ("forward.targets", lambda array: array[:, None]),
    "a word before the vocabulary": ("forward.targets", at(0, -1)),
    "a word behind the vocabulary": ("backward.targets", at(-1, 10**6)),
    "too few values": ("forward.values", lambda array: array[:-1]),
    "a value that is no number": ("forward.values", at(0, np.nan)),
    "a value that is no probability": ("backward.values", at(0, 1.5)),
    "a negative value": ("backward.null", at(0, -0.1)),
    "NULL without some words": ("backward.null", lambda array: array[1:]),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_tables_that_cannot_be(saved, name):
    _, path = saved
    change(path, *IMPOSSIBLE[name])
    with pytest.raises(InputError, match="not an aligner that Sightline saved"):
        load_aligner(path)


def test_a_row_out_of_order(saved):
    _, path = saved
    with np.load(path) as file:
        starts = file["forward.starts"]
    first = starts[np.flatnonzero(np.diff(starts) > 1)[0]]
    change(path, "forward.targets", lambda array: at(slice(first, first + 2), array[first : first + 2][::-1])(array))
    with pytest.raises(InputError, match="not in order"):
        load_aligner(path)


ODD = {
    "another format": lambda about: about.update(format=99),
    "no vocabulary": lambda about: about.pop("source"),
    "a word twice": lambda about: about["source"].__setitem__(0, about["source"][1]),
    "a word that is a number": lambda about: about["target"].__setitem__(0, 7),
    "a vocabulary that is too long": lambda about: about["source"].append("more"),
    "no settings": lambda about: about.update(forward=None),
    "a prior that is a text": lambda about: about["forward"].update(null_prior="x"),
    "a prior above one": lambda about: about["forward"].update(null_prior=2),
    "a likelihood that is a text": lambda about: about["backward"].update(log_likelihoods=["x"]),
}


@pytest.mark.parametrize("name", ODD)
def test_descriptions_that_cannot_be(saved, name):
    _, path = saved
    change_about(path, ODD[name])
    with pytest.raises(InputError, match="not an aligner that Sightline saved"):
        load_aligner(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_table_with_any_one_number_changed_never_breaks_anything(saved, data):
    """Either it is refused, or it aligns: never a crash of compiled code."""
    _, path = saved
    original = path.read_bytes()
    name = data.draw(st.sampled_from(["starts", "targets"]))
    direction = data.draw(st.sampled_from(["forward", "backward"]))
    try:
        change(
            path,
            f"{direction}.{name}",
            lambda array: at(
                data.draw(st.integers(0, len(array) - 1)),
                data.draw(st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 20)),
            )(array),
        )
        try:
            loaded = load_aligner(path)
        except InputError:
            return
        assert len(list(loaded.align(PAIRS))) == len(PAIRS)
    finally:
        path.write_bytes(original)


def test_a_place_that_cannot_be_written(saved, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        save_aligner(saved[0], tmp_path / "nowhere" / "aligner")
