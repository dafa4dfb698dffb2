"""A page of heat maps side by side, one set of them shown at a time; it needs no network and no script."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from sightline.view.frames import draw_frames


def render_side_by_side(plot: Mapping[str, Any]) -> str:
    """Draw frames, as `sightline.view.frames` takes them, as a page of their own."""
    note = f"<figcaption>{escape(plot['note'])}</figcaption>" if plot.get("note") else ""
    template = Template((files("sightline.view") / "report.html").read_text(encoding="utf-8"))
    return template.substitute(title=escape(plot["title"]), body=f"<figure>{draw_frames(plot)}{note}</figure>")
