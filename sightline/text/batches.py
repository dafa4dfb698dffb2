"""Batches of examples of like length, with results in the order of the input."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def batches_by_length(lengths: Sequence[int], max_positions: Callable[[int], int], max_size: int) -> list[list[int]]:
    """Group indices so that examples of like length stand together.

    A batch of examples of length n has at most `max_positions(n)` positions, padding included, and `max_size` examples;
    a longer example stands alone.
    """
    batches: list[list[int]] = []
    limit = cache(max_positions)  # many examples have the same length
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        # The lengths rise, so that this example's length is the width of the whole batch.
        length = lengths[index]
        if not batches or len(batches[-1]) == max_size or (len(batches[-1]) + 1) * length > limit(length):
            batches.append([])
        batches[-1].append(index)
    return batches


def map_in_batches(
    items: Iterable[Item],
    function: Callable[[list[Item]], Sequence[Result]],
    length: Callable[[Item], int],
    *,
    max_positions: Callable[[int], int],
    max_size: int,
    window: int,
) -> Iterator[Result]:
    """Apply a function to batches of like length and yield results in the order of the items.

    Only `window` items are held at a time, so that memory does not grow with the input.
    """
    remaining = iter(items)
    while held := list(itertools.islice(remaining, window)):
        results: dict[int, Result] = {}
        for batch in batches_by_length([length(item) for item in held], max_positions, max_size):
            for index, result in zip(batch, function([held[i] for i in batch]), strict=True):
                results[index] = result
        yield from (results[i] for i in range(len(held)))
