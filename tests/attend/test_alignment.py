"""The alignment adapter against a literal version of its definition, in float64."""

import math

import pytest
import torch

from sightline.attend.alignment import AdapterShape, AlignmentAdapter

SHAPE = AdapterShape(encoder=(6, 6, 3), decoder=(4, 7), width=5)


@pytest.fixture
def adapter() -> AlignmentAdapter:
    torch.manual_seed(1)
    return AlignmentAdapter(SHAPE).double()


def _states(batch: int, sources: int, steps: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    encoder = [torch.randn(batch, sources, width).double() for width in SHAPE.encoder]
    decoder = [torch.randn(batch, steps, width).double() for width in SHAPE.decoder]
    return encoder, decoder


def _literal(adapter: AlignmentAdapter, encoder: list, decoder: list, rows: list[int]) -> tuple[list, list]:
    """Compute one example's posteriors position by position."""

    def normalized(norms: torch.nn.ModuleList, states: list, position: int) -> torch.Tensor:
        return torch.cat([norm(state[position]) for norm, state in zip(norms, states, strict=True)])

    width = SHAPE.width
    keys = [adapter.key(normalized(adapter.encoder_norms, encoder, j)) for j in range(len(encoder[0]))]
    queries = [
        adapter.query(torch.cat([normalized(adapter.decoder_norms, decoder, step) for step in (row, row + 1)]))
        for row in rows
    ]
    forward = []
    for query in queries:
        scores = [query[:width] @ key[:width] / math.sqrt(width) for key in keys] + [
            adapter.no_source(query[:width])[0]
        ]
        total = sum(math.exp(score) for score in scores)
        forward.append([math.exp(score) / total for score in scores])
    backward = []
    for key in keys:
        scores = [key[width:] @ query[width:] / math.sqrt(width) for query in queries]
        scores.append(adapter.no_target(key[width:])[0])
        total = sum(math.exp(score) for score in scores)
        backward.append([math.exp(score) / total for score in scores])
    return forward, backward


@torch.no_grad()
def test_it_is_what_its_definition_says(adapter: AlignmentAdapter) -> None:
    encoder, decoder = _states(1, 4, 4)
    rows = torch.tensor([[0, 1, 2]])
    found = adapter(encoder, decoder, rows, torch.ones(1, 4, dtype=torch.bool), torch.ones(1, 3, dtype=torch.bool))
    literal = _literal(adapter, [state[0] for state in encoder], [state[0] for state in decoder], [0, 1, 2])
    for one, other in zip(found, literal, strict=True):
        torch.testing.assert_close(one[0], torch.tensor(other, dtype=torch.float64), rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_padding_and_special_positions_have_no_part_in_it(adapter: AlignmentAdapter) -> None:
    encoder, decoder = _states(1, 4, 5)
    source_words, target_words = torch.tensor([[True, True, True, False]]), torch.tensor([[True, True, False]])
    rows = torch.tensor([[0, 1, 2]])
    alone = adapter(encoder, decoder, rows, source_words, target_words)
    wider = adapter(
        [torch.nn.functional.pad(state, (0, 0, 0, 2), value=9.0) for state in encoder],
        [torch.nn.functional.pad(state, (0, 0, 0, 3), value=9.0) for state in decoder],
        torch.tensor([[0, 1, 2, 0]]),
        torch.nn.functional.pad(source_words, (0, 2)),
        torch.nn.functional.pad(target_words, (0, 1)),
    )
    assert alone.forward[..., 3].max() == 0
    assert alone.backward[..., 2].max() == 0
    torch.testing.assert_close(wider.forward[:, :3, [0, 1, 2, 3, 6]], alone.forward, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(wider.backward[:, :4, [0, 1, 2, 4]], alone.backward, rtol=1e-12, atol=1e-12)


def test_all_its_weights_learn(adapter: AlignmentAdapter) -> None:
    encoder, decoder = _states(2, 4, 4)
    rows = torch.tensor([[0, 1, 2]] * 2)
    mask = torch.ones(2, 4, dtype=torch.bool)
    both = adapter(encoder, decoder, rows, mask, mask[:, :3])
    (both.forward[..., 0].log().sum() + both.backward[..., 0].log().sum()).backward()
    assert all(parameter.grad is not None and parameter.grad.abs().max() > 0 for parameter in adapter.parameters())
