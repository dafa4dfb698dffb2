"""Pages and notebook fragments that need nothing but a browser: no network, and no script for the basic picture.

A figure holds drawings made here, as vector graphics, and the data; the module `figure.js` replaces the drawings by
what a reader can point at, pin and choose from. Every text comes from outside: it is escaped in markup, and in JSON
every `<`, `>` and `&` is written as `\\u003c` and so on, so that no token can end a script block.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import numpy as np

from sightline.errors import InputError
from sightline.view.labels import clip, visible
from sightline.view.packing import pack
from sightline.view.picture import Axis, Picture, read_picture
from sightline.view.svg import draw_heat_map, draw_links
from sightline.view.tables import PageTable, draw_table

TOKEN_LIMIT = 1_000  # tokens a side
VECTOR_CELLS = 20_000  # more cells than this are a bitmap in the page
PAGE_CELLS = 40_000_000  # 12 layers of 12 heads of 500 x 500 tokens
FRAGMENT_CELLS = 4_000_000  # a notebook stores every output that it shows
HEADING_CELLS = 60


def render_page(attributions: Sequence[Mapping[str, Any]], title: str, tables: Sequence[PageTable] = ()) -> str:
    """Draw attributions' dictionaries, one below the other and all above the tables, as a self-contained page.

    Each may have a `heading`; without one, the heading of several is what was read and written.
    """
    if not attributions:
        raise InputError("There is nothing to draw: the list of attributions is empty.")
    script = _resource("figure.js")
    budget = PAGE_CELLS // len(attributions)
    figures = []
    for number, attribution in enumerate(attributions, start=1):
        heading = attribution.get("heading") or (_heading(attribution) if len(attributions) > 1 else "")
        figures.append(_figure(attribution, None, f"picture-{number}", budget, heading))
    return Template(_resource("page.html")).substitute(
        title=escape(visible(title)),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        style=_resource("figure.css"),
        figures="\n".join([*figures, *map(draw_table, tables)]),
        script=script,
    )


def render_fragment(attribution: Mapping[str, Any], at: Mapping[str, int] | None = None) -> str:
    """Draw an attribution's dictionary as a piece of HTML that brings all it needs, for notebooks.

    `at` says which position of the leading axes is shown first; axes that it does not name start as their mean.
    """
    name = f"sightline-{secrets.token_hex(6)}"  # a saved notebook holds fragments of many runs
    figure = _figure(attribution, at, name, FRAGMENT_CELLS)
    return (
        f'<style>{_resource("figure.css")}</style>\n{figure}\n<script type="module">{_resource("figure.js")}</script>'
    )


def to_picture(attribution: Mapping[str, Any], at: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return what `figure.js` draws: the dictionary with packed scores, cut to what a page can hold."""
    picture = read_picture(attribution, at, row_limit=TOKEN_LIMIT, column_limit=TOKEN_LIMIT)
    return _data(attribution, picture, _store(picture, FRAGMENT_CELLS))


class _Stored(NamedTuple):
    """What a page holds of the scores: the axes that can be chosen from, and what was left out."""

    axes: tuple[Axis, ...]
    scores: np.ndarray
    notes: tuple[str, ...]


def _figure(
    attribution: Mapping[str, Any], at: Mapping[str, int] | None, name: str, budget: int, heading: str = ""
) -> str:
    picture = read_picture(attribution, at, row_limit=TOKEN_LIMIT, column_limit=TOKEN_LIMIT)
    stored = _store(picture, budget)
    one_row = len(picture.rows) == 1
    return Template(_resource("figure.html")).substitute(
        name=name,
        heading=f"<h2>{_markup(heading)}</h2>" if heading else "",
        method=escape(picture.method),
        settings=escape(" · ".join(f"{key} {value}" for key, value in picture.settings)),
        selection=escape(picture.selection),
        notes="".join(f'<p class="note">{escape(note)}</p>' for note in (*picture.notes, *stored.notes)),
        line_kind="text" if one_row else "links",
        line_view=_text_view(picture) if one_row else draw_links(picture),
        heat_map=draw_heat_map(picture, as_image=picture.scores.size > VECTOR_CELLS),
        data=write_json(_data(attribution, picture, stored) | ({"heading": heading} if heading else {})),
    )


def _data(attribution: Mapping[str, Any], picture: Picture, stored: _Stored) -> dict[str, Any]:
    kept = {
        "source": picture.boundary,
        "prefix": len(picture.columns) - picture.boundary,
        "target": len(picture.rows),
    }
    data: dict[str, Any] = {
        side: {
            "tokens": attribution[side]["tokens"][:count],
            "word_ids": attribution[side]["word_ids"][:count],
            "words": attribution[side]["words"],
        }
        for side, count in kept.items()
    }
    data |= {name: attribution[name][: kept["target"]] for name in ("probabilities", "ranks") if attribution.get(name)}
    data |= {name: attribution[name] for name in ("links", "gold", "defaults") if attribution.get(name)}
    return data | {
        "method": attribution["method"],
        "settings": dict(attribution["settings"]),
        "axes": [axis._asdict() for axis in stored.axes],
        "packed": asdict(pack(stored.scores)),
        "notes": [*picture.notes, *stored.notes],
    }


def write_json(data: object) -> str:
    """Write JSON in ASCII that neither ends a script block nor opens a comment in it."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _store(picture: Picture, budget: int) -> _Stored:
    """Reduce leading axes, the last one first, until no more than `budget` scores are left."""
    axes, scores, notes = picture.axes, picture.all_scores, []
    while axes and scores.size > budget:
        *kept, last = axes
        place = len(kept)
        if last.chosen is None:
            scores, what = scores.mean(axis=place, dtype=np.float64).astype(np.float32), "the mean over"
        else:
            scores, what = scores.take(last.chosen, axis=place), f"number {last.chosen} of"
        notes.append(f"To keep this small, it holds only {what} the {last.size} positions of {last.name}.")
        axes = tuple(kept)
    return _Stored(axes, scores, tuple(notes))


def _text_view(picture: Picture) -> str:
    """Write the source as running text, every token as strongly marked as it counts for the one output."""
    words = [
        f'<span class="token {"negative" if strength < 0 else "positive"}{" special" if label.special else ""}" '
        f'data-column="{column}" style="--strength:{abs(strength):.2f}">{escape(label.text)}</span>'
        for column, (label, strength) in enumerate(zip(picture.columns, picture.strengths[0].tolist(), strict=True))
    ]
    if picture.has_prefix:
        words.insert(picture.boundary, '<span class="boundary"></span>')
    return f'<p dir="auto">{" ".join(words)}</p>'


def _heading(attribution: Mapping[str, Any]) -> str:
    texts = (clip(visible(" ".join(attribution[side]["words"])), HEADING_CELLS) for side in ("source", "target"))
    return " → ".join(texts)


def _markup(text: str) -> str:
    return f"<bdi>{escape(text)}</bdi>"


@cache
def _resource(name: str) -> str:
    return files("sightline.view").joinpath(name).read_text(encoding="utf-8")
