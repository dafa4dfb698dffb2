"""The reader of sentence pairs in columns, and the folder that real corpora lie in."""

import pytest

from sightline.data import corpora
from sightline.data.corpora import data_folder, data_path, read_tab_separated
from sightline.errors import InputError


def test_the_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(corpora.FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / "pairs.tsv").touch()
    assert data_folder() == tmp_path
    assert data_path("pairs.tsv") == tmp_path / "pairs.tsv"
    with pytest.raises(InputError, match=r"missing\.tsv"):
        data_path("missing.tsv")


def test_a_wrong_variable_is_an_error_and_no_reason_to_look_elsewhere(monkeypatch):
    monkeypatch.setenv(corpora.FOLDER_VARIABLE, "/no/such/folder")
    with pytest.raises(InputError, match="SIGHTLINE_DATA names the folder /no/such/folder"):
        data_folder()


def test_no_folder_is_guessed(monkeypatch, tmp_path):
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv(corpora.FOLDER_VARIABLE, raising=False)
    with pytest.raises(InputError, match="set SIGHTLINE_DATA"):
        data_folder()


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match="missing"):
        list(read_tab_separated(tmp_path / "missing"))


def test_columns_are_chosen_by_number(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("Go.\tVe.\tsomeone\nHi.\tHola.\n")
    assert list(read_tab_separated(path)) == [("Go.", "Ve."), ("Hi.", "Hola.")]
    assert next(read_tab_separated(path, columns=(1, 0))) == ("Ve.", "Go.")
    with pytest.raises(InputError, match=r"pairs\.tsv, line 2: 2 columns, but number 2"):
        list(read_tab_separated(path, columns=(0, 2)))


def test_real_pairs_read_as_described():
    try:
        path = data_path("tatoeba-en-es/pairs.tsv.gz")
    except InputError as reason:
        pytest.skip(str(reason))
    assert sum(1 for _ in read_tab_separated(path)) == 140_868
