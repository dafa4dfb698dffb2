"""The figures that Lu et al. 2021 published, by table, row and column."""

from __future__ import annotations

from sightline.studies.study import Figures

ROWS = ("baseline", "fixed", "anneal", "gate")


def _columns(columns: dict[str, tuple[float | str, ...]]) -> Figures:
    return {row: {name: values[number] for name, values in columns.items()} for number, row in enumerate(ROWS)}


TABLES_2_TO_4 = _columns(
    {
        "En-De, 4.5M": (27.37, 27.38, "28.1*", 27.75),
        "Zh-En, 2.1M": (48.24, 48.44, 48.74, "49.00*"),
        "En-Lv, 4.5M": (16.26, 16.54, 16.35, "16.83*"),
        "Lv-En, 4.5M": (17.76, "18.45*", 18.12, "18.71*"),
        "En-Fi, 2.6M": (22.01, 22.42, 22.4, "22.55*"),
        "Fi-En, 2.6M": (26.07, 26.2, 26.39, "26.67*"),
        "En-Ro, 0.6M": (22.56, 23.1, "23.27*", "24.00*"),
        "Ro-En, 0.6M": (27.53, 28.02, "28.2*", "28.48*"),
    }
)
TABLE_3 = _columns(
    {
        "MT02": (48.56, 48.42, 48.22, "49.52*"),
        "MT03": (49.58, 49.41, 49.73, "50.42*"),
        "MT04": (48.58, 48.56, 48.85, "49.16*"),
        "MT05": (49.95, 50.32, "50.97*", "50.78*"),
        "MT06": (47.22, 47.89, 47.49, "47.98*"),
    }
)
TABLE_5: Figures = {
    row: {"Zh-En": zh_en, "En-De": en_de}
    for row, zh_en, en_de in (
        ("layer 1", "+0.0203", "+0.1846"),
        ("layer 2", "-0.0110", "+0.0762"),
        ("layer 3", "-0.0023", "+0.0207"),
        ("layer 4", "-0.0224", "-0.0336"),
        ("layer 5", "-0.0303", "-0.0595"),
        ("layer 6", "-0.0083", "-0.0100"),
        ("all", "-0.0336", "-0.0224"),
    )
}
