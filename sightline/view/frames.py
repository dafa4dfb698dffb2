"""Heat maps that are shown one at a time, with a button for each: how a table changes. They need no script.

    {"kind": "frames", "title": "...", "note": "...", "label": "step",
     "frames": [{"name": "50", "tables": [{"title": "attention", "rows": ["..."], "columns": ["..."],
                                           "values": [[0.1, ...], ...]}, ...]}, ...]}

Within a table, colours go from 0 to the greatest value of that table over all frames in which it stands. A table may
name cells that get a frame of their own: `"framed": [[row, column], ...]`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

CELL, LETTER, GAP, HEADING = 20, 6.4, 26, 18
WIDEST = 900
FRAME = "#d55e00"


def draw_frames(plot: Mapping[str, Any]) -> str:
    """Draw all frames, of which the style sheet shows the chosen one."""
    name = "f" + hashlib.blake2b(repr(plot["title"]).encode(), digest_size=4).hexdigest()
    greatest = greatest_values(table for frame in plot["frames"] for table in frame["tables"])
    buttons, pictures, rules = [], [], []
    for number, frame in enumerate(plot["frames"]):
        chosen = " checked" if number == len(plot["frames"]) - 1 else ""
        buttons.append(
            f'<input type="radio" name="{name}" id="{name}-{number}"{chosen}>'
            f'<label for="{name}-{number}">{escape(frame["name"])}</label>'
        )
        pictures.append(f'<div class="frame">{draw_tables(frame["tables"], greatest)}</div>')
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


def greatest_values(tables: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Find the greatest value of the tables of each title."""
    greatest: dict[str, float] = {}
    for table in tables:
        top = float(max((value for row in table["values"] for value in row), default=0))
        greatest[table["title"]] = max(top, greatest.get(table["title"], 0.0))
    return greatest


def draw_tables(tables: Sequence[Mapping[str, Any]], greatest: Mapping[str, float], label: str = "") -> str:
    """Draw tables next to one another, in several rows where one would be too wide."""
    parts: list[str] = []
    left, upper, height, widest = 0.0, 0.0, 0.0, 0.0
    for table in tables:
        margin = LETTER * max(map(len, table["rows"]), default=0) + 8
        width = margin + CELL * len(table["columns"]) + GAP
        if left > 0 and left + width > WIDEST:
            left, upper = 0.0, height + GAP
        top = upper + HEADING + LETTER * max(map(len, table["columns"]), default=0) + 8
        title = f'<text x="{left:.0f}" y="{upper + 12:.0f}" fill="#5c6570">{escape(table["title"])}</text>'
        parts += [title, *_cells(table, left + margin, top, greatest[table["title"]])]
        left += width
        widest, height = max(widest, left), max(height, top + CELL * len(table["rows"]) + 4)
    named = f'role="img" aria-label="{escape(label, quote=True)}" ' if label else ""
    return (
        f'<svg {named}class="plot" width="{widest:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {widest:.0f} {height:.0f}" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _cells(table: Mapping[str, Any], left: float, top: float, greatest: float) -> Iterator[str]:
    for number, name in enumerate(table["columns"]):
        x = left + CELL * (number + 0.65)
        yield f'<text transform="translate({x:.0f} {top - 5:.0f}) rotate(-90)" fill="#1c2024">{escape(name)}</text>'
    framed = {(row, column) for row, column in table.get("framed", ())}
    for row, (name, values) in enumerate(zip(table["rows"], table["values"], strict=True)):
        y = top + CELL * row
        yield f'<text x="{left - 5:.0f}" y="{y + 14:.0f}" text-anchor="end" fill="#1c2024">{escape(name)}</text>'
        for column, value in enumerate(values):
            share = value / greatest if greatest > 0 else 0.0
            frame = f'stroke="{FRAME}" stroke-width="2" ' if (row, column) in framed else ""
            yield (
                f'<rect x="{left + CELL * column:.0f}" y="{y:.0f}" width="{CELL - 1}" height="{CELL - 1}" {frame}'
                f'fill="#0072b2" fill-opacity="{0.04 + 0.96 * share:.2f}"><title>{value:.3g}</title></rect>'
            )
