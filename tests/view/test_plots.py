"""Charts: every mark is where its value is, and every text is escaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import InputError
from sightline.view.plots import HEIGHT, LEFT, TOP, WIDTH, draw_plot

NAMESPACE = "{http://www.w3.org/2000/svg}"


def _plot(kind: str = "lines", **changes: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "title": "A <title> & more",
        "x": {"label": "step"},
        "y": {"label": "accuracy", "range": [0, 1]},
        "series": [{"name": "a < b", "x": [0, 50, 100], "y": [0.0, 0.5, 1.0]}],
    } | changes


def _texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{NAMESPACE}text")]


@pytest.mark.parametrize("kind", ["lines", "points"])
def test_marks_stand_at_their_values(kind: str) -> None:
    plot = _plot(kind, x={"label": "step", "range": [0, 100]})
    circles = ET.fromstring(draw_plot(plot)).findall(f".//{NAMESPACE}g/{NAMESPACE}circle")
    places = [(float(circle.get("cx", 0)), float(circle.get("cy", 0))) for circle in circles]
    assert places == [(LEFT, TOP + HEIGHT), (LEFT + WIDTH / 2, TOP + HEIGHT / 2), (LEFT + WIDTH, TOP)]


def test_texts_are_escaped_and_axes_named() -> None:
    texts = _texts(draw_plot(_plot()))
    assert {"A <title> & more", "a < b", "step", "accuracy", "0.4"} <= set(texts)


def test_bars_stand_on_zero_and_grow_with_their_values() -> None:
    plot = _plot(
        "bars", groups=["x", "y"], series=[{"name": "one", "y": [0.25, 0.5], "low": [0.2, None], "high": [0.3, 1]}]
    )
    bars = ET.fromstring(draw_plot(plot)).findall(f".//{NAMESPACE}rect")
    heights = [float(bar.get("height", 0)) for bar in bars]
    assert heights == pytest.approx([HEIGHT / 4, HEIGHT / 2], abs=0.1)
    assert {float(bar.get("y", 0)) + float(bar.get("height", 0)) for bar in bars} == {TOP + HEIGHT}


def test_a_gap_breaks_the_line() -> None:
    plot = _plot(series=[{"name": "a", "x": [0, 1, 2, 3], "y": [0, None, 0.5, 1]}])
    path = re.findall(r'<path d="(M[^"]+)" fill="none" stroke="#0072b2"', draw_plot(plot))[0]
    assert path.count("M") == 2
    assert path.count("L") == 1


def test_logarithmic_axis_and_named_ticks() -> None:
    plot = _plot(x={"label": "step", "scale": "log"}, series=[{"name": "a", "x": [1, 10, 1000], "y": [0, 0.5, 1]}])
    assert {"1", "10", "100", "1,000"} <= set(_texts(draw_plot(plot)))
    ticks = [[0, "softmax"], [1, "-10"], [2, ".5"]]
    assert {"softmax", "-10", ".5"} <= set(_texts(draw_plot(_plot(x={"label": "lambda", "ticks": ticks}))))


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.002, 0.03], {"0.002", "0.005", "0.01", "0.02"}),
        ([3, 40], {"5", "10", "20"}),
        ([0.5, 60], {"0.5", "1", "2", "5", "10", "20", "50"}),
        ([1, 1000], {"1", "10", "100", "1,000"}),
        ([1e-8, 1e4], {"1e-08", "1e-06", "0.0001", "0.01", "1", "100", "10,000"}),
    ],
)
def test_a_logarithmic_axis_has_more_than_one_tick(values: list[float], ticks: set[str]) -> None:
    plot = _plot(y={"label": "", "scale": "log"}, series=[{"name": "a", "x": [0, 7], "y": values}])
    texts = set(_texts(draw_plot(plot | {"x": {"label": "", "ticks": [[0, "first"]]}})))
    assert texts - {"A <title> & more", "a", "first", ""} == ticks


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match="There is no kind of plot 'pie'"):
        draw_plot(_plot("pie"))


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.none() | st.floats(-1e6, 1e6)), max_size=8),
    st.sampled_from(["lines", "points"]),
)
def test_any_values_make_a_picture(points: list[tuple[float, float | None]], kind: str) -> None:
    series = [{"name": "a", "x": [x for x, _ in points], "y": [y for _, y in points]}]
    svg = draw_plot(_plot(kind, y={"label": "y"}, series=series))
    assert "nan" not in svg
    ET.fromstring(svg)


def test_heat_maps_colour_and_frame_cells() -> None:
    table = {"title": "<weights>", "rows": ["a", "b"], "columns": ["x", "y", "z"], "values": [[0, 1, 2], [4, 3, 1]]}
    plot = {"kind": "heat_map", "title": "A & B", "tables": [table | {"framed": [[1, 2]]}, table | {"title": "other"}]}
    drawn = draw_plot(plot)
    assert "<strong>A &amp; B</strong>" in drawn
    svg = ET.fromstring(drawn[drawn.index("<svg") :])
    assert svg.get("aria-label") == "A & B"
    cells = list(svg.iter("rect"))
    assert len(cells) == 12
    shades = [float(cell.get("fill-opacity", 0)) for cell in cells[:6]]
    assert shades == pytest.approx([0.04 + 0.96 * value / 4 for value in (0, 1, 2, 4, 3, 1)], abs=0.006)
    assert [cell.get("stroke") is not None for cell in cells] == [False] * 5 + [True] + [False] * 6
    assert {"<weights>", "other", "a", "x"} <= {"".join(text.itertext()) for text in svg.iter("text")}


def test_heat_maps_that_do_not_fit_next_to_one_another_stand_below() -> None:
    columns = [str(number) for number in range(30)]
    table = {"title": "t", "rows": ["a"], "columns": columns, "values": [[1.0] * 30]}
    drawn = draw_plot({"kind": "heat_map", "title": "T", "tables": [table, table | {"title": "u"}]})
    svg = ET.fromstring(drawn[drawn.index("<svg") :])
    places = [(float(cell.get("x", 0)), float(cell.get("y", 0))) for cell in svg.iter("rect")]
    assert places[0][0] == places[30][0]
    assert places[0][1] + 20 < places[30][1]
    assert float(svg.get("width", 0)) <= 900
    assert max(y for _, y in places) + 20 <= float(svg.get("height", 0))
