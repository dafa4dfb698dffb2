"""Shards and crews without models: what fails is found, what dies is run again, and the order is kept."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.corpus.crews import HELD_PER_WORKER, Died, run_in_order
from sightline.corpus.shards import Result, Row, RowsDigest, Shard, Skipped, cut_shards, run_shard
from sightline.errors import InputError


class Shouting:
    """Work that writes rows in capitals, and fails on some of them."""

    models = ()
    blank = "\n"

    def __init__(self, error: Exception | None = None, most_rows: int = 100) -> None:
        self.error, self.most_rows = error, most_rows

    def settle(self, rows: Sequence[Row]) -> dict[str, Any]:
        return {}

    def run(self, settled: Mapping[str, Any], numbers: Sequence[int], rows: Sequence[Row]) -> list[str]:
        if len(rows) > self.most_rows:
            raise MemoryError
        if self.error is not None and any(row[0] == "bad" for row in rows):
            raise self.error
        return [f"{number} {row[0].upper()}\n" for number, row in zip(numbers, rows, strict=True)]


def shouted(words: Sequence[str], first: int = 1) -> str:
    return "".join("\n" if word == "bad" else f"{n} {word.upper()}\n" for n, word in enumerate(words, first))


@given(st.lists(st.sampled_from(["a", "b", "bad"]), min_size=1, max_size=40), st.integers(1, 50))
def test_bad_rows_are_found_wherever_they_are(words: list[str], first: int) -> None:
    shard = Shard(first, [(word,) for word in words])
    result = run_shard(Shouting(ValueError("no\n good")), {}, shard, skip=True)
    assert result.text == shouted(words, first)
    assert (result.first, result.rows) == (first, len(words))
    bad = [number for number, word in enumerate(words, first) if word == "bad"]
    assert result.skipped == tuple(Skipped(number, "ValueError: no\\n good") for number in bad)


def test_the_first_bad_row_stops() -> None:
    shard = Shard(1, [("a",), ("bad",)])
    with pytest.raises(InputError, match="source 2 is too long"):
        run_shard(Shouting(InputError("source 2 is too long")), {}, shard, skip=False)
    with pytest.raises(ZeroDivisionError):
        run_shard(Shouting(ZeroDivisionError()), {}, shard, skip=False)


def test_rows_that_could_not_be_read() -> None:
    shard = Shard(5, [("a",), InputError("line 6: no UTF-8"), ("b",)])
    result = run_shard(Shouting(), {}, shard, skip=True)
    assert result == Result(5, 3, "5 A\n\n7 B\n", (Skipped(6, "line 6: no UTF-8"),))
    with pytest.raises(InputError, match="line 6"):
        run_shard(Shouting(), {}, shard, skip=False)


@pytest.mark.parametrize("skip", [False, True])
def test_what_takes_too_much_memory_is_run_in_smaller_parts(skip: bool) -> None:
    shard = Shard(1, [("a",)] * 20)
    assert run_shard(Shouting(most_rows=3), {}, shard, skip=skip).text == shouted(["a"] * 20)


def test_a_row_that_takes_too_much_memory_alone() -> None:
    error = RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
    shard = Shard(8, [("a",), ("bad",)])
    with pytest.raises(InputError, match="Line 9 takes more memory than there is"):
        run_shard(Shouting(error), {}, shard, skip=False)
    skipped = run_shard(Shouting(error), {}, shard, skip=True).skipped
    assert skipped == (Skipped(9, "Line 9 takes more memory than there is: shorten it."),)


class FakeCrew:
    """Workers in no process, which finish in any order and sometimes die; it counts what it holds."""

    def __init__(self, size: int, draw: random.Random, deadly: frozenset[str], accidents: int) -> None:
        self.size, self.draw, self.deadly, self.accidents = size, draw, deadly, accidents
        self.running: list[Shard] = []
        self.runs = 0

    @property
    def has_room(self) -> bool:
        return len(self.running) < self.size

    def submit(self, shard: Shard) -> None:
        assert self.has_room
        self.running.append(shard)

    def wait(self) -> list[Result | Died]:
        shard = self.running.pop(self.draw.randrange(len(self.running)))
        self.runs += 1
        if any(row[0] in self.deadly for row in shard.rows):  # type: ignore[index]
            return [Died(shard)]
        if self.accidents and self.draw.random() < 0.3:
            self.accidents -= 1
            return [Died(shard)]
        return [run_shard(Shouting(), {}, shard, skip=True)]

    def close(self) -> None:
        pass


@given(
    st.lists(st.sampled_from(["a", "b", "c", "bad"]), max_size=60), st.integers(1, 4), st.integers(1, 9), st.integers()
)
def test_nothing_is_lost_and_nothing_comes_twice(words: list[str], size: int, shard_rows: int, seed: int) -> None:
    crew = FakeCrew(size, random.Random(seed), frozenset(["bad"]), accidents=1)
    shards = list(cut_shards([(word,) for word in words], shard_rows))
    results = list(run_in_order(crew, shards, "\n", skip=True))
    assert "".join(result.text for result in results) == shouted(words)
    skipped = [one.number for result in results for one in result.skipped]
    assert skipped == [number for number, word in enumerate(words, 1) if word == "bad"]


def test_a_deadly_row_stops_where_nothing_is_skipped() -> None:
    crew = FakeCrew(2, random.Random(0), frozenset(["bad"]), accidents=0)
    shards = cut_shards([("a",), ("b",), ("bad",), ("c",)], 4)
    with pytest.raises(InputError, match="Line 3: the process that worked on it died 2 times"):
        list(run_in_order(crew, shards, "\n", skip=False))


def test_shards_are_read_only_as_they_are_needed() -> None:
    class Patient(FakeCrew):
        def wait(self) -> list[Result | Died]:
            late = next((shard for shard in self.running if shard.first != 1), self.running[0])
            self.running.remove(late)
            return [run_shard(Shouting(), {}, late, skip=True)]

    read = 0

    def rows():
        nonlocal read
        for _ in range(1000):
            read += 1
            yield ("a",)

    crew = Patient(2, random.Random(0), frozenset(), 0)
    results = run_in_order(crew, cut_shards(rows(), 10), "\n", skip=True)
    next(results)  # the first shard was the last to be done
    assert read <= 10 * (2 * HELD_PER_WORKER + 1)


def test_the_checksum_tells_rows_apart() -> None:
    def digest(*rows: Row | InputError) -> str:
        checksum = RowsDigest()
        checksum.add(rows)
        return checksum.hexdigest()

    every: list[list[Row | InputError]] = [[("a", "b")], [("ab", "")], [("a",), ("b",)], [("a",)], [InputError("a")]]
    every.append([("\ud800",)])  # half of a letter, which UTF-8 lacks
    assert len({digest(*rows) for rows in every}) == len(every)
