import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from view.attributions import build, cat, unpack

from sightline.errors import InputError
from sightline.view import html
from sightline.view.html import render_fragment, render_page
from sightline.view.labels import visible
from sightline.view.packing import Packed
from sightline.view.tables import PageTable

EVIL = [
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "<script><!--",
    "-->",
    "]]>",
    "\u2028\u2029",
    "&lt;b&gt;",
    "'\"`",
    "</svg><img src=x onerror=alert(1)>",
    "${x} $title $$",
    "\x00\x1b[31m",
    "\ud800",
]


class Reader(HTMLParser):
    """Collect the tags, ids, texts and script contents of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.texts, self.scripts, self.urls = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        self.ids += [values["id"]] if "id" in values else []
        self.urls += [values[name] for name in ("href", "src", "data", "action") if name in values]
        assert not any(name.startswith("on") for name in values), "no inline handlers"

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script" and self.get_starttag_text().startswith("<script"):
            self.scripts.append(data)
        self.texts.append(data)

    def data(self):
        return [json.loads(script) for script in self.scripts if script.startswith("{")]


any_text = st.one_of(st.text(st.characters(exclude_categories=()), max_size=12), st.sampled_from(EVIL))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(any_text, min_size=3, max_size=3), st.lists(any_text, min_size=2, max_size=2), any_text, any_text, any_text
)
def test_no_text_becomes_markup(source, target, method, setting, title):
    def page(source, target, method, settings, title):
        return render_page([build(source, target, method=method, settings=settings)], title)

    plain = Reader(page("abc", "xy", "m", {"s": "v"}, "t"))
    found = Reader(page(source, target, method, {setting: setting}, title))
    extra = sum(len(visible(text)) > 20 for text in (*source, *target))  # a clipped label has a <title>
    assert [tag for tag in found.tags if tag not in ("title", "path")] == [
        tag for tag in plain.tags if tag not in ("title", "path")
    ]
    assert found.tags.count("title") <= plain.tags.count("title") + 2 * extra
    [data] = found.data()
    assert data["source"]["tokens"] == source
    assert data["target"]["tokens"] == target
    assert visible(title) in found.texts


def test_dangerous_texts_are_shown():
    found = Reader(render_page([build(EVIL, EVIL, method=EVIL[0], settings={EVIL[1]: EVIL[2]})], EVIL[0]))
    assert found.tags.count("script") == 2  # the data and the program
    assert "img" not in found.tags
    for text in EVIL[:3]:
        assert any(text in shown for shown in found.texts)


def test_json_cannot_end_its_script_block():
    page = render_page([build(EVIL, ["x"])], "t")
    block = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(block)["source"]["tokens"] == EVIL
    assert not set(block) & set("<>&\u2028\u2029")
    assert block.isascii()


def test_a_page_asks_for_nothing_from_elsewhere():
    page = render_page([cat()], "t")
    assert not [url for url in Reader(page).urls if not url.startswith("data:")]
    assert "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\s\"'<)]+", page)) == {"http://www.w3.org/2000/svg"}


def test_a_page_is_the_same_every_time_and_fragments_never_share_an_id():
    assert render_page([cat(), cat()], "t") == render_page([cat(), cat()], "t")
    for text in (render_page([cat()] * 5, "t"), "".join(render_fragment(cat()) for _ in range(5))):
        ids = Reader(text).ids
        assert len(ids) == 5
        assert len(set(ids)) == 5


def test_the_data_gives_the_scores_back():
    [data] = Reader(render_page([cat()], "t")).data()
    scores, _ = unpack(Packed(**data["packed"]), (4, 5))
    np.testing.assert_allclose(scores, cat()["scores"], atol=2e-5)


def test_method_settings_and_selection_are_shown():
    attribution = build("ab", "xy", axes={"layer": 3, "head": 2}, method="attention", settings={"side": "cross"})
    found = Reader(render_fragment(attribution, at={"layer": 1}))
    for text in ("attention", "side cross", "layer 1, mean over heads"):
        assert text in found.texts
    assert [(axis["name"], axis["size"], axis["chosen"]) for axis in found.data()[0]["axes"]] == [
        ("layer", 3, 1),
        ("head", 2, None),
    ]


def test_one_output_is_drawn_as_marked_text():
    page = render_page([build(["good", "bad"], ["positive"], prefix=["p"], scores=[[0.5, -1, 0]])], "t")
    assert '<span class="token positive" data-column="0" style="--strength:0.50">good</span>' in page
    assert '<span class="token negative" data-column="1" style="--strength:1.00">bad</span>' in page
    assert '<span class="boundary">' in page
    assert 'class="link-view"' not in page


def test_several_pictures_have_headings():
    assert "<h2><bdi>▁The ▁cat ▁sleep s → ▁El ▁gato ▁duerme</bdi></h2>" in render_page([cat()] * 2, "t")
    assert "<h2>" not in render_page([cat()], "t")


def test_no_pictures():
    with pytest.raises(InputError, match="empty"):
        render_page([], "t")


@pytest.mark.parametrize(("source", "target"), [("", "x"), ("a", ""), ("", "")])
def test_empty_sides_are_drawn(source, target):
    assert len(Reader(render_page([build(source, target)], "t")).data()) == 1


def long_attribution(axes, tokens):
    scores = np.random.default_rng(0).random((*axes.values(), tokens, tokens), dtype=np.float32)
    names = [f"token{i}" for i in range(tokens)]
    return build(names, names, axes=axes, scores=scores)


def test_a_long_input_with_many_heads_stays_small():
    attribution = long_attribution({"layer": 6, "head": 8}, 300)  # 4.3 million scores that no compression helps
    page = render_page([attribution], "t")
    assert len(page) < 1.4 * 6 * 8 * 300 * 300 + 1_000_000
    assert Reader(page).data()[0]["packed"]["limit"] == 127
    fragment = render_fragment(attribution)
    assert len(fragment) < 3_000_000
    assert "To keep this small, it holds only the mean over the 8 positions of head." in fragment
    assert "number 3 of the 8 positions of head" in render_fragment(attribution, at={"head": 3})


def test_a_large_matrix_is_a_bitmap_and_a_small_one_is_not():
    assert 'href="data:image/png;base64,' in render_page([long_attribution({}, 150)], "t")
    assert "<image" not in render_page([long_attribution({}, 100)], "t")


def test_very_many_tokens_are_cut_with_a_note():
    page = render_page([long_attribution({}, 1100)], "t")
    assert "Only the first 1,000 of 1,100 source tokens are shown" in page
    assert "Only the first 1,000 of 1,100 target tokens are shown" in page


def test_many_pictures_share_the_room_of_a_page(monkeypatch):
    monkeypatch.setattr(html, "PAGE_CELLS", 100)
    attribution = build("abcd", "xy", axes={"layer": 8})  # 64 scores
    assert "To keep this small" not in render_page([attribution], "t")
    assert render_page([attribution] * 2, "t").count('note">To keep this small, it holds only the mean') == 2


def test_tables_stand_below_the_pictures_and_are_escaped():
    table = PageTable("A <title>", ("na<me",), [("<script>alert(1)</script>",)], "a note & more")
    page = render_page([cat()], "t", [table])
    assert "<script>alert(1)" not in page
    assert page.index("<figure") < page.index("alert(1)")
    assert "a note &amp; more" in page
