import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from view.attributions import build, cat

from sightline.view.colours import terminal_colour
from sightline.view.terminal import heat_map, links, show

KEY = "░ from 5 %  ▒ 25 %  ▓ 50 %  █ 75 % of the largest score of the row"


def printed(renderable, width=80):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_heat_map_in_plain_text():
    assert printed(heat_map(cat())) == [
        "norms · layer=5 heads=sum",
        "",
        "            ▁",
        "            s   *",
        "        ▁ ▁ l   <",
        "        T c e   /",
        "        h a e   s",
        "        e t p s >",
        "    ▁El ██░░    ░░",
        "  ▁gato ▒▒██░░░░░░",
        "▁duerme   ▒▒████▓▓",
        "  *</s>         ██",
        "",
        KEY,
        "* special position",
    ]


def test_the_links_in_plain_text():
    assert printed(links(cat(), top=2)) == [
        "    ▁El ← ▁The   0.900 90% ▁cat 0.05  5%",
        "  ▁gato ← ▁cat   0.600 60% ▁The 0.200 20%",
        "▁duerme ← ▁sleep 0.400 40% s    0.300 30%",
        "  *</s> ← *</s>  0.900 90% s    0.04  4%",
    ]


def test_probabilities_stand_before_the_links_where_they_are_known():
    attribution = cat() | {"probabilities": [0.9, 0.25, 1, 0.001]}
    assert printed(links(attribution))[1] == "p 0.25   ▁gato ← ▁cat   0.600 60%"


def test_negative_scores_and_the_prefix_in_plain_text():
    attribution = build("ab", "xy", prefix="x", scores=[[0.5, -0.3, 0], [-0.9, 0.01, 0.2]])
    assert printed(heat_map(attribution)) == [
        "norms",
        "",
        "  a b │x",
        "x ██▓-│",
        "y █-  │░░",
        "",
        KEY,
        "-: negative",
        "columns after │ are the target prefix",
    ]
    assert printed(links(attribution)) == ["x ← a 0.500  62%", "y ← a -0.900 81%"]


def test_wide_and_combining_characters_keep_the_columns():
    attribution = build(["我", "喜歡", "cafe\u0301"], ["図書館", "で"], scores=[[1, 0.3, 0.6], [0, 0.1, 1]])
    assert printed(heat_map(attribution))[2:8] == [
        "           c",
        "           a",
        "         喜f",
        "       我歡e\u0301",
        "図書館 ██▒▒▓▓",
        "    で   ░░██",
    ]


def test_many_columns_wrap_into_blocks():
    scores = np.eye(2, 9) + np.eye(2, 9, 7) / 3
    lines = printed(heat_map(build([f"s{i}" for i in range(9)], ["one", "two"], scores=scores)), width=20)
    assert lines[2:12] == [
        "columns 1 to 7 of 9",
        "    s s s s s s s",
        "    0 1 2 3 4 5 6",
        "one ██",
        "two   ██",
        "",
        "columns 8 to 9 of 9",
        "    s s",
        "    7 8",
        "one ▒▒",
    ]


def test_the_selection_is_said():
    attribution = build("ab", "xy", axes={"layer": 2, "head": 2})
    assert printed(heat_map(attribution, at={"layer": 1}))[0] == "norms · layer 1, mean over heads"


def test_very_long_inputs_are_cut_with_a_note():
    attribution = build([f"s{i}" for i in range(300)], [f"t{i}" for i in range(201)])
    assert printed(heat_map(attribution), width=100)[-2:] == [
        "Only the first 200 of 300 source tokens are shown; colours are relative to what is shown.",
        "Only the first 200 of 201 target tokens are shown.",
    ]
    assert printed(links(attribution))[-1] == "Only the first 200 of 201 target tokens are shown."


def test_links_see_columns_that_a_heat_map_leaves_out():
    scores = np.zeros((1, 300))
    scores[0, 299] = 1
    assert printed(links(build([f"s{i}" for i in range(300)], ["x"], scores=scores))) == ["x ← s299 1.000 100%"]


def test_one_output_gets_three_links():
    console = Console(file=io.StringIO(), width=80, color_system=None)
    show(build("abcd", ["positive"], scores=[[0.4, 0.3, 0.2, 0.1]]), console)
    assert console.file.getvalue().rstrip().endswith("positive ← a 0.400 40% b 0.300 30% c 0.200 20%")


@pytest.mark.parametrize("token", ["[red]x[/red]", "\x1b[31mx", ":smile:", "[link=http://x]y[/link]", "\x07"])
def test_markup_and_control_codes_are_shown_and_not_obeyed(token):
    expected = token.replace("\x1b", r"\x1b").replace("\x07", r"\x07")
    for colours in (None, "truecolor"):
        console = Console(file=io.StringIO(), width=120, color_system=colours, force_terminal=colours is not None)
        show(build([token], [token], method=token, settings={token: token}), console)
        output = console.file.getvalue()
        assert output.count(expected) >= 3
        assert "\x07" not in output
        assert colours or "\x1b" not in output


tokens = st.lists(st.text(st.characters(exclude_categories=()), max_size=6), max_size=5)


@settings(deadline=None)
@given(tokens, tokens, st.integers(10, 60))
def test_any_tokens_fit_any_console_and_stay_aligned(source, target, width):
    lines = list(Console(width=width, color_system=None).render_lines(heat_map(build(source, target)), pad=False))
    texts = ["".join(segment.text for segment in line) for line in lines]
    assert all(cell_len(text) <= width for text in texts)
    if target and source:
        block = texts[2 : texts.index("", 2)]
        if not block[0].startswith("columns "):
            assert len({cell_len(line) for line in block}) == 1


def test_colour_where_the_terminal_has_it_and_shades_where_it_has_not():
    def output(**options):
        console = Console(file=io.StringIO(), width=80, force_terminal=True, **options)
        console.print(heat_map(cat()))
        return console.file.getvalue()

    assert "\x1b[48;2;" in output(color_system="truecolor")
    assert "█" not in output(color_system="truecolor")
    for options in ({"color_system": "standard"}, {"color_system": None}, {"color_system": "256", "no_color": True}):
        assert "██" in output(**options)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_stronger_is_lighter_and_signs_differ(one, other):
    def parts(strength):
        return [int(part) for part in terminal_colour(strength)[4:-1].split(",")]

    def luminance(strength):
        red, green, blue = parts(strength)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    if one * other > 0 and abs(one) - abs(other) > 0.05:
        assert luminance(one) > luminance(other)
    if abs(one) > 0.05:
        red, _, blue = parts(one)
        assert (blue > red) == (one > 0)
