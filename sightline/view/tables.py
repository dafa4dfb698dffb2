"""Tables of text in a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from sightline.view.labels import visible


class PageTable(NamedTuple):
    """A table: its title, the names of its columns, its rows, and a note below it."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def draw_table(table: PageTable) -> str:
    """Write a table as a section of a page."""
    note = f'<p class="meaning">{_text(table.note)}</p>' if table.note else ""
    return (
        f'<section class="sightline table">\n<h2>{_text(table.title)}</h2>\n{draw_cells(table.header, table.rows)}\n'
        f"{note}</section>"
    )


def draw_cells(header: Sequence[str], rows: Iterable[Sequence[str]], classes: Mapping[str, str] | None = None) -> str:
    """Write cells as HTML; every text comes from outside and is escaped. `classes` are for cells of a certain text."""
    head = "".join(f"<th>{_text(name) if name else ''}</th>" for name in header)
    body = "\n".join(f"<tr>{''.join(_cell(cell, classes or {}) for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _cell(text: str, classes: Mapping[str, str]) -> str:
    kind = f' class="{classes[text]}"' if text in classes else ""
    return f"<td{kind}>{_text(text)}</td>"


def _text(text: str) -> str:
    return f"<bdi>{escape(visible(text))}</bdi>"
