"""eflomal, where its package is installed; a clear word where it is not."""

import sys

import pytest

from sightline.alignment.eflomal import align_with_eflomal
from sightline.errors import InputError


def test_aligning():
    pytest.importorskip("eflomal", reason="the package eflomal is not installed")
    pairs = [(["a", "b"], ["x", "y"]), (["b"], ["y"]), ([], ["x"]), (["a"], ["x"])] * 20
    aligned = list(align_with_eflomal(iter(pairs)))
    assert len(aligned) == len(pairs)
    for forward, reverse in aligned[::4]:
        assert list(forward) == list(reverse) == [(0, 0), (1, 1)]


def test_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(InputError, match="pip install eflomal"):
        list(align_with_eflomal([]))
