"""Calibration's measures against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy as scipy_entropy
from scipy.stats import kendalltau

from sightline.attribution import Attribution, Tokens
from sightline.errors import InputError
from sightline.measures import (
    by_entropy,
    calibration_divergence,
    entropy_change,
    importance_correlation,
    measure_calibration,
)

LAYERS, HEADS, TARGET, SOURCE = 2, 3, 4, 5


def tokens(count: int) -> Tokens:
    return Tokens(("t",) * count, (None,) * count)


def attribution(scores: np.ndarray, axes: tuple[str, ...] = ("layer", "head"), target: int = TARGET) -> Attribution:
    return Attribution(scores, source=tokens(scores.shape[-1]), target=tokens(target), axes=axes, method="made up")


def rows(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_divergence_and_entropy_change_normalise_first(seed: int) -> None:
    original = rows(seed, 3, SOURCE)
    calibrated = original * np.exp(np.random.default_rng(seed + 1).random(original.shape))
    divergence, change = calibration_divergence(original, calibrated), entropy_change(original, calibrated)
    for row in range(3):
        after = calibrated[row] / calibrated[row].sum()
        assert divergence[row] == pytest.approx(jensenshannon(original[row], after) ** 2, abs=1e-9)
        assert change[row] == pytest.approx(scipy_entropy(after) - scipy_entropy(original[row]), abs=1e-9)
    assert calibration_divergence(original, 2.5 * original) == pytest.approx(0, abs=1e-12)


def test_the_sign_is_that_of_table_5() -> None:
    assert entropy_change(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == pytest.approx(np.log(2))


def test_bins_hold_the_rows_of_their_entropy_over_all_examples() -> None:
    first = np.array([[1.0, 0.0], [0.5, 0.5], [0.99, 0.01]])  # entropies 0, 0.69, 0.06
    second = np.array([[0.25, 0.25, 0.25, 0.25]])  # 1.39, of another length
    values = [np.array([1.0, 2.0, 3.0]), np.array([4.0])]
    low, middle, last = by_entropy(values, [first, second], edges=(0, 0.5, 1))
    assert (low.mean, low.defined) == (2.0, 2)
    assert (middle.mean, middle.defined) == (2.0, 1)
    assert (last.mean, last.defined) == (4.0, 1)  # open: 1 and above
    assert by_entropy(values, [first, second], edges=(0.5,))[0].defined == 2  # what is below the first edge is left out
    for edges in ((1, 0), (1, 1), ()):
        with pytest.raises(InputError, match="edges"):
            by_entropy(values, [first, second], edges=edges)


def test_figures_by_layer_against_loops() -> None:
    shape = (LAYERS, HEADS, TARGET, SOURCE)
    original = [rows(seed, *shape) for seed in (0, 1)]
    masks = [np.random.default_rng(seed).random(shape) for seed in (2, 3)]
    calibrated = [a * np.exp(1 - m) for a, m in zip(original, masks, strict=True)]
    importance = [np.random.default_rng(seed).random((TARGET, SOURCE)) for seed in (4, 5)]
    figures = measure_calibration(
        [attribution(one) for one in original],
        [attribution(one) for one in calibrated],
        [attribution(1 - one) for one in masks],
        [attribution(one, ()) for one in importance],
    )
    overall = []
    for a, c in zip(original, calibrated, strict=True):
        for t in range(TARGET):
            before, after = np.zeros(SOURCE), np.zeros(SOURCE)
            for layer in range(LAYERS):
                for h in range(HEADS):
                    before += a[layer, h, t]
                    after += c[layer, h, t] / c[layer, h, t].sum()
            overall.append(scipy_entropy(after / after.sum()) - scipy_entropy(before / before.sum()))
    assert figures.entropy_change_of_all == pytest.approx(np.mean(overall), rel=1e-5)
    for layer in range(LAYERS):
        divergences, changes, taus, mask_taus = [], [], [], []
        for a, c, m, g in zip(original, calibrated, masks, importance, strict=True):
            for t in range(TARGET):
                taus.append(kendalltau(a[layer, :, t].mean(0), g[t]).statistic)
                mask_taus.append(kendalltau((1 - m)[layer, :, t].mean(0), g[t]).statistic)
                for h in range(HEADS):
                    after = c[layer, h, t] / c[layer, h, t].sum()
                    divergences.append(jensenshannon(a[layer, h, t], after) ** 2)
                    changes.append(scipy_entropy(after) - scipy_entropy(a[layer, h, t]))
        assert figures.divergence[layer] == pytest.approx(np.mean(divergences), rel=1e-4)
        assert figures.entropy_change[layer] == pytest.approx(np.mean(changes), rel=1e-4)
        assert figures.tau_of_weights[layer] == pytest.approx(np.mean(taus), rel=1e-4)
        assert figures.tau_of_masks[layer] == pytest.approx(np.mean(mask_taus), rel=1e-4)
        assert figures.mask[layer] == pytest.approx(np.mean([m[layer] for m in masks]), rel=1e-4)


def test_attention_of_any_model_is_correlated_by_layer() -> None:
    weights = rows(0, LAYERS, HEADS, TARGET, SOURCE)
    importance = np.random.default_rng(1).random((TARGET, SOURCE))
    found = importance_correlation([attribution(weights)], [attribution(importance, ())])
    for layer in range(LAYERS):
        taus = [kendalltau(weights[layer, :, t].mean(0), importance[t]).statistic for t in range(TARGET)]
        assert found[layer] == pytest.approx(np.mean(taus), rel=1e-6)


def test_layers_and_heads_must_be_there() -> None:
    flat = attribution(rows(0, TARGET, SOURCE), ())
    with pytest.raises(InputError, match="keep layers and heads"):
        importance_correlation([flat], [flat])
    with pytest.raises(InputError, match="keep layers and heads"):
        measure_calibration([flat], [flat], [flat], [flat])
