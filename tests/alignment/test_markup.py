"""Markup: taken apart, put back by an alignment, nothing lost, balanced, the words untouched."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.alignment.links import Alignment
from sightline.alignment.markup import parse_markup, restore_markup, strip_markup
from sightline.alignment.scanning import find_markup


def restored(text: str, words: str, links: str) -> str:
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    return restore_markup(parse_markup(text), words.split(), Alignment(pairs))  # type: ignore[arg-type]


CASES = {
    "plain text": ("a b", "x y", "0-0 1-1", "x y"),
    "one word": ("The <b>black</b> cat", "El gato negro", "0-0 1-2 2-1", "El gato <b>negro</b>"),
    "reordered": ("<i>The black</i> cat", "El gato negro", "0-0 1-2 2-1", "<i>El gato negro</i>"),
    "split in two": ("not <b>a</b> b", "ne b pas", "0-0 1-0 1-2 2-1", "<b>ne b pas</b>"),
    "nested": ("a <b>b <i>c</i></b> d", "w x y z", "0-0 1-2 2-1 3-3", "w <b><i>x</i> y</b> z"),
    "same words nested": ("<b><i>a</i></b> b", "x y", "0-1 1-0", "x <b><i>y</i></b>"),
    "side by side": ("<b>a</b><i> b</i>", "x y", "0-0 1-1", "<b>x</b> <i>y</i>"),
    "side by side, crossing": ("<b>a</b> <i>b</i>", "x y", "0-1 1-0", "<i>x</i> <b>y</b>"),
    "side by side, mingled": ("<b>a a</b> <i>b</i>", "x y z", "0-0 1-2 2-1", "<b>x</b> <i>y</i> z"),
    "empty": ("a <b></b> b", "x y", "0-0 1-1", "x <b></b> y"),
    "empty at the ends": ("<b></b> a <i></i>", "x y", "0-1", "<b></b> x y <i></i>"),
    "a break": ("a <br/> b", "x y", "0-0 1-1", "x <br/> y"),
    "a void element of HTML": ("a<br>b c", "x y", "0-0 1-1", "<br>x y"),
    "at the start and the end": ("{0} a b %s", "x y", "0-1 1-0", "{0} x y %s"),
    "glued to its word": ("a {0}% b", "x y z", "0-0 1-2 2-1", "x y {0}z"),
    "adjacent marks": ("a {0}{1} b", "x y", "0-0 1-1", "x {0}{1} y"),
    "names": ("Dear {{first name}} and ${last}, %(n)s", "x y z", "0-0 1-1", "x {{first name}} y ${last} z %(n)s"),
    "unaligned": ("a <b>b</b> c", "x z", "0-0 2-1", "x <b></b> z"),
    "nothing aligned": ("a <b>b</b> c", "x z", "", "<b></b> x z"),
    "no partner": ("a <b>b c</i> d", "x y z", "0-0 1-1 2-2", "x <b>y z</i>"),
    "crossed over": ("<b>a <i>b</b> c</i>", "x y z", "0-0 1-1 2-2", "<b>x <i>y</b> z</i>"),
    "everything": ("<p>a b</p>", "x", "", "<p></p> x"),
    "no translation": ("<p>a {0}</p>", "", "", "<p>{0}</p>"),
    "only markup": ("<p> {0} </p>", "", "", "<p>{0}</p>"),
    "attributes": ('<a href="x > y" id=1>a</a> b', "x y", "0-1 1-0", 'x <a href="x > y" id=1>y</a>'),
    "inside a word": ("un<b>believ</b>able a", "x y", "0-1 1-0", "x <b>y</b>"),
    "no markup at all": ("a < b and 5 % of {", "x y", "0-0", "x y"),
    "a comment": ("a <!-- <b> --> b", "x y", "0-0 1-1", "x <!-- <b> --> y"),
    "an entity": ("a &amp; b", "x y", "0-0 1-1", "x &amp; y"),
    "an entity in a word": ("a b&#160;c", "x y", "0-0 1-1", "x &#160;y"),
    "a number's entity": ("&#xA0;a b", "x y", "0-1 1-0", "&#xA0; x y"),
    "no entity": ("AT&T a&b; c &; &#; d", "x", "0-0", "x &b;"),
    "a processing instruction": ("a <?php echo '<b>' ?> b", "x y", "0-0 1-1", "x <?php echo '<b>' ?> y"),
    "a CDATA section": ("a <![CDATA[ <b> & c ]]> b", "x y", "0-0 1-1", "x <![CDATA[ <b> & c ]]> y"),
    "a document type": ('<!DOCTYPE d [<!ENTITY e "f">]> a', "x", "0-0", '<!DOCTYPE d [<!ENTITY e "f">]> x'),
    "a document type without more": ("<!doctype html>a", "x", "0-0", "<!doctype html>x"),
    "a name in another script": ("a <имя id='1'>b</имя> <été/>", "x y", "0-1 1-0", "<имя id='1'>x</имя> y <été/>"),
    "a name with an underscore": ("<_x>a</_x> b", "x y", "0-1 1-0", "x <_x>y</_x>"),
    "a small number": ("a <3 b", "x <3 y", "0-0 1-1 2-2", "x <3 y"),
    "an unclosed comment": ("a <!-- b <i>c</i>", "x y", "0-0 3-1", "x <i>y</i>"),
    "an unclosed quote": ('<a href="x>a <b>b</b>', "x y", "0-0 2-1", "x <b>y</b>"),
    "punctuation behind a tag": ("a <b>cat</b>.", "un gato.", "0-0 1-1", "un <b>gato</b>."),
    "punctuation behind a space and a tag": ("a <b>cat </b>.", "un gato.", "0-0 1-1", "un <b>gato</b>."),
    "a word of punctuation behind a tag": ("a <b>cat</b> .", "un gato.", "0-0 1-1", "un <b>gato.</b>"),
    "punctuation in a tag": ("a <b>cat.</b>", "un gato.", "0-0 1-1", "un <b>gato.</b>"),
    "punctuation behind two tags": ("<i>a <b>cat</b></i>!", "un gato!", "0-0 1-1", "<i>un <b>gato</b></i>!"),
    "punctuation between two tags": ("<i>a <b>cat</b>!</i>", "un gato!", "0-0 1-1", "<i>un <b>gato</b>!</i>"),
    "a comma behind a tag": ("a <b>b</b>, c", "x y, z", "0-0 1-1 2-2", "x <b>y</b>, z"),
    "no punctuation in the translation": ("a <b>cat</b>.", "un gato", "0-0 1-1", "un <b>gato</b>"),
    "nothing but punctuation": ("a <b>cat</b>.", "un ...", "0-0 1-1", "un <b>...</b>"),
}


@pytest.mark.parametrize("name", CASES)
def test_markup_is_put_back(name: str) -> None:
    text, words, links, expected = CASES[name]
    assert restored(text, words, links) == expected


def test_the_words_of_a_text() -> None:
    assert parse_markup("The <b>bl<i>ack</i></b> cat{0}, %s 100 %").words == ("The", "black", "cat,", "100", "%")
    assert strip_markup("<p>a</p> b") == ("a", "b")
    assert strip_markup("100%sure 5 %dogs") == ("100%sure", "5", "%dogs")


NAMES = st.sampled_from(["b", "i", "g1"])
LEAVES = st.one_of(
    st.sampled_from(["cat", "dog,", "a", "!"]).map(lambda word: f" {word} "),
    st.sampled_from(["in", "side", ".", "?!"]),
    st.sampled_from(["<br/>", "{0}", "%s", "{{name}}", "<x id='1'/>", "&nbsp;", "<?p x?>", "<!-- c -->", " ", "<img>"]),
)
TEXTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(NAMES, st.lists(inner, max_size=4)).map(lambda e: f"<{e[0]}>{''.join(e[1])}</{e[0]}>"),
        st.lists(inner, max_size=4).map("".join),
    ),
    max_leaves=12,
)
ANY_TEXTS = st.one_of(TEXTS, st.lists(st.one_of(LEAVES, st.sampled_from(["<b>", "</b>", "<i>", "</i>"]))).map("".join))


@given(text=ANY_TEXTS, words=st.lists(st.sampled_from(["el", "gato", "y", "."]), max_size=7), data=st.data())
def test_nothing_is_lost_and_the_words_stay(text: str, words: list[str], data: st.DataObject) -> None:
    markup = parse_markup(text)
    every = [(i, j) for i in range(len(markup.words)) for j in range(len(words))]
    links = data.draw(st.dictionaries(st.sampled_from(every), st.floats(0.01, 1))) if every else {}
    result = restore_markup(markup, words, Alignment(links))
    assert pieces(result) == pieces(text)
    assert strip_markup(result) == tuple(words)
    assert is_balanced(result) or not is_balanced(text)


@given(text=TEXTS)
def test_a_text_aligned_with_itself_keeps_its_markup_in_order(text: str) -> None:
    markup = parse_markup(text)
    result = restore_markup(markup, markup.words, Alignment([(i, i) for i in range(len(markup.words))]))
    assert nesting(result) == nesting(text)


def test_nesting_may_be_deep() -> None:
    depth = 2_000
    text = "a " + "<b>" * depth + "b" + "</b>" * depth + ", c"
    result = restored(text, "x y, z", "0-0 1-1 2-2")
    assert result == "x " + "<b>" * depth + "y" + "</b>" * depth + ", z"


BROKEN = (
    " ", "<!--", "<![CDATA[", "<!DOCTYPE [", "<b>", "<b></i>", "<b><i></b>", '<a" ', "<a' \"", "0", "{{", "{0}",
    "<b>a</b>", "<b>.</b>", "a ",
)  # fmt: skip


def test_long_broken_texts_take_time_in_proportion() -> None:
    """In a process of its own, where types are not checked at every call; what is quadratic takes minutes."""
    code = f"""
from sightline.alignment.markup import parse_markup, restore_markup
from sightline.alignment.links import Alignment
for part in {BROKEN!r}:
    markup = parse_markup("%" + part * (60_000 // len(part)) + "]")
    assert restore_markup(markup, ["x", "y"], Alignment([(0, 1)] if markup.words else []))
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([sys.executable, "-c", code], check=True)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 15


def pieces(text: str) -> Counter[str]:
    return Counter(text[start:end] for start, end in find_markup(text))


def is_balanced(text: str) -> bool:
    return nesting(text) is not None


def nesting(text: str) -> Counter[tuple[str, ...]] | None:
    """Count tags with the names of those around them; None where a tag has no partner."""
    found: Counter[tuple[str, ...]] = Counter()
    stack: list[str] = []
    for slash, name in re.findall(r"<(/?)(b|i|g1)>", text):
        if not slash:
            stack.append(name)
            found[tuple(stack)] += 1
        elif not stack or stack.pop() != name:
            return None
    return None if stack else found
