"""The figures that Ding et al. 2019 published, by table, row and column, and the names that rows have."""

from __future__ import annotations

from sightline.studies.study import Figures

ARCHITECTURES = {"conv": "FConv", "lstm": "LSTM", "transformer": "Transformer"}
"""What the paper calls the architectures, in the order of its tables."""

ATTENTION, SMOOTHED = "attention", "smoothed attention"
LI_GRAD, LI_SMOOTH = "Li, gradient", "Li, SmoothGrad"
OURS_GRAD, OURS_SMOOTH = "word saliency, gradient", "word saliency, SmoothGrad"
PRINTED_METHODS = (ATTENTION, SMOOTHED, LI_GRAD, LI_SMOOTH, OURS_GRAD, OURS_SMOOTH)
"""The rows of tables 1 and 2, for each architecture."""
RELEASED_GRAD, RELEASED_SMOOTH = "Li as released, gradient", "Li as released, SmoothGrad"
OURS_RAW = "word saliency, SmoothGrad, plain mean"
"""Beyond the tables: what the released code calls Li's, and the mean over samples as the paper prints it."""

COLUMNS_1 = ("de-en", "en-de", "de<>en", "en-fr", "fr-en", "en<>fr", "ro-en", "en-ro", "ro<>en")
COLUMNS_2 = ("de-en", "en-de", "en-fr", "fr-en", "ro-en", "en-ro")
AFTER_METHODS = ("fast_align offline", "fast_align online", "Zenkel et al. 2019", "GIZA++")


def row_of(architecture: str, method: str) -> str:
    """Name a row of tables 1 and 2."""
    return f"{ARCHITECTURES[architecture]}: {method}"


def _rows(columns: tuple[str, ...], text: str) -> Figures:
    """Read figures as they are printed, a line for each row."""
    names = [row_of(architecture, method) for architecture in ARCHITECTURES for method in PRINTED_METHODS]
    lines = [[float(figure) for figure in line.split()] for line in text.strip().splitlines()]
    names += AFTER_METHODS[: len(lines) - len(names)]
    return {name: dict(zip(columns, figures, strict=True)) for name, figures in zip(names, lines, strict=True)}


TABLE_1 = _rows(
    COLUMNS_1,
    """
    38.5 40.1 37.5 23.8 27.4 22.0 40.9 38.6 39.1
    40.2 43.9 41.2 24.1 27.4 22.5 41.5 39.6 40.4
    39.0 39.6 35.3 26.8 29.2 21.1 41.9 42.1 38.6
    40.7 44.5 39.3 27.3 28.1 21.6 43.5 43.5 40.0
    33.1 40.5 26.8 25.2 22.7 11.9 37.1 39.4 29.8
    27.3 33.0 22.3 21.2 18.1 8.5 32.4 34.2 27.2
    42.8 47.5 36.9 33.7 38.0 25.8 47.1 47.0 40.9
    47.3 50.7 40.0 35.4 40.2 27.5 50.7 50.2 43.5
    41.0 43.9 33.5 32.9 37.1 23.5 44.5 44.9 37.5
    39.4 43.1 31.5 32.2 36.2 22.0 45.7 46.8 37.7
    47.5 50.2 38.6 41.1 41.6 30.4 54.2 55.8 42.8
    31.4 36.8 23.7 27.2 25.0 13.8 40.4 39.9 32.0
    53.4 58.6 42.3 48.1 48.7 33.8 51.6 51.1 43.3
    55.8 56.1 48.6 42.5 47.5 32.9 57.5 57.6 51.5
    51.1 56.2 43.7 43.6 47.9 39.9 46.7 48.4 35.5
    36.4 45.8 30.3 27.0 25.5 15.6 41.3 39.9 33.7
    77.7 78.2 77.4 69.1 72.5 74.5 74.6 75.2 71.0
    36.4 43.0 29.0 29.7 25.9 15.3 41.2 41.4 32.7
    28.4 32.0 27.0 16.4 15.9 10.5 33.8 35.5 32.1
    30.8 34.4 30.0 18.8 16.8 13.6 37.1 41.1 35.9
    26.6 30.4 21.2 23.8 20.5 10.0 32.3 34.8 27.6
    21.0 23.1 21.4 8.0 9.8 5.9 28.7 32.2 27.9
    """,
)
"""Forced decoding."""
TABLE_2 = _rows(
    COLUMNS_2,
    """
    27.4 24.2 20.7 23.6 32.5 25.6
    29.4 29.0 21.1 23.6 33.7 26.7
    29.3 23.5 25.0 23.7 33.9 27.9
    31.2 30.4 24.1 24.0 35.6 30.1
    18.2 20.0 20.2 14.3 24.9 22.8
    13.7 14.2 17.0 10.6 21.4 17.4
    33.6 34.6 32.5 32.3 36.5 31.7
    38.2 39.5 34.3 35.2 41.2 36.3
    34.1 32.5 33.6 33.7 36.6 32.1
    30.8 29.4 31.8 32.1 38.9 34.8
    35.9 36.7 40.2 36.3 44.1 43.1
    20.5 21.9 26.0 19.1 32.6 27.5
    50.2 53.0 50.4 48.5 44.9 41.9
    51.4 49.0 44.5 47.3 49.9 48.9
    49.9 51.2 49.4 51.5 42.9 40.8
    27.8 35.3 28.3 22.3 30.5 26.5
    76.7 76.6 77.1 78.9 71.9 74.0
    26.6 31.0 30.0 21.4 30.0 28.2
    """,
)
"""Free decoding."""
_NOISE = {
    "conv": {"forced": (2.09, 1.36, 1.48, 1.89, 2.59), "free": (2.00, 1.34, 1.43, 1.79, 2.54)},
    "lstm": {"forced": (1.75, 1.63, 2.02, 2.54, 2.89), "free": (1.65, 1.57, 1.91, 2.46, 2.88)},
    "transformer": {"forced": (1.73, 1.91, 2.63, 2.76, 2.85), "free": (1.69, 1.89, 2.62, 2.74, 2.84)},
}
TABLE_3: Figures = {
    f"{ARCHITECTURES[architecture]}, {decoding}": dict(
        zip((ATTENTION, "sigma 0", "sigma 0.05", "sigma 0.15", "sigma 0.3"), figures, strict=True)
    )
    for architecture, by_decoding in _NOISE.items()
    for decoding, figures in by_decoding.items()
}
"""Entropies in nats, of German-English models."""
