"""Memory: sizes are read as people write them, and less memory means smaller passes, never other numbers."""

import numpy as np
import pytest
import zoo

import sightline
from sightline.errors import InputError
from sightline.models.budget import gradient_positions_that_fit, positions_that_fit, read_size


@pytest.mark.parametrize(
    ("text", "size"), [(12, 12), ("12", 12), ("500MB", 500 * 2**20), ("1.5 GiB", 3 * 2**29), ("2gb", 2**31)]
)
def test_sizes(text: int | str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["plenty", "1.2.3GB", ".", "9" * 400 + "GB"])
def test_a_size_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match="look like 500MB or 2GB"):
        read_size(text)


def test_less_memory_means_smaller_passes_and_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    roomy, tight = zoo.fresh("marian"), zoo.fresh("marian", max_memory="200KB")
    assert positions_that_fit(tight, 20) < positions_that_fit(roomy, 20)
    assert gradient_positions_that_fit(tight, 20) < gradient_positions_that_fit(roomy, 20)
    sizes = []
    batch = type(tight).batch
    monkeypatch.setattr(type(tight), "batch", lambda self, e: sizes.append(len(e)) or batch(self, e))
    for method in ("attention", "word_saliency", "erasure"):
        one, other = (sightline.explain(m, zoo.SOURCES, zoo.TARGETS, method=method) for m in (roomy, tight))
        for why, again in zip(one, other, strict=True):
            np.testing.assert_allclose(again.scores, why.scores, rtol=1e-3, atol=1e-5)
    assert min(sizes) == 1
