"""The heat map and the links as vector graphics, for papers and for pages.

Everything carries plain attributes, so that a file looks right in any program; a page restyles it by class.
Positions are worked out here once, with a fixed-width font; a page's script only repaints cells and curves.
"""

import base64
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from rich.cells import cell_len

from sightline.errors import unknown_name
from sightline.view.bitmap import write_png
from sightline.view.colours import NEGATIVE, POSITIVE
from sightline.view.labels import Label, clip, right_to_left
from sightline.view.picture import Picture, read_picture

INK = "#1c2024"
FAINT_INK = "#6a727c"
PLANE = "#f3f5f7"
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
FONT_SIZE = 13
CHARACTER_WIDTH = 0.61  # of the font size, in fixed-width fonts
LABEL_CELLS = 24
HEADER_ANGLE = 55  # degrees: read without turning one's head, and still narrow
SMALLEST_CELL, LARGEST_CELL, HEAT_WIDTH = 13.0, 34.0, 900
CELL_SIDE = 0.94  # of a cell, so that a thin gap shows
OPACITY_STEPS = 50

LINK_HEIGHT = 150
LINE_HEIGHT = 26
LINKS_PER_ROW = 4
LEAST_SHARE = 0.05
TOKEN_PADDING = 14
LARGEST_STRETCH = 1.5  # of the shorter line, so that links of a translation in order are upright


def render_svg(attribution: Mapping[str, Any], view: str = "heat_map", at: Mapping[str, int] | None = None) -> str:
    """Draw an attribution's dictionary as a vector graphic of its own: `heat_map` or `links`.

    Leading axes that `at` does not name are averaged.
    """
    if view not in VIEWS:
        raise unknown_name("view", view, VIEWS)
    return VIEWS[view](read_picture(attribution, at))


def draw_heat_map(picture: Picture, as_image: bool = False) -> str:
    """Draw target rows and source columns; `as_image` holds the cells of a huge matrix as a small bitmap."""
    rows, columns = len(picture.rows), len(picture.columns)
    cell = round(min(max(HEAT_WIDTH / max(columns, 1), SMALLEST_CELL), LARGEST_CELL), 1)
    size = round(min(FONT_SIZE, cell - 2), 1)
    left = round(_widest(picture.rows) * CHARACTER_WIDTH * size + 12, 1)
    reach = _widest(picture.columns) * CHARACTER_WIDTH * size
    top = round(reach * math.sin(math.radians(HEADER_ANGLE)) + size + 6, 1)
    overhang = reach * math.cos(math.radians(HEADER_ANGLE)) + size
    width, height = left + columns * cell + overhang, top + rows * cell + (24 if picture.has_prefix else 6)

    parts = [
        f'<rect class="plane" x="{left}" y="{top}" width="{_number(columns * cell)}" '
        f'height="{_number(rows * cell)}" fill="{PLANE}"/>',
        f'<g class="cells" transform="translate({left} {top}) scale({cell})">',
        cell_image(picture.strengths) if as_image else cell_paths(picture.strengths),
        "</g>",
        f'<g class="column-labels" font-size="{size}">',
        *(
            _text(
                label,
                f'data-column="{column}" transform="translate({_number(left + (column + 0.5) * cell)} '
                f'{_number(top - 5)}) rotate(-{HEADER_ANGLE})"',
            )
            for column, label in enumerate(picture.columns)
        ),
        "</g>",
        f'<g class="row-labels" font-size="{size}" text-anchor="end">',
        *(
            _text(
                label,
                f'data-row="{row}" x="{_number(left - 7)}" y="{_number(top + (row + 0.5) * cell)}" dy=".35em"',
            )
            for row, label in enumerate(picture.rows)
        ),
        "</g>",
    ]
    if picture.has_prefix:
        x, below = _number(left + picture.boundary * cell), _number(top + rows * cell + 16)
        parts += [
            f'<path class="boundary" d="M{x} {top}V{_number(top + rows * cell + 18)}" stroke="{INK}" '
            'stroke-width="1.5"/>',
            f'<text class="caption" x="{x}" y="{below}" dx="-8" text-anchor="end" fill="{FAINT_INK}" '
            'font-size="11">source</text>',
            f'<text class="caption" x="{x}" y="{below}" dx="8" fill="{FAINT_INK}" font-size="11">target prefix</text>',
        ]
    geometry = f'data-left="{left}" data-top="{top}" data-cell="{cell}"'
    name = f"Heat map: {rows} target rows, {columns} source columns"
    return _svg("heat-map", name, width, height, parts, geometry)


def cell_paths(strengths: Float[np.ndarray, "target column"]) -> str:
    """Draw the cells of a matrix, unit squares, as one path for each step of opacity and sign."""
    steps = np.rint(strengths * OPACITY_STEPS).astype(int)
    squares: dict[int, list[str]] = defaultdict(list)
    for row, column in zip(*np.nonzero(steps), strict=True):
        squares[int(steps[row, column])].append(f"M{column} {row}h{CELL_SIDE}v{CELL_SIDE}h-{CELL_SIDE}z")
    return "".join(
        f'<path class="{_sign(step)}" fill="{_colour(step)}" '
        f'fill-opacity="{_number(abs(step) / OPACITY_STEPS)}" d="{"".join(squares[step])}"/>'
        for step in sorted(squares)
    )


def cell_image(strengths: Float[np.ndarray, "target column"]) -> str:
    """Draw the cells of a matrix as an image of one pixel a cell."""
    rows, columns = strengths.shape
    png = base64.b64encode(write_png(strengths)).decode("ascii")
    return (
        f'<image width="{columns}" height="{rows}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{png}"/>'
    )


def draw_links(picture: Picture) -> str:
    """Draw the source line above, the target line below, and curves as opaque as the links are strong."""
    above, below = _lay_out(picture.columns), _lay_out(picture.rows)
    width = max(above.width, below.width)
    source_x, target_x = above.spread(width), below.spread(width)
    source_y, target_y = LINE_HEIGHT, LINE_HEIGHT + LINK_HEIGHT
    shares = picture.shares
    largest = float(np.abs(shares).max(initial=0)) or 1.0
    curves = [
        f'<path class="{_sign(share)}" d="M{_number(source_x[column])} {source_y}'
        f"C{_number(source_x[column])} {source_y + LINK_HEIGHT // 2} "
        f'{_number(target_x[row])} {source_y + LINK_HEIGHT // 2} {_number(target_x[row])} {target_y}" '
        f'stroke="{_colour(share)}" stroke-opacity="{_number(abs(share) / largest)}"/>'
        for row in range(len(picture.rows))
        for column in picture.strongest(row, LINKS_PER_ROW)
        if abs(share := float(shares[row, column])) >= LEAST_SHARE
    ]
    parts = [
        '<g class="curves" fill="none" stroke-width="2">',
        *curves,
        "</g>",
        f'<g class="tokens" font-size="{FONT_SIZE}" text-anchor="middle">',
        *_tokens("column", picture.columns, source_x, above.widths, 0),
        *_tokens("row", picture.rows, target_x, below.widths, target_y),
        "</g>",
    ]
    if picture.has_prefix and picture.boundary:
        x = _number((source_x[picture.boundary - 1] + source_x[picture.boundary]) / 2)
        parts.append(f'<path class="boundary" d="M{x} 2V{LINE_HEIGHT - 2}" stroke="{INK}" stroke-width="1.5"/>')
    name = f"Links from {len(picture.columns)} source tokens above to {len(picture.rows)} target tokens below"
    geometry = f'data-above="{source_y}" data-below="{target_y}"'
    return _svg("link-view", name, width, target_y + LINE_HEIGHT, parts, geometry)


VIEWS = {"heat_map": draw_heat_map, "links": draw_links}


class Line(NamedTuple):
    """Where the tokens of a line stand."""

    centres: list[float]
    widths: list[float]
    width: float

    def spread(self, width: float) -> list[float]:
        """Place the centres in a wider space: the line is stretched a little, and stands in the middle."""
        stretch = min(width / self.width, LARGEST_STRETCH) if self.width else 1.0
        margin = (width - self.width * stretch) / 2
        return [margin + centre * stretch for centre in self.centres]


def _lay_out(labels: Sequence[Label]) -> Line:
    """Put tokens side by side in their reading direction."""
    widths = [cell_len(clip(label.text, LABEL_CELLS)) * CHARACTER_WIDTH * FONT_SIZE + TOKEN_PADDING for label in labels]
    ends = np.cumsum(widths)
    width = float(ends[-1]) if widths else 0.0
    centres = ends - np.array(widths) / 2
    return Line((width - centres if right_to_left(labels) else centres).tolist(), widths, width)


def _tokens(
    side: str, labels: Sequence[Label], centres: Sequence[float], widths: Sequence[float], y: int
) -> Iterator[str]:
    for position, (label, x, width) in enumerate(zip(labels, centres, widths, strict=True)):
        yield (
            f'<g class="token" data-{side}="{position}"><rect x="{_number(x - width / 2 + 2)}" y="{y + 2}" '
            f'width="{_number(width - 4)}" height="{LINE_HEIGHT - 4}" rx="5" fill="{PLANE}"/>'
        )
        yield _text(label, f'x="{_number(x)}" y="{y + LINE_HEIGHT / 2}" dy=".35em"') + "</g>"


def _text(label: Label, attributes: str) -> str:
    shown = clip(label.text, LABEL_CELLS)
    whole = f"<title>{escape(label.text)}</title>" if shown != label.text else ""
    style = f'class="special" font-style="italic" fill="{FAINT_INK}"' if label.special else f'fill="{INK}"'
    return f"<text {style} {attributes}>{whole}{escape(shown)}</text>"


def _svg(kind: str, name: str, width: float | int, height: float | int, parts: Sequence[str], geometry: str) -> str:
    width, height = math.ceil(width), math.ceil(height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" role="img" aria-label="{name}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="{FONT}" {geometry}>'
        + "".join(parts)
        + "</svg>"
    )


def _widest(labels: Sequence[Label]) -> int:
    return max((cell_len(clip(label.text, LABEL_CELLS)) for label in labels), default=0)


def _sign(value: float | int) -> str:
    return "negative" if value < 0 else "positive"


def _colour(value: float | int) -> str:
    return NEGATIVE if value < 0 else POSITIVE


def _number(value: float | int) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
