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
from sightline.alignment.markup import parse_against, parse_markup, strip_markup
from sightline.alignment.restoring import link_placeholders, restore_markup
from sightline.alignment.scanning import find_markup
from sightline.alignment.word_parts import boundary_after


def restored(text: str, words: str, links: str) -> str:
    return restore_markup(parse_markup(text), words.split(), read_links(links))


def read_links(links: str) -> Alignment:
    """Read links such as `0-0` and `1-3:0.2`."""
    found = re.findall(r"(\d+)-(\d+)(?::([\d.]+))?", links)
    return Alignment({(int(source), int(target)): float(confidence or 1) for source, target, confidence in found})


CASES = {
    "plain text": ("a b", "x y", "0-0 1-1", "x y"),
    "one word": ("The <b>black</b> cat", "El gato negro", "0-0 1-2 2-1", "El gato <b>negro</b>"),
    "reordered": ("<i>The black</i> cat", "El gato negro", "0-0 1-2 2-1", "<i>El gato negro</i>"),
    "split in two": ("not <b>a</b> b", "ne b pas", "1-0 1-2 2-1", "<b>ne b pas</b>"),
    "nested": ("a <b>b <i>c</i></b> d", "w x y z", "0-0 1-2 2-1 3-3", "w <b><i>x</i> y</b> z"),
    "same words nested": ("<b><i>a</i></b> b", "x y", "0-1 1-0", "x <b><i>y</i></b>"),
    "side by side": ("<b>a</b><i> b</i>", "x y", "0-0 1-1", "<b>x</b> <i>y</i>"),
    "side by side, crossing": ("<b>a</b> <i>b</i>", "x y", "0-1 1-0", "<i>x</i> <b>y</b>"),
    "side by side, mingled": ("<b>a a</b> <i>b</i>", "x y z", "0-0 1-2 2-1", "<b>x</b> <i>y z</i>"),
    "empty": ("a <b></b> b", "x y", "0-0 1-1", "x <b></b> y"),
    "empty at the ends": ("<b></b> a <i></i>", "x y", "0-1", "<b></b> x y <i></i>"),
    "a break": ("a <br/> b", "x y", "0-0 1-1", "x <br/> y"),
    "a void element of HTML": ("a<br>b c", "x y", "0-0 1-1", "x<br> y"),
    "at the start and the end": ("{0} a b %s", "x y", "0-1 1-0", "{0} x y %s"),
    "glued to its word": ("a {0}% b", "x y z", "0-0 1-2 2-1", "x y {0}z"),
    "adjacent marks": ("a {0}{1} b", "x y", "0-0 1-1", "x {0}{1} y"),
    "names": ("Dear {{first name}} and ${last}, %(n)s", "x y z", "0-0 1-1", "x {{first name}} y ${last} z %(n)s"),
    "unaligned": ("a <b>b</b> c", "x z", "0-0 2-1", "<b>x</b> z"),
    "nothing aligned": ("a <b>b</b> c", "x z", "", "x <b>z</b>"),
    "no partner": ("a <b>b c</i> d", "x y z", "0-0 1-1 2-2", "x <b>y z</i>"),
    "crossed over": ("<b>a <i>b</b> c</i>", "x y z", "0-0 1-1 2-2", "<b>x <i>y</b> z</i>"),
    "everything": ("<p>a b</p>", "x", "", "<p>x</p>"),
    "no translation": ("<p>a {0}</p>", "", "", "<p>{0}</p>"),
    "only markup": ("<p> {0} </p>", "", "", "<p>{0}</p>"),
    "attributes": ('<a href="x > y" id=1>a</a> b', "x y", "0-1 1-0", 'x <a href="x > y" id=1>y</a>'),
    "inside a word": ("un<b>believ</b>able a", "x y", "0-1 1-0", "x <b>y</b>"),
    "no markup at all": ("a < b and 5 % of {", "x y", "0-0", "x y"),
    "a comment": ("a <!-- <b> --> b", "x y", "0-0 1-1", "x <!-- <b> --> y"),
    "an entity": ("a &amp; b", "x y", "0-0 1-1", "x &amp; y"),
    "an entity in a word": ("a b&#160;c", "x y", "0-0 1-1", "x&#160; y"),
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
    "a word of punctuation behind a tag": ("a <b>cat</b> .", "un gato.", "0-0 1-1", "un <b>gato</b>."),
    "punctuation in a tag": ("a <b>cat.</b>", "un gato.", "0-0 1-1", "un <b>gato.</b>"),
    "punctuation behind two tags": ("<i>a <b>cat</b></i>!", "un gato!", "0-0 1-1", "<i>un <b>gato</b></i>!"),
    "punctuation between two tags": ("<i>a <b>cat</b>!</i>", "un gato!", "0-0 1-1", "<i>un <b>gato</b>!</i>"),
    "a comma behind a tag": ("a <b>b</b>, c", "x y, z", "0-0 1-1 2-2", "x <b>y</b>, z"),
    "no punctuation in the translation": ("a <b>cat</b>.", "un gato", "0-0 1-1", "un <b>gato</b>"),
    "nothing but punctuation": ("a <b>cat</b>.", "un ...", "0-0 1-1", "un <b>...</b>"),
}
CASES |= {
    # Punctuation is inside an element if it was.
    "a word that comes last": (
        "<b>upper right</b> one.",
        "uno alto derecho.",
        "0-1 1-2 2-0",
        "uno <b>alto derecho</b>.",
    ),
    "a word that comes first": ("that <i>Who?</i> said", "¿Quién dijo eso?", "0-2 1-0 2-1", "¿<i>Quién</i> dijo eso?"),
    "a question's first word": ("<i>Who</i> said so?", "¿Quién lo dijo?", "0-0 1-2 2-1", "¿<i>Quién</i> lo dijo?"),
    "a whole question": ("Well, <b>who is it?</b>", "Y ¿quién es?", "0-0 1-1 3-2", "Y <b>¿quién es?</b>"),
    "a whole question but its sign": ("Well, <b>who is it</b>?", "Y ¿quién es?", "0-0 1-1 3-2", "Y ¿<b>quién es</b>?"),
    "quotation marks": ('"<b>No</b>," he said', "«No», dijo", "0-0 2-1", "«<b>No</b>», dijo"),
    "quotation marks inside and outside": ("\" <b>'No</b> he said", "«No dijo", "1-0 3-1", "«<b>No</b> dijo"),
    "quotation marks inside": ('<b>"No,"</b> he said', "«No», dijo", "0-0 2-1", "<b>«No»,</b> dijo"),
    "a bracket inside, a period outside": ("a <b>(b c)</b>.", "x (y z).", "0-0 1-1 2-2", "x <b>(y z)</b>."),
    "a sign inside, another outside": ("a <b>b!</b>.", "x y!.", "0-0 1-1", "x <b>y!</b>."),
    "another sign that ends": ("Oh <b>stop!</b>", "Oh, alto.", "0-0 1-1", "Oh, <b>alto.</b>"),
    "signs that are said": ("a <b>five percent</b>", "x 5%", "0-0 1-1 2-1", "x <b>5%</b>"),
    "signs of their own": ("a <b>cat .</b>", "un gato.", "0-0 1-1", "un <b>gato.</b>"),
    "more signs than the source": ("<p>a</p>", "¡x!", "0-0", "<p>¡x!</p>"),
    # No element becomes empty.
    "an unlinked word between": ("a <b>b</b> c", "x y z", "0-0 2-2", "x <b>y</b> z"),
    "a word that stands for two": ("Give <b>me</b> the salt", "Dame la sal", "0-0 2-1 3-2", "<b>Dame</b> la sal"),
    "another's word": ("<i>a</i> <b>b</b> c", "xyz y", "0-0 2-1", "<i>xyz</i> <b>y</b>"),
    "only others' words": ("<i>a</i> <b>b</b>", "x", "0-0", "<i>x</i><b></b>"),
    "as many words as elements": (
        "a a a <b>b</b> <i>c</i> <u>d</u> e e e",
        "x y z",
        "",
        "<i>x</i> <b>y</b> <u>z</u>",  # b is a third of the way, so is i, which gets what is left there
    ),
    # Marks stay at the ends of sentences and clauses.
    "a break after a sentence": ("a b.<br/>C.", "y x. Z.", "0-1 1-0 2-2", "y x.<br/> Z."),
    "as many sentences": ("A b. <br/>C. D.", "X y. Z. W.", "0-2 1-0 2-1 3-3", "X y. <br/>Z. W."),
    "more sentences": ("a b.<br/>c d.", "y. x. w z.", "0-1 1-0 2-2 3-3", "y. x.<br/> w z."),
    "a break after a clause": ("a b,<br/>c d", "y x, w z", "0-1 1-0 2-3 3-2", "y x,<br/> w z"),
    "unlinked up to a clause": ("a b,<br/>c", "x y w, z", "0-0 1-1 2-3", "x y w,<br/> z"),
    "a break after no sign": ("a b<br/>c", "y x z", "0-1 1-0 2-2", "y x<br/> z"),
    "an image before its word": ("the <img/> Swiss team", "el equipo suizo", "0-0 1-2 2-1", "el equipo <img/> suizo"),
    "an anchor": ('<a id="1"></a>a b', "x y", "0-0 1-1", '<a id="1"></a>x y'),
    "an anchor behind its word": ("a<b></b> b", "x y", "0-0 1-1", "x<b></b> y"),
    "a mark before the word that follows it": ("a {0} b", "y x", "0-1 1-0", "{0} y x"),
    "a mark that would be none beside letters": ("%s! a", "ya x", "0-0 1-1", "%s ya x"),
    # What makes up all of an element does so in the translation.
    "items": ("<li>a</li><li>b</li>", "w x v y", "0-1 1-3", "<li>w x</li> <li>v y</li>"),
    "items with signs": ("<td>a</td><td>b</td>", "x w. y", "0-0 1-2", "<td>x w.</td> <td>y</td>"),
    "a sign between items": ("<li>a</li><li>c b</li>", "x w. y", "0-0 2-2", "<li>x w.</li> <li>y</li>"),
    "one for all": ("<p><b>a b</b></p>", "w x y z", "0-1 1-2", "<p><b>w x y z</b></p>"),
    "not all": ("<b>a</b> c <b>b</b>", "x v w y", "0-0 1-2 2-3", "<b>x</b> v w <b>y</b>"),
    # Stretches.
    "a gap": ("I <i>miss</i> him so", "lo echo tanto de menos", "1-1 1-4 2-0 3-2", "lo <i>echo tanto de menos</i>"),
    "a weak link far away": ("<b>a b</b> c d", "x w z y", "0-0 1-3:0.3 2-1 3-2", "<b>x</b> w z y"),
    "a sibling in the gap": ("<b>a b</b> <i>c</i> d", "x w y z", "0-0 1-2:0.9 2-1 3-3", "<b>x</b> <i>w</i> y z"),
    "a word for one inside and one outside": ("to <b>the city</b>", "al mercado", "0-0 1-0 2-1", "al <b>mercado</b>"),
    "an unlinked word at the right": ("a <b>b c</b> d", "w x y z", "0-0 1-1 3-3", "w <b>x y</b> z"),
    "an unlinked word at the left": ("a <b>b c</b> d", "w x y z", "0-0 2-2 3-3", "w <b>x y</b> z"),
    "an unlinked word between elements": ("a <b>b c</b> <i>d</i>", "w x y z", "0-0 1-1 3-3", "w <b>x y</b> <i>z</i>"),
    "two unlinked words at the right": ("a <b>b c d</b> e", "v w x y z", "0-0 1-1 4-4", "v <b>w x y</b> z"),
    "an unlinked word that comes first": ("<b>a b</b> c", "x y z", "1-1 2-2", "<b>x y</b> z"),
    "unlinked up to the end": (
        "2 <b>unread</b> mails",
        "2 correos sin leer",
        "0-0 1-2 2-1",
        "2 correos <b>sin leer</b>",
    ),
    # Parts of words.
    "a part of a formula": ("a H<sub>2</sub>O", "H2O x", "0-1 1-0", "H<sub>2</sub>O x"),
    "parts of a formula": ("H<sub>2</sub>SO<sub>4</sub>, a", "x H2SO4.", "1-0", "x H<sub>2</sub>SO<sub>4</sub>."),
    "a note": ("The results<sup>2</sup>.", "Los resultados2.", "0-0 1-1", "Los resultados<sup>2</sup>."),
    "two notes for one": ("a<b>2</b> c<i>2</i>", "x2 y", "0-0 1-0", "x<b>2</b> <i>y</i>"),
    "a part in the gap": ("<b>a b</b> H<i>2</i>O", "x H2O y", "0-0 1-2 2-1", "<b>x</b> H<i>2</i>O y"),
    "two parts of a word that has none": ("<b>un</b><i>do</i>", "x y", "0-0 0-1", "<b>x y</b><i></i>"),
    "the start of a word": ("a <b>e</b>-mail", "x e-correo", "0-0 1-1", "x <b>e</b>-correo"),
    "a whole word that begins another": ("a <b>general</b>", "x generales", "0-0 1-1", "x <b>generales</b>"),
    "a mark in a word": ("a e<wbr/>mail", "email x", "0-1 1-0", "e<wbr/>mail x"),
    "a sign": ("a cat<b>!</b>", "x gato!", "0-0 1-1", "x gato<b>!</b>"),
    "another word": ("a cat<b>fish</b>", "x siluro", "0-0 1-1", "x <b>siluro</b>"),
}


@pytest.mark.parametrize("name", CASES)
def test_markup_is_put_back(name: str) -> None:
    text, words, links, expected = CASES[name]
    assert restored(text, words, links) == expected


def test_the_words_of_a_text() -> None:
    assert parse_markup("The <b>bl<i>ack</i></b> cat{0}, %s 100 %").words == ("The", "black", "cat,", "100", "%")
    assert strip_markup("<p>a</p> b") == ("a", "b")
    assert strip_markup("100%sure 5 %dogs") == ("100%sure", "5", "%dogs")


KEEPING = {
    "a placeholder and a sign": ("Hello, <b>{0}</b>!", "¡Hola, {0}!", "0-0 1-1", "¡Hola, <b>{0}</b>!"),
    "a placeholder in brackets": ("a <b>({0})</b>", "x ({0})", "0-0 1-1", "x <b>({0})</b>"),
    "an entity before": ("&nbsp;<b>New</b> a", "&nbsp;Nuevo x", "0-0 1-1", "&nbsp;<b>Nuevo</b> x"),
    "an entity that is a letter": ("a <b>caf&eacute;</b>", "x caf&eacute;", "0-0 1-1", "x <b>caf&eacute;</b>"),
    "an entity that became a word": ("<b>a &amp; b</b> c", "x y z w", "0-0 2-2 3-3", "<b>x y z</b> w"),
    "an entity that became a sign": ("<b>a</b>&mdash;b c", "x: y z", "0-0 1-1 2-2", "<b>x</b>: y z"),
    "other entities": ("&quot;<b>Hi</b>,&quot; a", "&laquo;Eh&raquo;, x", "0-0 1-1", "&laquo;<b>Eh</b>&raquo;, x"),
    "a placeholder that was left out": ("a {0} b", "x y", "0-0 1-1", "x {0} y"),
}


@pytest.mark.parametrize("name", KEEPING)
def test_a_translation_keeps_its_placeholders_and_entities(name: str) -> None:
    text, translation, links, expected = KEEPING[name]
    markup = parse_against(text, translation)
    assert restore_markup(markup, translation.split(), read_links(links)) == expected


def test_placeholders_are_linked_to_each_other_only() -> None:
    words = ["{0}", "x", "y", "z", "%d"]
    markup = parse_against("a {0} b %s c", " ".join(words))  # %s is markup, since the translation lacks it
    links = link_placeholders(markup, words, read_links("0-0:0.9 0-1:0.8 1-2:0.7 2-2:0.6 3-3:0.5"))
    assert links.confidences == {(1, 0): 1.0, (0, 1): 0.8, (2, 2): 0.6, (3, 3): 0.5}
    assert (links.source_length, links.target_length) == (4, 5)


def test_words_end_at_lines_and_cells() -> None:
    assert strip_markup("One.<br/>Two <td>a</td><td>b</td>.") == ("One.", "Two", "a", "b.")
    assert strip_markup("un<b>believ</b>able (<br/>a)") == ("unbelievable", "(a)")
    assert strip_markup("(<br/>a)") == ("(a)",)


def test_signs_end_sentences_and_clauses_with_a_word_or_alone() -> None:
    ends = {".": "end", "b.": "end", 'b!"': "end", ",": "pause", "b;": "pause", "-": "", "b": "", "3.5": ""}
    assert {word: boundary_after(word) for word in ends} == ends


NAMES = st.sampled_from(["b", "i", "g1", "td"])
LEAVES = st.one_of(
    st.sampled_from(["cat", "dog,", "a", "!"]).map(lambda word: f" {word} "),
    st.sampled_from(["in", "side", ".", "?!", "(", "¿"]),
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


WORDS = ["el", "gato", "y", ".", "¿inside?", "«no»,", "(in", "a!", "5%"]


@given(text=ANY_TEXTS, words=st.lists(st.sampled_from(WORDS), max_size=7), data=st.data())
def test_nothing_is_lost_and_the_words_stay(text: str, words: list[str], data: st.DataObject) -> None:
    markup = parse_markup(text)
    every = [(i, j) for i in range(len(markup.words)) for j in range(len(words))]
    links = data.draw(st.dictionaries(st.sampled_from(every), st.floats(0.01, 1))) if every else {}
    result = restore_markup(markup, words, Alignment(links))
    assert pieces(result) == pieces(text)
    assert strip_markup(result) == tuple(words)
    assert is_balanced(result) or not is_balanced(text)


@given(text=ANY_TEXTS, words=st.lists(st.sampled_from([*WORDS, "{0}!", "¿%s", "&nbsp;a"]), max_size=7), data=st.data())
def test_only_entities_that_a_translation_lacks_are_left_out(text: str, words: list[str], data: st.DataObject) -> None:
    markup = parse_against(text, " ".join(words))
    every = [(i, j) for i in range(len(markup.words)) for j in range(len(words))]
    links = data.draw(st.dictionaries(st.sampled_from(every), st.floats(0.01, 1))) if every else {}
    result = restore_markup(markup, words, link_placeholders(markup, words, Alignment(links)))
    assert strip_markup(result, markup.kept) == tuple(words)
    lost = pieces(text) - pieces(result)
    assert set(lost) <= {"&nbsp;"} | markup.kept
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
    "<b>a</b>", "<b>.</b>", "a ", "<b>a</b> c.<br/> ",
)  # fmt: skip


def test_long_broken_texts_take_time_in_proportion() -> None:
    """In a process of its own, where types are not checked at every call; what is quadratic takes minutes."""
    code = f"""
from sightline.alignment.markup import parse_markup
from sightline.alignment.restoring import restore_markup
from sightline.alignment.links import Alignment
for part in {BROKEN!r}:
    markup = parse_markup("%" + part * (60_000 // len(part)) + "]")
    assert restore_markup(markup, ["x", "y"], Alignment([(0, 1)] if markup.words else []))
markup = parse_markup("<b>a</b> c.<br/> " * 3_000)
for links in ([], [(i, i) for i in range(6_000)]):
    assert restore_markup(markup, ["x."] * 6_000, Alignment(links))
assert restore_markup(parse_markup("<b>a</b>" * 7_000), ["a" * 7_000], Alignment([(0, 0)]))
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
    for slash, name in re.findall(r"<(/?)(b|i|g1|td)>", text):
        if not slash:
            stack.append(name)
            found[tuple(stack)] += 1
        elif not stack or stack.pop() != name:
            return None
    return None if stack else found
