"""Charts as vector graphics, from plain dictionaries; they need nothing but a browser.

    {"kind": "lines", "title": "...", "note": "...",
     "x": {"label": "step", "scale": "linear" | "log", "ticks": [[position, "label"], ...], "range": [low, high]},
     "y": {... the same ...},
     "series": [{"name": "...", "x": [...], "y": [...], "low": [...], "high": [...]}, ...]}

`low` and `high` are the bounds of an error band, `ticks` replaces the numbers at the axis (for settings that are no
plain numbers), a `y` of None is a gap; `scale`, `ticks`, `range`, `low`, `high` and `note` may be left out. The others:

    {"kind": "points", ...}   the same, as dots
    {"kind": "bars", "groups": ["...", ...], "y": {...}, "series": [{"name": "...", "y": [...], "low": [...], ...}]}
    {"kind": "heat_map", "tables": [{"title": "...", "rows": [...], "columns": [...], "values": [[...], ...],
                                     "framed": [[row, column], ...]}, ...]}   tables as heat maps, next to one another
    {"kind": "frames", ...}   heat maps of which one is chosen: see `sightline.view.frames`

A label with line breaks is written in several lines.
Series differ in colour (Okabe and Ito's, for any colour vision) and in the form of their marks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from sightline.errors import unknown_name
from sightline.view.frames import draw_frames, draw_tables, greatest_values

INK, FAINT, GRID = "#1c2024", "#5c6570", "#e3e7eb"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6a727c", "#8c6d00")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
WIDTH, HEIGHT = 620, 300  # of the plane inside the axes
LEFT, TOP, BOTTOM, RIGHT = 66, 44, 68, 18
LEGEND_LINE, LABEL_LINE = 20, 14
CHARACTER = 6.6  # the width of a character of the legend, about
TICKS = 6
FEWEST_POWERS = 3  # of ten on a logarithmic axis; with fewer, twice and five times each are marked too

Number = float | int


def draw_plot(plot: Mapping[str, Any]) -> str:
    """Draw a chart, given as a plain dictionary, as an SVG element; frames as several, with what chooses one."""
    if plot["kind"] == "frames":
        return draw_frames(plot)
    if plot["kind"] == "heat_map":
        return _draw_heat_map(plot)
    if plot["kind"] not in KINDS:
        raise unknown_name("kind of plot", plot["kind"], [*KINDS, "heat_map", "frames"])
    series, x, y, marks = KINDS[plot["kind"]](plot)
    legend = list(_legend([one["name"] for one in series]))
    height = TOP + HEIGHT + BOTTOM + LEGEND_LINE * (1 + max((row for row, _ in legend), default=-1))
    parts = [
        f'<text x="0" y="24" font-size="15" font-weight="600" fill="{INK}">{escape(plot["title"])}</text>',
        *_axes(x, y),
        *marks,
        *(text for _, text in legend),
    ]
    width = LEFT + WIDTH + RIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(plot["title"], quote=True)}" '
        f'class="plot" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="{FONT}" '
        f'font-size="12">{"".join(parts)}</svg>'
    )


@dataclass(frozen=True)
class Axis:
    """From values to places, and what is written at the axis."""

    label: str
    low: Number
    high: Number
    start: Number
    end: Number
    logarithmic: bool = False
    ticks: tuple[tuple[Number, str], ...] = ()

    def place(self, value: Number) -> float:
        """Return the place of a value in the picture."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        return self.start + (self._scaled(value) - low) / (high - low) * (self.end - self.start)

    def _scaled(self, value: Number) -> Number:
        return math.log10(max(value, 1e-12)) if self.logarithmic else value

    def marks(self) -> Sequence[tuple[Number, str]]:
        """List the values at which the axis is marked, with their labels."""
        if self.ticks:
            return self.ticks
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            inside = [power for power in powers if self.low <= 10.0**power <= self.high]
            if len(inside) < FEWEST_POWERS:
                values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
                return [(value, _number(value)) for value in values if self.low <= value <= self.high]
            return [(10.0**power, _number(10.0**power)) for power in inside[:: max(1, len(inside) // TICKS)]]
        step = _round_step((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step - 1e-9)
        return [(n * step, _number(n * step)) for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _axis(settings: Mapping[str, Any], values: Sequence[Number], start: Number, end: Number, margin: Number) -> Axis:
    """Lay out an axis over its values, or over the range that was asked for."""
    logarithmic = settings.get("scale", "linear") == "log"
    ticks = tuple((float(position), str(label)) for position, label in settings.get("ticks", ()))
    seen = [*values, *(position for position, _ in ticks)]
    if logarithmic:
        seen = [value for value in seen if value > 0]
    low, high = settings.get("range") or (min(seen, default=0.0), max(seen, default=1.0))
    if low == high:
        low, high = (low / 2, high * 2) if logarithmic and low > 0 else (low - 0.5, high + 0.5)
    if "range" not in settings and not logarithmic:
        low, high = low - margin * (high - low), high + margin * (high - low)
    return Axis(settings.get("label", ""), low, high, start, end, logarithmic, ticks)


def _plane(plot: Mapping[str, Any], x_values: Sequence[Number], y_values: Sequence[Number]) -> tuple[Axis, Axis]:
    x = _axis(plot["x"], x_values, LEFT, LEFT + WIDTH, 0.03)
    return x, _axis(plot["y"], y_values, TOP + HEIGHT, TOP, 0.06)


def _bounds(series: Sequence[Mapping[str, Any]]) -> list[Number]:
    names = ("y", "low", "high")
    return [v for one in series for name in names for v in one.get(name) or () if v is not None]


Drawn = tuple[Sequence[Mapping[str, Any]], Axis, Axis, Sequence[str]]


def _draw_lines(plot: Mapping[str, Any]) -> Drawn:
    series = plot["series"]
    x, y = _plane(plot, [v for one in series for v in one["x"]], _bounds(series))
    marks = []
    for number, one in enumerate(series):
        marks += [_band(one, x, y, number), _line(one, x, y, number), *_dots(one, x, y, number)]
    return series, x, y, marks


def _draw_points(plot: Mapping[str, Any]) -> Drawn:
    series = plot["series"]
    x, y = _plane(plot, [v for one in series for v in one["x"]], _bounds(series))
    marks = []
    for number, one in enumerate(series):
        marks += [*_whiskers(one, x, y, number), *_dots(one, x, y, number)]
    return series, x, y, marks


def _draw_bars(plot: Mapping[str, Any]) -> Drawn:
    series, groups = plot["series"], plot["groups"]
    share = 0.8 / max(len(series), 1)
    placed = [
        dict(one) | {"x": [group + 0.1 + (number + 0.5) * share for group in range(len(groups))]}
        for number, one in enumerate(series)
    ]
    ticks = [[group + 0.5, name] for group, name in enumerate(groups)]
    x_settings = {"label": plot.get("x", {}).get("label", ""), "ticks": ticks, "range": (0, len(groups))}
    x, y = _plane(plot | {"x": x_settings}, [], [0.0, *_bounds(series)])  # type: ignore[operator]
    ground = y.place(min(max(0.0, y.low), y.high))
    half = (x.place(share) - x.place(0)) * 0.45
    marks = []
    for number, one in enumerate(placed):
        for at, value in _defined(one):
            top, bottom = sorted((y.place(value), ground))
            marks.append(
                f'<rect x="{x.place(at) - half:.1f}" y="{top:.1f}" width="{2 * half:.1f}" height="{bottom - top:.1f}" '
                f'fill="{_colour(number)}" fill-opacity="0.85"><title>{escape(one["name"])}: {value:.3g}</title></rect>'
            )
        marks += _whiskers(one, x, y, number, INK)
    return series, x, y, marks


def _draw_heat_map(plot: Mapping[str, Any]) -> str:
    tables = plot["tables"]
    title = f"<p><strong>{escape(plot['title'])}</strong></p>"
    return title + draw_tables(tables, greatest_values(tables), label=plot["title"])


KINDS: dict[str, Callable[[Mapping[str, Any]], Drawn]] = {
    "lines": _draw_lines,
    "points": _draw_points,
    "bars": _draw_bars,
}


def _axes(x: Axis, y: Axis) -> Iterator[str]:
    """Draw the grid, the numbers and the names of the axes."""
    for value, label in y.marks():
        place = y.place(value)
        yield f'<path d="M{LEFT} {place:.1f}H{LEFT + WIDTH}" stroke="{GRID}"/>'
        yield f'<text x="{LEFT - 8}" y="{place:.1f}" dy=".35em" text-anchor="end" fill="{FAINT}">{escape(label)}</text>'
    for value, label in x.marks():
        place = x.place(value)
        yield f'<path d="M{place:.1f} {TOP + HEIGHT}v5" stroke="{FAINT}"/>'
        for number, line in enumerate(label.split("\n")):
            y_place = TOP + HEIGHT + 19 + number * LABEL_LINE
            yield f'<text x="{place:.1f}" y="{y_place}" text-anchor="middle" fill="{FAINT}">{escape(line)}</text>'
    yield f'<path d="M{LEFT} {TOP}V{TOP + HEIGHT}H{LEFT + WIDTH}" stroke="{FAINT}" fill="none"/>'
    centre, middle = LEFT + WIDTH / 2, TOP + HEIGHT / 2
    names = ((x.label, f"translate({centre} {TOP + HEIGHT + 40})"), (y.label, f"translate(18 {middle}) rotate(-90)"))
    for label, transform in names:
        yield f'<text transform="{transform}" text-anchor="middle" fill="{INK}">{escape(label)}</text>'


def _legend(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Place the names of the series below the picture; each with its row."""
    at, row = float(LEFT), 0
    for number, name in enumerate(names):
        width = 26 + len(name) * CHARACTER + 18
        if at + width > LEFT + WIDTH and at > LEFT:
            at, row = float(LEFT), row + 1
        y = TOP + HEIGHT + BOTTOM + row * LEGEND_LINE
        mark = _mark(number, at + 8, y - 4, 5)
        yield row, f'{mark}<text x="{at + 20:.1f}" y="{y}" fill="{INK}">{escape(name)}</text>'
        at += width


def _defined(one: Mapping[str, Any]) -> list[tuple[Number, Number]]:
    return [(x, y) for x, y in zip(one["x"], one["y"], strict=True) if y is not None]


def _line(one: Mapping[str, Any], x: Axis, y: Axis, number: int) -> str:
    path, begin = [], "M"
    for at, value in zip(one["x"], one["y"], strict=True):
        if value is None:  # a gap
            begin = "M"
            continue
        path.append(f"{begin}{x.place(at):.1f} {y.place(value):.1f}")
        begin = "L"
    return f'<path d="{"".join(path)}" fill="none" stroke="{_colour(number)}" stroke-width="2"/>'


def _band(one: Mapping[str, Any], x: Axis, y: Axis, number: int) -> str:
    if not one.get("low") or not one.get("high"):
        return ""
    known = [b for b in zip(one["x"], one["low"], one["high"], strict=True) if None not in b]
    outline = [(at, high) for at, _, high in known] + [(at, low) for at, low, _ in reversed(known)]
    path = "L".join(f"{x.place(at):.1f} {y.place(_within(value, y)):.1f}" for at, value in outline)
    return f'<path d="M{path}Z" fill="{_colour(number)}" fill-opacity="0.14"/>' if path else ""


def _whiskers(one: Mapping[str, Any], x: Axis, y: Axis, number: int, colour: str | None = None) -> Iterator[str]:
    for at, low, high in zip(one["x"], one.get("low") or (), one.get("high") or (), strict=False):
        if low is not None and high is not None:
            bottom, top = y.place(_within(low, y)), y.place(_within(high, y))
            yield (
                f'<path d="M{x.place(at):.1f} {bottom:.1f}V{top:.1f}" stroke="{colour or _colour(number)}" '
                'stroke-opacity="0.7" stroke-width="1.3"/>'
            )


def _dots(one: Mapping[str, Any], x: Axis, y: Axis, number: int) -> Iterator[str]:
    for at, value in _defined(one):
        label = f"<title>{escape(one['name'])}: {_number(at)}, {value:.3g}</title>"
        yield f"<g>{_mark(number, x.place(at), y.place(value), 3.5)}{label}</g>"


def _mark(number: int, x: Number, y: Number, size: Number) -> str:
    """Draw a circle, a square, a triangle or a diamond."""
    colour, form = _colour(number), number % 4
    if form == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>'
    corners = {
        1: ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        2: ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
        3: ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
    }[form]
    points = " ".join(f"{x + dx * size * 0.9:.1f},{y + dy * size * 0.9:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _within(value: Number, axis: Axis) -> Number:
    return min(max(value, axis.low), axis.high)


def _round_step(least: Number) -> float:
    """Return the next step of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def _number(value: Number) -> str:
    return f"{round(value, 10):,.10g}"
