"""A vector graphic as a PNG, drawn by resvg with the fonts of the system (the extra `plot`)."""

from __future__ import annotations

from sightline.errors import missing_package

ZOOM = 2  # pixels for each unit of the drawing, so that it is sharp on today's screens and in print


def render_png(svg: str) -> bytes:
    """Draw a vector graphic on white."""
    try:
        import resvg_py
    except ImportError as error:
        raise missing_package("A PNG", error) from None
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM, background="white"))
