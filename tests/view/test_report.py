"""The report of a study: what its page and its Markdown say of a document."""

from __future__ import annotations

import re
from typing import Any

from sightline.view.report import render_report_markdown, render_report_page

HEAT_MAP = {
    "kind": "heat_map",
    "title": "Heads",
    "tables": [{"title": "a", "rows": ["x"], "columns": ["y"], "values": [[1.0]]}],
}
LINES = {
    "kind": "lines",
    "title": "Curves",
    "note": "In the preset `quick`.",
    "x": {"label": "step"},
    "y": {"label": "loss"},
    "series": [{"name": "ours", "x": [1, 2], "y": [1.0, 2.0]}],
}


def document(**changes: Any) -> dict[str, Any]:
    """Make up what `study.json` holds."""
    return {
        "study": "toy",
        "title": "Toys",
        "paper": "Nobody 2021",
        "preset": "quick",
        "claims": [{"id": "sum", "text": "The sum is 3.", "verdict": "holds", "ours": "3", "paper": "3 (table 1)"}],
        "tables": [
            {
                "title": "Numbers",
                "where": "table 1",
                "rows": ["first"],
                "columns": ["mean"],
                "ours": {"first": {"mean": 0.5}},
                "paper": {"first": {"mean": 0.25}},
            }
        ],
        "plots": [LINES, HEAT_MAP],
        "deviations": ["The variant `a<b` is `ours`."],
        "settings": {
            "size": 3,
            "seeds": [1, 2],
            "text": {"steps": {"lstm": 5}, "sets": []},
            "models": "",
            "base": None,
        },
        "real data": True,
        "seconds": {"first": 60.0, "second": 90.0},
        "versions": {"torch": "2"},
        "commit": "abc",
    } | changes


def test_the_column_of_row_names_has_no_heading() -> None:
    page = render_report_page(document())
    assert "<tr><th></th><th><bdi>mean</bdi></th></tr>" in page
    assert "∅" not in page


def test_what_stands_between_backticks_is_code() -> None:
    page = render_report_page(document())
    assert "Measured with <code>sightline study toy --preset quick</code> on real data, in 2 minutes." in page
    assert "<li>The variant <code>a&lt;b</code> is <code>ours</code>.</li>" in page
    assert "<figcaption>In the preset <code>quick</code>.</figcaption>" in page
    assert "`" not in page


def test_what_it_was_measured_on_is_told() -> None:
    assert "--preset quick` without real corpora, in" in render_report_markdown(document(**{"real data": False}))


def test_settings_are_listed_one_by_one() -> None:
    text = render_report_markdown(document())
    assert re.findall(r"^\| ([a-z.]+) \| (.*) \|$", text[text.index("## Settings") :], re.MULTILINE)[1:] == [
        ("size", "3"),
        ("seeds", "1, 2"),
        ("text.steps.lstm", "5"),
        ("text.sets", "-"),
        ("models", "-"),
        ("base", "-"),
        ("versions", "torch 2"),
        ("commit", "abc"),
    ]


def test_charts_can_stand_side_by_side() -> None:
    page = render_report_page(document())
    figures = page[page.index("<div class='figures'>") :]
    assert re.findall(r"<figure[^>]*>", figures) == ["<figure class='chart'>", "<figure>"]
