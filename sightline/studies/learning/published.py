"""The figures that Snell et al. 2021 published, by table, row and column."""

from __future__ import annotations

from sightline.studies.study import Figure

NAMES = {
    "imdb": "IMDB",
    "yelp": "Yelp",
    "agnews": "AG News",
    "20news-sports": "20 NG",
    "sst": "SST",
    "multi30k": "Multi30k",
    "hansard-en-fr": "Hansards en-fr",
    "generated": "generated",
}
"""Our data sets, as the paper's tables name them where it has them."""

AGREEMENTS = ("α, β uf", "β uf, β px", "Δ, β uf", "α, β")


def _table(columns: tuple[str, ...], agreements: str, contexts: str) -> dict[str, dict[str, Figure]]:
    """Read two halves of a table: a name, a colon, and the figures of A and chance, or of xi and the final one."""
    table: dict[str, dict[str, Figure]] = {}
    for text, form, last in ((agreements, "A({})", "chance"), (contexts, "ξ({})", "ξ*")):
        for line in filter(None, map(str.strip, text.splitlines())):
            name, _, figures = line.partition(":")
            names = [*(form.format(column) for column in columns), last]
            cells = dict(zip(names, map(_cell, figures.split()), strict=True))
            table.setdefault(name, {}).update(cells)
    return table


def _cell(figure: str) -> Figure:
    return figure if figure.endswith("*") else float(figure)


TABLE_5 = _table(
    AGREEMENTS,
    """
    IMDB: 52.55 81.60 61.55 60.35 5.30
    Yelp: 17.55 75.38 58.90 35.00 5.80
    AG News: 39.24 55.13 43.08 48.13 6.20
    20 NG: 65.08 41.33 64.82 63.07 5.11
    SST: 19.85 33.57 22.45 25.33 8.39
    Amzn: 52.02 76.78 49.68 62.13 5.80
    Multi30k: 31.02 34.43 27.06 48.78 7.11
    IWSLT14: 35.75 39.09 27.69 55.25 6.52
    News It-Pt: 29.13 38.62 25.45 52.48 6.17
    News En-Nl: 35.53 41.72 29.15 60.15 6.36
    News En-Pt: 35.90 37.37 30.23 65.49 6.34
    """,
    """
    IMDB: 86.81 88.88 86.81 86.81 89.55
    Yelp: 90.39 95.22 95.31 93.59 96.20
    AG News: 93.54 96.05* 94.32 94.50 96.05
    20 NG: 91.16 60.75 84.57 84.57 94.22
    SST: 78.16 83.53* 78.16 82.38 83.53
    Amzn: 82.48 90.38* 82.48 88.07 90.38
    Multi30k: 43.45 43.45 43.45 48.58 66.29
    IWSLT14: 35.82 35.82 32.98 44.09 67.36
    News It-Pt: 21.82 25.06 21.82 25.06 55.41
    News En-Nl: 18.59 23.21 18.59 26.79 62.90
    News En-Pt: 19.12 19.12 19.12 27.85 67.75
    """,
)
TABLE_3 = _table(
    AGREEMENTS[:3],
    """
    IMDB: 12.77 33.31 12.56 0.00
    Yelp: 20.38 36.75 20.98 0.00
    AG News: 26.31 36.65 20.55 0.00
    20 NG: 16.06 22.03 6.50 0.00
    SST: 11.68 31.43 15.01 0.00
    Amzn: 15.21 35.84 9.33 0.00
    Multi30k: 7.89 27.54 3.93 0.00
    IWSLT14: 8.64 22.56 2.72 0.00
    News It-Pt: 4.82 17.16 1.63 0.00
    News En-Nl: 4.53 20.35 2.08 0.00
    News En-Pt: 4.65 18.20 2.17 0.00
    """,
    """
    IMDB: 70.60 80.50 70.60 89.55
    Yelp: 87.44 93.20 87.44 96.20
    AG News: 89.31 93.54 85.85 96.05
    20 NG: 60.75 60.75 60.75 94.22
    SST: 76.69 83.53* 76.69 83.53
    Amzn: 69.91 88.07 57.36 90.38
    Multi30k: 22.94 36.61 22.94 66.29
    IWSLT14: 29.07 32.98 29.07 67.36
    News It-Pt: 14.01 18.25 8.10 55.41
    News En-Nl: 9.60 18.59 9.60 62.90
    News En-Pt: 14.10 14.10 7.71 67.75
    """,
)
TABLE_4 = _table(
    AGREEMENTS[:3],
    """
    Multi30k: 8.68 27.54 4.24 0.00
    IWSLT14: 8.64 22.56 2.72 0.00
    News It-Pt: 4.82 17.16 1.63 0.00
    News En-Nl: 4.53 20.35 2.08 0.00
    News En-Pt: 4.41 18.20 2.05 0.00
    """,
    """
    Multi30k: 1.99 6.91 1.99 37.89
    IWSLT14: 5.38 5.31 5.38 32.95
    News It-Pt: 0.09 0.55 0.04 24.71
    News En-Nl: 0.01 0.94 0.01 29.42
    News En-Pt: 0.01 0.22 0.01 37.04
    """,
)
TABLE_6 = _table(
    AGREEMENTS,
    """
    Multi30k: 30.77 34.43 27.24 48.70 7.19
    IWSLT14: 35.75 39.09 27.69 55.25 6.52
    News It-Pt: 29.13 38.62 25.45 52.48 6.17
    News En-Nl: 35.53 41.72 29.15 60.15 6.35
    News En-Pt: 35.77 37.37 30.37 64.94 6.34
    """,
    """
    Multi30k: 11.43 11.43 11.43 16.41 37.89
    IWSLT14: 6.71 6.71 5.31 9.89 32.95
    News It-Pt: 1.29 2.16 1.29 2.16 24.71
    News En-Nl: 0.94 2.39 0.94 4.12 29.42
    News En-Pt: 0.74 0.74 0.74 4.28 37.04
    """,
)
TABLE_7 = _table(
    AGREEMENTS,
    """
    IMDB: 51.52 80.10 42.85 64.88 5.29
    Yelp: 11.15 76.12 55.50 37.63 5.85
    AG News: 36.97 53.95 43.11 46.89 6.17
    20 NG: 72.36 38.69 71.73 69.47 5.32
    SST: 21.82 29.35 20.48 28.50 8.48
    Amzn: 51.95 77.18 40.15 61.78 5.91
    Multi30k: 32.89 34.67 28.36 56.39 7.21
    IWSLT14: 36.61 38.95 28.37 57.71 6.52
    News It-Pt: 31.03 38.70 27.11 64.81 6.15
    News En-Nl: 37.86 41.91 31.11 67.68 6.39
    News En-Pt: 37.43 37.23 31.76 71.96 6.35
    """,
    """
    IMDB: 90.40 99.95* 90.40 95.01 99.95
    Yelp: 75.61 96.54 96.19 94.44 98.22
    AG News: 93.57 98.42* 94.63 95.54 98.42
    20 NG: 100.00 65.40 100.00 100.0 100.00
    SST: 97.72 100.00* 84.11 100.0* 100.00
    Amzn: 87.96 99.58* 80.98 91.09 99.58
    Multi30k: 43.27 43.27 43.27 51.97 80.76
    IWSLT14: 35.94 35.94 35.94 44.18 71.18
    News It-Pt: 22.69 25.96 22.69 39.98 77.10
    News En-Nl: 18.85 23.56 18.85 40.09 74.49
    News En-Pt: 19.33 19.33 19.33 42.41 77.97
    """,
)
TABLE_8 = _table(
    AGREEMENTS[:3],
    """
    Multi30k: 32.89 34.67 28.36 7.16
    IWSLT14: 36.61 38.95 28.37 6.54
    News It-Pt: 31.03 38.70 27.11 6.17
    News En-Nl: 37.86 41.91 31.11 6.38
    News En-Pt: 37.43 37.23 31.76 6.37
    """,
    """
    Multi30k: 11.87 11.87 11.87 52.28
    IWSLT14: 6.82 6.82 6.82 36.23
    News It-Pt: 1.30 2.30 1.30 42.40
    News En-Nl: 1.11 2.29 1.11 39.40
    News En-Pt: 0.83 0.83 0.83 46.57
    """,
)
TABLE_10: dict[str, dict[str, Figure]] = {
    name: {"A(α, α fr)": frozen, "A(α, β uf)": uniform}
    for name, frozen, uniform in (
        ("IMDB", 9, 53),
        ("AG News", 17, 39),
        ("20 NG", 19, 65),
        ("SST", 14, 20),
        ("Amzn", 15, 52),
        ("Yelp", 8, 18),
    )
}
TABLE_9: dict[str, dict[str, Figure]] = {
    name: {
        "training texts": texts,
        "median length, training": length,
        "validation texts": held_out,
        "median length, validation": held_out_length,
        "vocabulary": vocabulary,
    }
    for name, length, texts, held_out_length, held_out, vocabulary in (
        ("IMDB", 181, 25_000, 178, 4000, 60_338),
        ("AG News", 40, 60_000, 40, 3800, 31_065),
        ("20 NG", 183, 1197, 207, 796, 31_065),
        ("SST", 16, 5130, 17, 1421, 11_022),
        ("Amzn", 71, 32_514, 72, 4000, 37_110),
        ("Yelp", 74, 88_821, 74, 4000, 41_368),
        ("IWSLT14", "23 / 24", 160_240, "22 / 23", 7284, 8000),
        ("Multi30k", "14 / 14", 29_000, "15 / 14", 1014, 8000),
        ("News En-Nl", "30 / 34", 52_070, "30 / 34", 5786, 8000),
        ("News En-Pt", "31 / 35", 48_538, "31 / 35", 5394, 8000),
        ("News It-Pt", "36 / 35", 21_572, "36 / 36", 2397, 8000),
    )
}
