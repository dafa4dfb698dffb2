"""Tables of text in a page."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Write a table as HTML; every text comes from outside and is escaped."""
    head = "".join(f"<th>{_text(name)}</th>" for name in table.header)
    body = "\n".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    note = f'<p class="meaning">{_text(table.note)}</p>' if table.note else ""
    return (
        f'<section class="sightline table">\n<h2>{_text(table.title)}</h2>\n<div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n{note}</section>"
    )


def _text(text: str) -> str:
    return f"<bdi>{escape(visible(text))}</bdi>"
