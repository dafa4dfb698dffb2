"""The script of a page, run by a real browser."""

import html
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from view.attributions import build, cat

from sightline.view.html import render_fragment, render_page
from sightline.view.svg import render_svg

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

TOOLS = """
const figure = (number) => document.querySelectorAll("figure.sightline")[number];
const settled = () => new Promise((resolve) => setTimeout(resolve, 300));
const pointAt = (element) => element.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event("change")); };
const attributes = (elements, names) => [...elements].map((element) => names.map((name) => element.getAttribute(name)));
"""


def open_page(text, folder):
    """Give the page as it is after its scripts have run."""
    page = folder / "page.html"
    page.write_text(text, encoding="utf-8")
    command = [
        CHROMIUM,
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", f"--user-data-dir={folder / 'profile'}"),
        *("--virtual-time-budget=20000", "--dump-dom", page.as_uri()),
    ]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True).stdout


def run(fragments, script, folder):
    """Run a script on fragments that share a page, and give what it returns."""
    program = f"""
    (async () => {{ {TOOLS} {script} }})().catch((error) => ({{ error: String(error) }})).then((result) => {{
      const place = document.createElement("pre");
      place.id = "result";
      place.textContent = JSON.stringify(result);
      document.body.append(place);
    }});"""
    trap = "<script>window.alert = () => { document.title = 'a token was run'; };</script>"
    page = open_page(f"<!doctype html><body>{trap}{''.join(fragments)}<script>{program}</script>", folder)
    assert "a token was run" not in page.split("<pre", 1)[0].split("</script>", 1)[1]
    return json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', page, re.DOTALL).group(1)))


def drawn(text, kind, names):
    root = ElementTree.fromstring(text)
    group = next(element for element in root.iter() if element.get("class") == kind)
    return [[path.get(name) for name in names] for path in group]


def assert_same(found, expected):
    """Compare drawings by their classes and numbers: 16 bits and floats differ a little."""

    def read(rows):
        return sorted((kind, [float(x) for x in re.findall(r"[\d.]+", d)], float(opacity)) for kind, opacity, d in rows)

    for one, other in zip(read(found), read(expected), strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], abs=0.1)
        assert one[2] == pytest.approx(other[2], abs=0.011)


def test_choosing_a_head_draws_what_python_draws(tmp_path):
    attribution = build(["a", "bb", "ccc", "d"], ["x", "yy", "z"], axes={"layer": 3, "head": 4})
    attribution["scores"] = (np.array(attribution["scores"]) - 0.1).tolist()
    cells, curves = ["class", "fill-opacity", "d"], ["class", "stroke-opacity", "d"]
    found = run(
        [render_fragment(attribution), render_fragment(attribution, at={"layer": 2})],
        f"""
        choose(figure(0).querySelectorAll("select")[0], "2");
        await settled();
        const mean = attributes(figure(0).querySelectorAll(".cells path"), {cells});
        choose(figure(0).querySelectorAll("select")[1], "1");
        await settled();
        return {{
          mean, one: attributes(figure(0).querySelectorAll(".cells path"), {cells}),
          links: attributes(figure(0).querySelectorAll(".curves path"), {curves}),
          untouched: attributes(figure(1).querySelectorAll(".cells path"), {cells}),
          selection: figure(0).querySelector(".selection").textContent,
        }};""",
        tmp_path,
    )
    mean = render_svg(attribution, at={"layer": 2})
    one = {"layer": 2, "head": 1}
    assert_same(found["mean"], drawn(mean, "cells", cells))
    assert_same(found["untouched"], drawn(mean, "cells", cells))
    assert_same(found["one"], drawn(render_svg(attribution, at=one), "cells", cells))
    assert_same(found["links"], drawn(render_svg(attribution, "links", at=one), "curves", curves))
    assert found["selection"] == "layer 2, head 1"


def test_pointing_and_arrow_keys_show_exact_numbers(tmp_path):
    found = run(
        [render_fragment(cat()), render_fragment(build(["good", "bad"], ["positive"], scores=[[0.5, -1]]))],
        """
        const readout = (number) => figure(number).querySelector(".readout").textContent;
        const press = async (key) => {
          figure(0).querySelector(".heat .scroll").dispatchEvent(new KeyboardEvent("keydown", { key }));
          await settled();
          return readout(0);
        };
        pointAt(figure(0).querySelector(".link-view [data-row='1'] text"));
        await settled();
        const row = readout(0);
        const focused = [...figure(0).querySelectorAll(".focused")].length;
        pointAt(figure(0).querySelector(".column-labels [data-column='2']"));
        await settled();
        const column = readout(0);
        pointAt(figure(0).querySelector(".readout"));
        await settled();
        const nothing = readout(0);
        const keys = [await press("ArrowDown"), await press("ArrowDown"), await press("ArrowRight")];
        pointAt(figure(1).querySelector("span[data-column='1']"));
        await settled();
        return { row, focused, column, nothing, keys, text: readout(1) };""",
        tmp_path,
    )
    assert found["row"] == "▁gato ← ▁cat 0.6▁The 0.2▁sleep 0.1s 0.05</s> 0.05"
    assert found["focused"] == 2  # the token in the line and its label in the heat map
    assert found["column"].startswith("▁sleep → ▁duerme 0.4▁gato 0.1")
    assert found["nothing"].startswith("Point at")
    assert found["keys"] == [
        "▁El ← ▁The 0.990.0 % of the row's total",
        "▁gato ← ▁The 0.220.0 % of the row's total",
        "▁gato ← ▁cat 0.660.0 % of the row's total",
    ]
    assert found["text"] == "bad → positive -1"


def test_tokens_are_never_run(tmp_path):
    evil = ["<script>alert(1)</script>", "</script><script>alert(2)</script>", "<img src=x onerror=alert(3)>", "<!--"]
    found = run(
        [render_fragment(build(evil, evil, method=evil[0], settings={evil[1]: evil[2]}, axes={evil[2]: 2}))],
        """
        pointAt(figure(0).querySelector(".link-view [data-row='1'] text"));
        choose(figure(0).querySelector("select"), "1");
        await settled();
        pointAt(figure(0).querySelector(".link-view [data-column='2'] text"));
        await settled();
        return { readout: figure(0).querySelector(".readout").textContent,
                 images: document.querySelectorAll("img").length };""",
        tmp_path,
    )
    assert found["readout"].startswith("<img src=x onerror=alert(3)> → ")
    assert found["images"] == 0


def test_saved_drawings_are_vectors_even_of_a_large_matrix(tmp_path):
    names = [f"t{i}" for i in range(150)]
    found = run(
        [render_fragment(build(names, names))],
        """
        const saved = [];
        URL.createObjectURL = (blob) => { saved.push(blob.text()); return "#"; };
        for (const button of figure(0).querySelectorAll("[data-save]")) { button.click(); await settled(); }
        return { live: figure(0).querySelectorAll(".cells image").length, saved: await Promise.all(saved) };""",
        tmp_path,
    )
    assert found["live"] == 1
    heat_map, links = map(ElementTree.fromstring, found["saved"])
    assert not list(heat_map.iter("{http://www.w3.org/2000/svg}image"))
    assert sum(path.get("d").count("M") for path in heat_map.iter("{http://www.w3.org/2000/svg}path")) > 150 * 100
    assert links.get("class") == "link-view"


def test_the_policy_of_a_page_lets_its_own_script_run(tmp_path):
    assert open_page(render_page([cat(), cat()], "t"), tmp_path).count('<figure class="sightline live"') == 2
