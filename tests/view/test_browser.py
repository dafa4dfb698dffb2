"""The renderer, run by a real browser: what it shows is what Python computes, and what a reader does works."""

import csv
import io
import json
import random
import time
import xml.etree.ElementTree as ElementTree
from functools import partial

import numpy as np
import pytest
from browser import PHONE, save, serious_faults, wait_until
from view.attributions import build, cat

from sightline.attribution import Attribution
from sightline.view.html import render_fragment, render_page
from sightline.view.labels import visible


def figure(page, number=0):
    return page.locator("figure.sightline").nth(number)


def token(page, side, position):
    return page.locator(f".links .token[data-{side}='{position}']")


def readout(page):
    return page.locator(".readout").inner_text().replace("\n", " ")


def shown_scores(page, number=0):
    """Return the matrix that is drawn, as the reader saves it."""
    rows = list(csv.DictReader(io.StringIO(save(page, figure(page, number), "CSV").decode())))
    shape = (max(int(row["target"]) for row in rows) + 1, max(int(row["column"]) for row in rows) + 1)
    return np.array([float(row["score"]) for row in rows]).reshape(shape), rows


def pieces():
    """Two layers of three heads; words of several pieces and special positions on both sides; either sign."""
    side = {"source": ["▁un", "even", "▁wor", "ds", "</s>"], "target": [">>es<<", "▁pal", "abras", "▁des", "</s>"]}
    ids = {"source": [0, 0, 1, 1, None], "target": [None, 0, 0, 1, None]}
    words = {"source": ["uneven", "words"], "target": ["palabras", "des"]}
    plain = {name: {"tokens": side[name], "word_ids": ids[name], "words": words[name]} for name in side}
    scores = np.random.default_rng(3).normal(size=(2, 3, 5, 5)).astype(np.float32)
    empty = {"tokens": [], "words": [], "word_ids": []}
    return Attribution.from_dict(
        plain | {"prefix": empty, "axes": ["layer", "head"], "method": "norms", "settings": {}, "scores": scores}
    )


def choose(page, control, value):
    menu = page.locator("details.options")
    if menu.get_attribute("open") is None:
        menu.locator("summary").click()
    place = page.locator(f"[data-control='{control}']")
    place.set_checked(value) if isinstance(value, bool) else place.select_option(value)


STEPS = {
    "words without special positions": ({}, lambda why: why.flat().words().without_special()),
    "pieces": ({"grain": "pieces", "special": True}, lambda why: why.flat()),
    "one head of one layer": (
        {"axis-0": "1", "axis-1": "2"},
        lambda why: why.layer(1).heads(2).words().without_special(),
    ),
    "a layer's mean": ({"axis-0": "0"}, lambda why: why.layer(0).mean("head").words().without_special()),
    "special positions": ({"special": True}, lambda why: why.flat().words()),
    "sum": ({"scale": "sum"}, lambda why: why.flat().words().without_special().normalized("sum")),
    "clamp": ({"scale": "clamp"}, lambda why: why.flat().words().without_special().normalized("clamp")),
    "softmax": ({"scale": "softmax"}, lambda why: why.flat().words().without_special().normalized("softmax")),
}


@pytest.mark.parametrize("name", STEPS)
def test_choices_show_what_python_computes(show, name):
    why = pieces()
    page = show(render_page([why.to_dict()], "t"))
    choices, compute = STEPS[name]
    for control, value in choices.items():
        choose(page, control, value)
    expected = compute(why)
    found, rows = shown_scores(page)
    np.testing.assert_allclose(found, expected.scores, atol=3e-4)  # 16 bits a score
    assert [row["column_token"] for row in rows[: found.shape[1]]] == list(expected.source.pieces)
    assert [row["target_token"] for row in rows[:: found.shape[1]]] == list(expected.target.pieces)
    assert not page.complaints


def test_a_thumbnail_chooses_layer_and_head(show):
    why = pieces()
    page = show(render_page([why.to_dict()], "t"))
    page.get_by_text("layer × head: pick one").click()
    page.get_by_role("button", name="layer 1, head 2").click()
    assert page.locator(".selection").inner_text() == "layer 1, head 2"
    found, _ = shown_scores(page)
    np.testing.assert_allclose(found, why.layer(1).heads(2).words().without_special().scores, atol=3e-4)
    assert page.locator(".thumbnail[aria-pressed='true']").get_attribute("aria-label") == "layer 1, head 2"
    page.get_by_role("button", name="layer 1, head mean").click()
    assert page.locator(".selection").inner_text() == "layer 1, mean over heads"


def test_a_fragment_starts_with_the_position_asked_for(show):
    page = show(f"<!doctype html><body>{render_fragment(pieces().to_dict(), at={'layer': 1})}")
    assert page.locator(".selection").inner_text() == "layer 1, mean over heads"


def test_pointing_shows_and_clicking_pins(show):
    page = show(render_page([cat()], "t"))
    assert readout(page).startswith("Point at a word")
    token(page, "row", 1).hover()
    assert readout(page).startswith("▁gato ← ▁cat 0.600")
    token(page, "column", 2).hover()
    assert readout(page).startswith("▁sleep → ▁duerme 0.400")
    token(page, "row", 1).click()
    token(page, "row", 0).hover()  # what is pinned stays
    assert readout(page).startswith("▁gato ←")
    assert token(page, "row", 1).get_attribute("aria-pressed") == "true"
    token(page, "row", 2).click(modifiers=["Shift"])
    lines = page.locator(".readout p").all_inner_texts()
    assert [line.split(" ")[0] for line in lines] == ["▁gato", "▁duerme"]
    assert page.locator(".curves path.second").count() > 0
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    assert readout(page).startswith("Point at a word")
    assert page.locator("[aria-pressed='true']").count() == 0
    token(page, "row", 1).click()
    token(page, "row", 1).click()  # a second click lets go
    assert page.locator("[aria-pressed='true']").count() == 0


def test_a_tap_pins_on_a_phone_and_nothing_is_wider_than_the_screen(show):
    page = show(render_page([cat()], "t"), **PHONE)
    assert readout(page).startswith("Tap a word")
    token(page, "row", 1).tap()
    assert readout(page).startswith("▁gato ←")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    reading, matrix = (page.locator(name).bounding_box() for name in (".reading", ".matrix-card"))
    assert matrix["y"] >= reading["y"] + reading["height"]  # cards stand below each other


def test_the_keyboard_alone_is_enough(show):
    page = show(render_page([cat()], "t"))
    token(page, "row", 0).focus()
    page.keyboard.press("ArrowRight")
    assert readout(page).startswith("▁gato ←")
    page.keyboard.press("Enter")
    assert token(page, "row", 1).get_attribute("aria-pressed") == "true"
    page.keyboard.press("ArrowUp")  # to the source
    assert page.evaluate("document.activeElement.dataset.column") == "0"
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.dataset.column") == "3"
    page.keyboard.press("Escape")
    page.locator(".matrix").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):  # the first press enters the matrix
        page.keyboard.press(key)
    assert readout(page).startswith("▁gato ← ▁cat 0.600")
    assert "of the row" in readout(page)
    page.keyboard.press("Enter")
    page.locator("details.save summary").focus()
    assert readout(page).startswith("▁gato ← ▁cat")  # pinned


def test_pointing_at_the_matrix_shows_the_cell(show):
    page = show(render_page([cat()], "t"))
    place = page.locator(".matrix canvas").bounding_box()
    sizes = page.evaluate(
        """async () => {
          const context = document.createElement("canvas").getContext("2d");
          context.font = `13px ${getComputedStyle(document.querySelector("figure")).fontFamily}`;
          const widest = (side) => Math.max(20, ...[...document.querySelectorAll(`.token[data-${side}]`)]
            .map((one) => context.measureText(one.textContent).width));
          return [Math.ceil(widest("row") + 14), Math.ceil(widest("column") * Math.sin((55 * Math.PI) / 180) + 18)];
        }"""
    )
    page.mouse.click(place["x"] + sizes[0] + 1.5 * 26, place["y"] + sizes[1] + 1.5 * 26)
    assert readout(page).startswith("▁gato ← ▁cat 0.600")


EVIL = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    "<!--",
    "javascript:alert(4)",
    "\u202ereversed\u2066",
    "\x1b[31m\x00",
    "\ud800",
]


def test_hostile_tokens_are_shown_and_never_run(show):
    attribution = build(EVIL, EVIL, method=EVIL[0], settings={EVIL[1]: EVIL[2]}, axes={EVIL[2]: 2})
    page = show(render_page([attribution, attribution], EVIL[0]))
    for position in range(len(EVIL)):
        token(page, "row", position).first.hover()
        assert token(page, "row", position).first.inner_text() == visible(EVIL[position])
    assert page.locator("img").count() == 0
    assert not page.complaints
    assert page.locator(".method").first.inner_text() == EVIL[0]


def test_labels_are_made_visible_as_python_does(show):
    rng = random.Random(0)
    ranges = [(0, 0x250), (0x300, 0x370), (0x600, 0x700), (0x2000, 0x2070), (0xD800, 0xE000), (0xFDD0, 0x10000)]
    texts = ["", " ", "  a ", "\u200dx", "a\u200cb", "a\u200d", "\u200c"]
    for _ in range(400):
        low, high = rng.choice([*ranges, (0xE0000, 0xE0080), (0x1F600, 0x1F650), (0x1FFF0, 0x20000)])
        texts.append("".join(chr(rng.randrange(low, high)) for _ in range(rng.randrange(1, 4))))
    texts = [text for text in texts if not any("\ud800" <= c <= "\udbff" for c in text[:-1])]  # pairs are one character
    page = show(render_page([build(texts, ["x"], scores=[[0.0] * len(texts)])], "t"))
    assert page.locator(".token[data-column]").evaluate_all("all => all.map((one) => one.textContent)") == [
        visible(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts
    ]


def test_every_format_that_is_saved_can_be_read_back(show):
    why = pieces()
    page = show(render_page([why.to_dict()], "t"))
    saved = partial(save, page, figure(page))
    read = Attribution.from_dict(json.loads(saved("JSON")))
    assert read.labels() == why.labels()
    np.testing.assert_allclose(read.scores, why.scores, atol=3e-4)
    for name in ("SVG, matrix", "SVG, links"):
        drawing = ElementTree.fromstring(saved(name))
        texts = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
        assert sorted(texts) == ["des", "palabras", "uneven", "words"]
        assert list(drawing.iter("{http://www.w3.org/2000/svg}path"))
    assert saved("PNG").startswith(b"\x89PNG\r\n\x1a\n")
    assert not page.complaints


SETTLED = """() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(
  () => setTimeout(resolve, 200))))"""


def test_500_tokens_stay_smooth_and_both_views_move_together(show):
    names = [f"t{i}" for i in range(500)]
    scores = np.eye(500) + np.random.default_rng(0).random((500, 500)) * 0.3
    page = show(render_page([build(names, names, scores=scores)], "t"))
    canvas = page.locator(".matrix canvas")
    before = canvas.bounding_box()
    assert before["height"] <= 800  # it is no larger than what is seen
    times = page.evaluate(
        """async () => {
          const matrix = document.querySelector(".matrix");
          const times = [];
          for (let step = 1; step <= 40; step++) {
            matrix.scrollTop = step * 150;
            matrix.scrollLeft = step * 150;
            await new Promise((resolve) => requestAnimationFrame(resolve));
            const start = performance.now();
            matrix.dispatchEvent(new Event("scroll"));
            times.push(performance.now() - start);
          }
          return times;
        }"""
    )
    assert np.median(times) < 50  # milliseconds for a whole repaint; the slowest is that of a busy machine
    assert canvas.bounding_box() == before  # with the labels drawn on it
    assert page.evaluate("document.querySelector('.line.target').scrollTop") > 0
    page.evaluate(SETTLED)  # a reader does not scroll both at once
    page.evaluate("document.querySelector('.line.target').scrollTop = 0")
    wait_until(page, "document.querySelector('.matrix').scrollTop === 0")
    start = time.perf_counter()
    page.evaluate("document.querySelector('.token[data-row=\"400\"]').click()")
    assert time.perf_counter() - start < 10
    assert readout(page).startswith("t400 ← t400")
    wait_until(page, "document.querySelector('.matrix').scrollTop > 4000")


def gold_picture():
    picture = build(["a", "b", "c"], ["x", "y", "z"], scores=[[1, 0, 0], [0, 1, 0], [0, 0.5, 1]], method="alignment")
    return picture | {
        "links": [[0, 0, 1], [1, 1, 0.9], [1, 2, 0.5]],
        "gold": {"sure": [[0, 0], [2, 2]], "possible": [[0, 0], [2, 2], [1, 1]]},
    }


def test_gold_links_are_laid_over_with_errors_marked(show):
    page = show(render_page([gold_picture()], "t"))
    assert page.locator(".legend .mark").all_inner_texts() == ["1 right", "1 possible", "1 wrong", "1 missed"]
    assert page.locator(".curves path.wrong").count() == 1
    page.locator(".matrix").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert "not in the gold alignment" in readout(page)


def test_probabilities_and_ranks_are_told(show):
    page = show(render_page([cat() | {"probabilities": [0.9, 0.25, 0.5, 1.0], "ranks": [1, 3, 1, 1]}], "t"))
    token(page, "row", 1).hover()
    assert "probability 25 %, the model's choice number 3" in readout(page)
    token(page, "row", 0).hover()
    assert "probability 90 %, the model's first choice" in readout(page)


def test_settings_at_their_default_are_not_listed_and_the_rest_is_in_words(show):
    settings = {"layer": -1, "reading": "output", "head": "sum", "contrast": None, "rate": 0.3}
    picture = cat() | {"settings": settings, "defaults": settings | {"layer": "all", "rate": 0.1}}
    page = show(render_page([picture], "t"))
    assert page.locator(".settings").inner_text() == "last layer · rate 0.3"


def test_one_output_marks_the_text_at_once(show):
    page = show(render_page([build(["good", "bad"], ["positive"], scores=[[0.5, -1]])], "t"))
    strengths = page.locator(".token[data-column]").evaluate_all(
        "all => all.map((one) => [one.style.getPropertyValue('--strength'), one.classList.contains('negative')])"
    )
    assert strengths == [["0.500", False], ["1.000", True]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_a_serious_fault_of_accessibility(show, scheme):
    page = show(render_page([pieces().to_dict(), gold_picture()], "A page"), color_scheme=scheme)
    page.get_by_text("layer × head: pick one").click()
    page.locator("details.options summary").first.click()
    token(page, "row", 0).first.click()
    assert serious_faults(page) == []


def test_print_is_light_and_drawn_as_vectors(show):
    page = show(render_page([cat()], "t"), color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.wait_for_selector(".for-print svg path")
    assert page.locator(".matrix").is_hidden()
    assert page.evaluate("getComputedStyle(document.querySelector('figure')).color") == "rgb(27, 31, 36)"


def test_right_to_left_text_runs_from_the_right(show):
    page = show(render_page([build(["שלום", "עולם"], ["hello", "world"])], "t"))
    first, second = (token(page, "column", position).bounding_box()["x"] for position in (0, 1))
    assert first > second
    token(page, "column", 0).focus()
    page.keyboard.press("ArrowLeft")  # onwards, in this direction
    assert page.evaluate("document.activeElement.dataset.column") == "1"


def test_without_a_script_the_drawings_are_there(browser, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(render_page([cat()], "t"), encoding="utf-8")
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(file.as_uri())
    assert page.locator("svg.heat-map").is_visible()
    assert page.locator("svg.link-view").is_visible()
