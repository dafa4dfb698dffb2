"""Frames: every value is there, one frame is chosen at first, and names cannot break the page."""

import re
from xml.etree import ElementTree

from sightline.view.plots import draw_plot

PLOT = {
    "kind": "frames",
    "title": "As it <forms>",
    "label": "step",
    "frames": [
        {
            "name": name,
            "tables": [
                {"title": "attention", "rows": ["a<b", "c"], "columns": ["x", "y&z"], "values": values},
                {"title": "probe", "rows": ["a<b"], "columns": ["x"], "values": [[0.5]]},
            ],
        }
        for name, values in (("0", [[0.5, 0.5], [0.5, 0.5]]), ("50", [[1.0, 0.0], [0.25, 0.75]]))
    ],
}


def test_every_value_is_drawn_and_shaded_by_the_greatest_of_its_table() -> None:
    html = draw_plot(PLOT)
    body = ElementTree.fromstring(re.sub(r"<style>.*?</style>|<input[^>]*>", "", html))
    cells = [(float(rect.get("fill-opacity") or 0), float(rect[0].text or "nan")) for rect in body.iter("rect")]
    assert [value for _, value in cells] == [0.5, 0.5, 0.5, 0.5, 0.5, 1, 0, 0.25, 0.75, 0.5]
    assert [shade for shade, _ in cells] == [0.52, 0.52, 0.52, 0.52, 1, 1, 0.04, 0.28, 0.76, 1]


def test_the_last_frame_is_shown_at_first_and_no_script_is_needed() -> None:
    html = draw_plot(PLOT)
    assert re.findall(r"<input[^>]* checked>", html) == re.findall(r'<input[^>]*-1" checked>', html)
    assert html.count('class="frame"') == html.count("<label") == 2
    assert "<script" not in html
    assert "As it &lt;forms&gt;" in html
    assert "<forms>" not in html


def test_a_table_of_nothing() -> None:
    empty = {"title": "t", "rows": ["a"], "columns": ["b"], "values": [[0.0]]}
    assert "0.04" in draw_plot(PLOT | {"frames": [{"name": "1", "tables": [empty]}]})
