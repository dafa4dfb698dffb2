"""Heat maps that are shown one at a time, with a button for each: how a table changes. They need no script.

    {"kind": "frames", "title": "...", "note": "...", "label": "step",
     "frames": [{"name": "50", "tables": [{"title": "attention", "rows": ["..."], "columns": ["..."],
                                           "values": [[0.1, ...], ...]}, ...]}, ...]}

Within a table, colours go from 0 to the greatest value of that table over all frames in which it stands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

CELL, LETTER, GAP, HEADING = 20, 6.4, 26, 18


def draw_frames(plot: Mapping[str, Any]) -> str:
    """Draw all frames, of which the style sheet shows the chosen one."""
    name = "f" + hashlib.blake2b(repr(plot["title"]).encode(), digest_size=4).hexdigest()
    greatest: dict[str, float] = {}
    for frame in plot["frames"]:
        for table in frame["tables"]:
            top = max((value for row in table["values"] for value in row), default=0.0)
            greatest[table["title"]] = max(top, greatest.get(table["title"], 0.0))
    buttons, pictures, rules = [], [], []
    for number, frame in enumerate(plot["frames"]):
        chosen = " checked" if number == len(plot["frames"]) - 1 else ""
        buttons.append(
            f'<input type="radio" name="{name}" id="{name}-{number}"{chosen}>'
            f'<label for="{name}-{number}">{escape(frame["name"])}</label>'
        )
        pictures.append(f'<div class="frame">{_draw_tables(frame, greatest)}</div>')
        rules.append(
            f"#{name}-{number}:checked~.frames>.frame:nth-child({number + 1}){{display:block}}"
            f"#{name}-{number}:checked+label{{background:#0072b2;color:#fff}}"
        )
    style = (
        f"#{name} .frame{{display:none}}#{name} input{{position:absolute;opacity:0}}"
        f"#{name} label{{border:1px solid #c9d0d7;border-radius:6px;cursor:pointer;display:inline-block;"
        "font-size:12px;margin:.15rem .25rem .15rem 0;padding:.05rem .5rem}"
        f"#{name} input:focus-visible+label{{outline:2px solid #1c2024}}" + "".join(rules)
    )
    return (
        f'<style>{style}</style><div id="{name}" role="group" aria-label="{escape(plot["title"], quote=True)}">'
        f"<p><strong>{escape(plot['title'])}</strong></p><span>{escape(plot['label'])} </span>"
        f'{"".join(buttons)}<div class="frames">{"".join(pictures)}</div></div>'
    )


def _draw_tables(frame: Mapping[str, Any], greatest: Mapping[str, float]) -> str:
    """Draw the tables of a frame beside one another."""
    parts: list[str] = []
    left, height = 0.0, 0.0
    for table in frame["tables"]:
        margin = LETTER * max(map(len, table["rows"]), default=0) + 8
        top = HEADING + LETTER * max(map(len, table["columns"]), default=0) + 8
        title = f'<text x="{left:.0f}" y="12" fill="#5c6570">{escape(table["title"])}</text>'
        parts += [title, *_cells(table, left + margin, top, greatest[table["title"]])]
        left += margin + CELL * len(table["columns"]) + GAP
        height = max(height, top + CELL * len(table["rows"]) + 4)
    return (
        f'<svg class="plot" width="{left:.0f}" height="{height:.0f}" viewBox="0 0 {left:.0f} {height:.0f}" '
        f'font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _cells(table: Mapping[str, Any], left: float, top: float, greatest: float) -> Iterator[str]:
    for number, name in enumerate(table["columns"]):
        x = left + CELL * (number + 0.65)
        yield f'<text transform="translate({x:.0f} {top - 5:.0f}) rotate(-90)" fill="#1c2024">{escape(name)}</text>'
    for row, (name, values) in enumerate(zip(table["rows"], table["values"], strict=True)):
        y = top + CELL * row
        yield f'<text x="{left - 5:.0f}" y="{y + 14:.0f}" text-anchor="end" fill="#1c2024">{escape(name)}</text>'
        for column, value in enumerate(values):
            share = value / greatest if greatest > 0 else 0.0
            yield (
                f'<rect x="{left + CELL * column:.0f}" y="{y:.0f}" width="{CELL - 1}" height="{CELL - 1}" '
                f'fill="#0072b2" fill-opacity="{0.04 + 0.96 * share:.2f}"><title>{value:.3g}</title></rect>'
            )
