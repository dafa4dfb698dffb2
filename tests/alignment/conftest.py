"""Real alignments to check against, where they are."""

import pytest

from sightline.data.corpora import data_path
from sightline.errors import InputError


def _folder(name):
    try:
        return data_path(name)
    except InputError as absent:
        pytest.skip(str(absent))


@pytest.fixture
def rwth():
    """The German-English test set with the hypotheses that others published for it."""
    return _folder("rwth-de-en")


@pytest.fixture
def hansard():
    """The English-French training text and test set."""
    return _folder("hansard-en-fr")
