"""Pictures in notebooks: the renderer as a widget wherever anywidget is installed (Jupyter, Colab, VS Code, marimo)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from sightline.errors import InputError, missing_package
from sightline.view.html import to_picture


def build_widget(attribution: Mapping[str, Any]) -> Any:
    """Return a widget that draws an attribution's dictionary; what is assigned to `picture` replaces it."""
    try:
        return _widget_class()(picture=to_picture(attribution))
    except ImportError as error:
        raise missing_package("A widget", error) from None


def widget_bundle(attribution: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a notebook needs to show the widget, by media type; None without anywidget or a notebook."""
    try:
        from IPython import get_ipython

        if getattr(get_ipython(), "kernel", None) is None:
            return None
        bundle = build_widget(attribution)._repr_mimebundle_()
    except (ImportError, InputError):
        return None
    return bundle[0] if isinstance(bundle, tuple) else bundle


@cache
def _widget_class() -> Any:
    import anywidget
    import traitlets

    folder = files("sightline.view")

    class Picture(anywidget.AnyWidget):
        _esm = folder.joinpath("figure.js").read_text(encoding="utf-8")
        _css = folder.joinpath("figure.css").read_text(encoding="utf-8")
        picture = traitlets.Dict().tag(sync=True)

    return Picture
