"""Batches: nothing lost, order kept, bounds kept."""

from hypothesis import given
from hypothesis import strategies as st

from sightline.text.batches import batches_by_length, map_in_batches

LENGTHS = st.lists(st.integers(1, 50), max_size=60)


@given(LENGTHS, st.integers(1, 100), st.integers(1, 8))
def test_every_example_once_within_bounds(lengths: list[int], max_tokens: int, max_size: int) -> None:
    batches = batches_by_length(lengths, lambda _: max_tokens, max_size)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        width = max(lengths[i] for i in batch)
        assert len(batch) <= max_size
        assert len(batch) == 1 or len(batch) * width <= max_tokens


@given(LENGTHS, st.integers(1, 20))
def test_results_come_in_order_and_a_window_is_enough(lengths: list[int], window: int) -> None:
    held = []

    def items():
        for length in lengths:
            held.append(length)
            yield length

    results = map_in_batches(
        items(), lambda batch: [-x for x in batch], int, max_positions=lambda _: 64, max_size=4, window=window
    )
    for number, result in enumerate(results):
        assert result == -lengths[number]
        assert len(held) <= (number // window + 1) * window
