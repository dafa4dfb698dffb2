import base64
import io
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from view.attributions import build, cat

from sightline.errors import InputError
from sightline.view.bitmap import LEVELS, write_png
from sightline.view.colours import NEGATIVE, POSITIVE
from sightline.view.svg import VIEWS, render_svg

SVG = "{http://www.w3.org/2000/svg}"


def parse(text):
    return ElementTree.parse(io.BytesIO(text.encode("utf-8"))).getroot()


def group(root, name):
    return next(element for element in root.iter() if element.get("class") == name)


def texts(element):
    return ["".join(text.itertext()) for text in element.iter(f"{SVG}text")]


tokens = st.lists(st.text(st.characters(exclude_categories=()), max_size=8), max_size=4)


@settings(deadline=None)
@given(tokens, tokens, st.sampled_from(sorted(VIEWS)))
def test_any_tokens_give_well_formed_xml(source, target, view):
    root = parse(render_svg(build(source, target, prefix=target), view))
    assert len(texts(root)) >= len(source) + 2 * len(target)


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_tokens_are_text_and_never_markup(view):
    evil = ["<script>alert(1)</script>", "</svg>", "<!--", "]]>", "&lt;", "'\""]
    root = parse(render_svg(build(evil, ["x"]), view))
    assert not list(root.iter(f"{SVG}script"))
    assert {"</svg>", "<!--", "]]>", "&lt;", "'\""} <= set(texts(root))


def test_cells_have_the_opacity_and_colour_of_their_strength():
    root = parse(render_svg(build("abc", "xy", scores=[[1.0, -0.5, 0.0], [0.1, 0.2, 0.4]])))
    drawn = {}
    for path in group(root, "cells"):
        for square in path.get("d").split("M")[1:]:
            column, row = square.split("h")[0].split()
            drawn[int(row), int(column)] = (path.get("fill"), float(path.get("fill-opacity")))
    assert drawn == {
        (0, 0): (POSITIVE, 1.0),
        (0, 1): (NEGATIVE, 0.5),
        (1, 0): (POSITIVE, 0.24),
        (1, 1): (POSITIVE, 0.5),
        (1, 2): (POSITIVE, 1.0),
    }


def test_the_heat_map_names_rows_and_columns_and_marks_special_ones():
    root = parse(render_svg(cat()))
    assert texts(group(root, "row-labels")) == ["▁El", "▁gato", "▁duerme", "</s>"]
    assert texts(group(root, "column-labels")) == ["▁The", "▁cat", "▁sleep", "s", "</s>"]
    special = [text for text in root.iter(f"{SVG}text") if text.get("class") == "special"]
    assert len(special) == 2
    assert all(text.get("font-style") == "italic" for text in special)


def test_the_prefix_is_set_apart():
    for view in VIEWS:
        assert group(parse(render_svg(build("ab", "xy", prefix="x"), view)), "boundary") is not None
        assert "boundary" not in render_svg(cat(), view)


def test_links_are_as_opaque_as_their_share():
    root = parse(render_svg(build("abc", "xy", scores=[[0.8, 0.2, 0.0], [0.0, -0.4, 0.6]]), "links"))
    curves = [
        (curve.get("stroke"), round(float(curve.get("stroke-opacity")) * 0.8, 2)) for curve in group(root, "curves")
    ]
    assert curves == [(POSITIVE, 0.8), (POSITIVE, 0.2), (POSITIVE, 0.6), (NEGATIVE, 0.4)]


def test_a_line_runs_in_its_reading_direction():
    def places(side, attribution):
        root = parse(render_svg(attribution, "links"))
        found = [element for element in root.iter(f"{SVG}g") if element.get(f"data-{side}")]
        return [float(element.find(f"{SVG}text").get("x")) for element in found]

    attribution = build(["ذهب", "الولد", "إلى"], ["the", "boy", "went"])
    assert places("column", attribution) == sorted(places("column", attribution), reverse=True)
    assert places("row", attribution) == sorted(places("row", attribution))


def test_long_labels_are_clipped_with_their_whole_text_at_hand():
    root = parse(render_svg(build(["x" * 100], ["y"])))
    label = group(root, "column-labels").find(f"{SVG}text")
    assert label.find(f"{SVG}title").text == "x" * 100
    assert label.find(f"{SVG}title").tail == "x" * 23 + "…"


def test_leading_axes_can_be_selected():
    scores = np.zeros((2, 1, 2))
    scores[0, 0, 0] = scores[1, 0, 1] = 1
    attribution = build("ab", "x", axes={"layer": 2}, scores=scores)
    assert "M0 0h" in render_svg(attribution, at={"layer": 0})
    assert "M0 0h" not in render_svg(attribution, at={"layer": 1})


def test_an_unknown_view():
    with pytest.raises(InputError, match=r"no view 'heatmap'\. Did you mean 'heat_map'"):
        render_svg(cat(), "heatmap")


@given(arrays(np.float32, (3, 5), elements=st.floats(-1, 1, width=32)))
def test_the_bitmap_holds_signs_and_opacities(strengths):
    chunks, rest = {}, write_png(strengths)[8:]
    while rest:
        length = int.from_bytes(rest[:4], "big")
        content = rest[8 : 8 + length]
        assert zlib.crc32(rest[4 : 8 + length]) == int.from_bytes(rest[8 + length : 12 + length], "big")
        chunks[rest[4:8]], rest = content, rest[12 + length :]
    assert chunks[b"IHDR"][:8] == (5).to_bytes(4, "big") + (3).to_bytes(4, "big")
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(3, 6)
    assert not lines[:, 0].any()
    pixels = lines[:, 1:]
    opacity = np.frombuffer(chunks[b"tRNS"], np.uint8)[pixels] / 255
    np.testing.assert_allclose(opacity, np.abs(strengths), atol=0.51 / LEVELS + 0.51 / 255)
    colours = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)[pixels]
    for colour, strength in zip(colours.reshape(-1, 3), strengths.ravel(), strict=True):
        if abs(strength) > 1 / LEVELS:
            assert bytes(colour) == bytes.fromhex((NEGATIVE if strength < 0 else POSITIVE)[1:])


def test_a_bitmap_is_readable_by_a_png_reader():
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    picture = image.open(io.BytesIO(write_png(np.array([[1.0, 0.0, -1.0]], np.float32)))).convert("RGBA")
    assert [picture.getpixel((x, 0))[3] for x in range(3)] == [255, 0, 255]
    assert base64.b16encode(bytes(picture.getpixel((2, 0))[:3])).decode().lower() == NEGATIVE[1:]
