"""Notebooks: the widget where there is one to show it, and HTML that brings all it needs everywhere else."""

import json
import sys
from importlib.resources import files

import numpy as np
import pytest
from view.attributions import build, cat, unpack

from sightline.attribution import Attribution
from sightline.errors import InputError
from sightline.view.notebook import build_widget
from sightline.view.packing import Packed


def test_a_widget_holds_the_picture_and_the_one_renderer():
    widget = build_widget(cat())
    assert widget._esm == files("sightline.view").joinpath("figure.js").read_text(encoding="utf-8")
    assert widget.picture["source"]["tokens"] == cat()["source"]["tokens"]
    scores, _ = unpack(Packed(**widget.picture["packed"]), (4, 5))
    np.testing.assert_allclose(scores, cat()["scores"], atol=2e-5)


def test_outside_a_notebook_there_is_html_and_no_widget():
    bundle = Attribution.from_dict(cat())._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "<script" in bundle["text/html"]


def test_in_a_notebook_there_are_both(monkeypatch):
    class Shell:
        kernel = object()

    monkeypatch.setattr("IPython.get_ipython", lambda: Shell())
    bundle = Attribution.from_dict(cat())._repr_mimebundle_()
    assert {"text/html", "application/vnd.jupyter.widget-view+json"} <= set(bundle)


def test_without_anywidget_there_is_html_and_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.setattr("sightline.view.notebook._widget_class", lambda: __import__("anywidget"))
    why = Attribution.from_dict(cat())
    assert set(why._repr_mimebundle_()) == {"text/plain", "text/html"}
    with pytest.raises(InputError, match=r"pip install 'sightline-nlp\[notebook\]'"):
        why.widget()


def test_the_module_draws_as_a_widget_and_follows_its_model(show):
    module = files("sightline.view").joinpath("figure.js").read_text(encoding="utf-8")
    pictures = json.dumps([build(["a"], ["x", "y"]), build(["b", "c"], ["z", "w"])])
    page = show(
        f"""<!doctype html><body><script type="module">{module}
        const pictures = {pictures};
        let listener;
        const model = {{ get: () => pictures[0], on: (name, callback) => {{ listener = callback; }} }};
        const close = render({{ model, el: document.body }});
        window.next = () => {{ pictures.shift(); listener(); }};
        window.close_ = close;
        </script>"""
    )
    sources = page.locator(".line.source .token")
    sources.first.wait_for()
    assert sources.all_inner_texts() == ["a"]
    page.evaluate("window.next()")
    page.get_by_text("b", exact=True).first.wait_for()
    assert sources.all_inner_texts() == ["b", "c"]
    page.evaluate("window.close_()")
    assert sources.count() == 0
    assert not page.complaints
