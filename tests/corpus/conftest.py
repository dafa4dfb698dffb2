"""What the tests of corpora share: a tiny model in a folder, pairs of it, and small shards."""

from __future__ import annotations

import pytest
import zoo

from sightline.corpus import jobs
from sightline.corpus.jobs import AlignJob, ModelName

NORMS = {"method": "norms", "layer": 1, "reading": "input", "extraction": "argmax"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("corpus-model")
    zoo.fresh("marian").save(path / "model")
    return str(path / "model")


@pytest.fixture
def rows() -> list[tuple[str, str]]:
    """Pairs that differ, of which one has an empty side."""
    pairs = list(zip(zoo.SOURCES, zoo.TARGETS, strict=True))
    return [(" ".join([source] * (1 + i % 3)), target) for i, (source, target) in enumerate(pairs * 6)] + [("", "Sí.")]


@pytest.fixture
def job(folder: str, monkeypatch: pytest.MonkeyPatch) -> AlignJob:
    monkeypatch.setattr(jobs, "SHARD_ROWS", 4)
    return AlignJob(model=ModelName(folder), align=NORMS, confidences=True)
