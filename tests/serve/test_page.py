"""The page in a real browser: what a reader does on it works, by mouse, finger and keyboard."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from functools import partial

import pytest
from browser import PHONE, open_page, save, serious_faults, wait_until
from serve.conftest import Server, wait_for_models

from sightline.alignment.formats import read_alignments
from sightline.attribution import Attribution
from sightline.methods import METHODS
from sightline.serve.app import create_app

SENTENCE = "The black cat is sleeping under the table."
SLOW = 30_000  # milliseconds, on a machine that does other things too


def figure(page):
    return page.locator("main > figure.sightline")


def explained(page, method="norms"):
    """Wait until the first figure is a method's."""
    page.wait_for_selector(f"main > figure[data-explained='{method}'] .matrix", timeout=SLOW)
    return page


def token(page, side, position):
    return figure(page).locator(f".token[data-{side}='{position}']")


def where(page):
    """Return the address as the page itself knows it: the browser learns of a change a little later."""
    return page.evaluate("location.href")


def targets(page):
    return figure(page).locator(".line.target .token").all_inner_texts()


def test_the_first_screen_has_a_sentence_whose_translation_arrives(visit):
    page = explained(visit())
    assert page.get_by_label("A sentence to translate").input_value() == SENTENCE
    assert targets(page)[:3] == ["El", "gato", "negro"]
    assert figure(page).locator(".curves path").count() > 5
    assert not page.locator("details[open]").count()  # no settings in the way
    assert not page.complaints


WATCHED = """selector => {
  window.seen = [];
  const count = () => document.querySelectorAll(selector).length;
  const watched = { childList: true, subtree: true };
  new MutationObserver(() => window.seen.push(count())).observe(document.querySelector("main"), watched);
}"""


def test_words_arrive_one_by_one_with_their_links(visit, browser, address):
    page = visit("explain?text=Yes.")
    explained(page)
    page.evaluate(WATCHED, "main > figure .line.target .token")
    page.get_by_label("A sentence to translate").fill("The dog sees a small bird in the garden.")
    wait_until(page, "document.querySelectorAll('main > figure .line.target .token').length > 5", 30)
    explained(page)
    seen = [count for count in page.evaluate("window.seen") if count]
    assert {1, 2, 3, 4} <= set(seen)  # never all at once
    assert "perro" in targets(page)


def test_a_pin_asks_why_this_word_and_not_another(visit):
    page = explained(visit())
    token(page, "row", 1).click()
    panel = page.locator(".word-panel")
    panel.get_by_role("heading", name="Why “gato”?").wait_for(timeout=SLOW)
    other = panel.locator(".alternative").first.locator("bdi").inner_text()
    panel.locator(".alternative").first.click()
    panel.get_by_role("heading", name=f"Why “gato”, not “{other}”").wait_for(timeout=SLOW)
    strengths = panel.locator(".token[data-column]").evaluate_all(
        "all => all.map((one) => Number(one.style.getPropertyValue('--strength')))"
    )
    assert max(strengths) == 1
    panel.get_by_label("Another word").fill("perro")
    panel.get_by_role("button", name="Compare").click()
    panel.get_by_role("heading", name="Why “gato”, not “perro”").wait_for(timeout=SLOW)
    assert not page.complaints


def test_a_tap_pins_on_a_phone(visit):
    page = explained(visit(**PHONE))
    token(page, "row", 1).tap()
    page.get_by_role("heading", name="Why “gato”?").wait_for(timeout=SLOW)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_phone_shows_everything_within_its_width_and_without_gaps(visit):
    page = explained(visit(f"explain?text={'a' * 60}+cat&target={'b' * 60}+gato", **PHONE))
    token(page, "row", 0).tap()
    wait_until(page, "document.querySelector('.readout .answer') !== null", 30)
    page.wait_for_selector("main .word-panel h2", timeout=SLOW)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator(".questions .ask").bounding_box()["height"] < 60
    page = visit("continue", **PHONE)
    current = page.locator("header nav [aria-current]").bounding_box()
    assert current["x"] + current["width"] <= 390


def test_a_word_struck_out_changes_the_output(visit):
    page = explained(visit())
    token(page, "column", 1).click()
    page.get_by_role("button", name="Strike it out and see what changes").click()
    changed = page.locator(".struck .changed")
    changed.wait_for(timeout=SLOW)
    assert page.locator(".struck del").inner_text() == "black"
    assert "gato" in changed.inner_text()
    assert "negro" not in changed.inner_text()


def test_methods_are_picked_by_a_sentence_and_compared_by_their_faithfulness(visit):
    page = explained(visit())
    page.get_by_text("Ask in another way").click()
    page.get_by_label("What changes when a word is left out.").check(timeout=SLOW)
    table = page.locator(".measures table")
    table.wait_for(timeout=SLOW)
    assert table.locator("tbody th").all_inner_texts() == ["norms", "erasure", "random"]
    assert page.locator(".comparison figure[data-method]").count() == 2
    page.get_by_label("Where it looked, weighed by how much it took from there.").uncheck()
    explained(page, "erasure")
    assert figure(page).locator(".method").inner_text() == "erasure"
    assert "methods=erasure" in where(page)


def test_another_layer_and_pieces(visit):
    page = explained(visit())
    page.get_by_text("layer: pick one").click()
    page.get_by_role("button", name="layer 2", exact=True).click()
    assert figure(page).locator(".selection").inner_text() == "layer 2"
    figure(page).locator("details.options summary").click()
    figure(page).locator("[data-control='grain']").select_option("pieces")
    assert targets(page)[0] == "▁El"


def test_the_state_is_in_the_address(visit):
    page = visit("explain?text=The+dog+sleeps.&methods=attention&lang=en")
    explained(page, "attention")
    assert targets(page)[:2] == ["El", "perro"]
    figure(page).locator("details.options summary").click()
    figure(page).locator("[data-control='scale']").select_option("sum")
    address = where(page)
    page.goto("about:blank")
    page.goto(address)
    explained(page, "attention")
    assert figure(page).locator("[data-control='scale']").input_value() == "sum"
    assert page.get_by_label("A sentence to translate").input_value() == "The dog sleeps."


def test_the_other_direction(visit):
    page = explained(visit())
    page.get_by_label("Direction").select_option("es")
    page.wait_for_selector("main > figure .line.target .token:text-is('The')", timeout=SLOW)
    assert "lang=es" in where(page)


def test_a_translation_of_ones_own(visit):
    page = explained(visit("explain?text=The+cat+sleeps.&target=El+perro+come."))
    assert targets(page) == ["El", "perro", "come."]


def test_two_models_are_compared(visit):
    page = explained(visit())
    page.get_by_label("Compare with").select_option("en-es-calibrated")
    cards = page.locator(".comparison .cards figure.live")
    wait_until(page, "document.querySelectorAll('.comparison .cards figure.live').length === 2", 30)
    assert cards.locator("h2").all_inner_texts() == ["en-es", "en-es-calibrated"]
    assert page.locator(".comparison .changed").count() == 1


def test_every_download_can_be_read_back(visit, tmp_path):
    page = explained(visit())
    saved = partial(save, page, figure(page))
    why = Attribution.from_dict(json.loads(saved("JSON")))
    assert why.source.words == tuple(SENTENCE.split())
    rows = list(csv.DictReader(io.StringIO(saved("CSV").decode())))
    words = why.words().without_special()
    assert len(rows) == len(words.source) * len(words.target)
    for name in ("SVG, matrix", "SVG, links"):
        assert ElementTree.fromstring(saved(name)).tag.endswith("svg")
    assert saved("PNG").startswith(b"\x89PNG")
    html = saved("HTML").decode()
    assert "<figure" in html
    assert "sleeping" in html
    links = tmp_path / "links.align"
    links.write_bytes(saved("Pharaoh"))
    [alignment] = read_alignments(links)
    assert (0, 0) in alignment


def copied(page, button, start):
    """Copy something, and wait until the clipboard has it: writing to it takes a moment."""
    page.get_by_role("button", name=button).click()
    wait_until(page, f"navigator.clipboard.readText().then((text) => text.startsWith('{start}'))", 30)
    return page.evaluate("navigator.clipboard.readText()")


def test_copying_as_python_and_as_a_command(visit, browser):
    page = explained(visit("explain?text=The+cat%27s+asleep."))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    python = copied(page, "Copy as Python", "import sightline")
    compile(python, "copied", "exec")
    assert 'sightline.explain(model, "The cat\'s asleep.", method="norms")' in python
    command = copied(page, "Copy as command", "sightline explain")
    assert command == "sightline explain --method norms 'The cat'\\''s asleep.'\n"


def test_a_mistake_is_told_kindly(visit):
    page = explained(visit())
    page.get_by_label("A sentence to translate").fill("word " * 2000)
    problem = page.locator(".problem")
    problem.wait_for(timeout=SLOW)
    assert "characters, and this server takes 6,000" in problem.inner_text()
    page.get_by_label("A sentence to translate").fill("The dog sleeps.")
    page.wait_for_selector("main > figure .token:text-is('perro')", timeout=SLOW)
    assert problem.count() == 0


EVIL = "<img src=x onerror=alert(1)> <script>alert(2)</script> javascript:alert(3) \u202eabc"


def test_hostile_words_are_inert(visit):
    page = explained(visit())
    page.get_by_label("A sentence to translate").fill(EVIL)
    wait_until(page, "document.querySelector('main > figure .line.source')?.textContent.includes('onerror')", 30)
    explained(page)
    assert "\\u202eabc" in figure(page).locator(".line.source").inner_text()
    token(page, "column", 1).click()
    page.get_by_role("button", name="Strike it out and see what changes").click()
    page.locator(".struck .changed").wait_for(timeout=SLOW)
    assert page.locator("main img, main script").count() == 0
    assert not page.complaints


def test_tags_are_carried_over_and_rendered_without_acting(visit):
    page = visit("tags")
    page.wait_for_selector(".rendered b", timeout=SLOW)
    assert page.locator(".rendered b").all_inner_texts() == ["a white dog", "un perro blanco"]
    page.get_by_label("Text with markup").fill(
        "A <b onclick='alert(1)'>cat</b> <img src=x onerror=alert(2)> <script>alert(3)</script>"
    )
    wait_until(page, "document.querySelector('.rendered b')?.textContent === 'cat'", 30)
    assert page.locator("main img, main script, main [onclick]").count() == 0
    assert not page.complaints


LINKS = ".curves path:not(.dragging)"


def align_state(page):
    return page.evaluate(
        f"""[...document.querySelectorAll(".pair")]
        .map((one) => [Number(one.dataset.line), one.querySelectorAll("{LINKS}").length])"""
    )


def wait_for_links(page, count):
    """Wait until the first pair has a number of links, and nothing is dragged any more."""
    pair = "document.querySelector('.pair')"
    wait_until(page, f"{pair}.querySelectorAll('{LINKS}').length === {count}", 30)
    wait_until(page, f"{pair}.querySelector('.dragging, .aimed') === null", 30)


def test_a_link_is_corrected_by_dragging_and_the_error_rate_follows(visit, tmp_path):
    page = visit("align")
    page.wait_for_selector(".pair .token", timeout=SLOW)
    lowest = [float(text.rsplit(" ", 1)[1]) for text in page.locator(".pair-head .hint:first-child").all_inner_texts()]
    assert lowest == sorted(lowest)
    first = page.locator(".pair").first
    line, before = align_state(page)[0]
    source = first.locator(".token[data-column='2']")
    target = first.locator(".token[data-row='0']")
    source.scroll_into_view_if_needed()
    start, end = source.bounding_box(), target.bounding_box()
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(end["x"] + 3, end["y"] + 3, steps=5)
    first.locator(".curves .dragging").wait_for()
    page.mouse.up()
    wait_for_links(page, before + 1)
    page.wait_for_selector(".rate:has-text('Alignment error rate of the model on 1 line')", timeout=SLOW)
    expected = 100 * (1 - 2 * before / (2 * before + 1))
    assert page.locator(".rate").inner_text().endswith(f"{expected:.1f} %")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as Pharaoh").click()
    links = list(read_alignments(saving.value.path()))
    assert (2, 0) in links[line]
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as JSON lines").click()
    assert [set(one) for one in read_alignments(saving.value.path(), "jsonl")] == [set(one) for one in links]


class Finger:
    """A finger on the page's screen."""

    def __init__(self, page):
        self.session = page.context.new_cdp_session(page)

    def _send(self, kind, points):
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def put(self, x, y):
        self.x, self.y = x, y
        self._send("touchStart", [{"x": x, "y": y}])

    def move(self, x, y, steps=8):
        for step in range(1, steps + 1):
            at = {"x": self.x + (x - self.x) * step / steps, "y": self.y + (y - self.y) * step / steps}
            self._send("touchMove", [at])
        self.x, self.y = x, y

    def lift(self):
        self._send("touchEnd", [])


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_finger_drags_a_link_and_scrolls_beside_the_words(visit):
    page = visit("align", **PHONE)
    page.wait_for_selector(".pair .token", timeout=SLOW)
    finger, first = Finger(page), page.locator(".pair").first
    line, before = align_state(page)[0]
    source, target = first.locator(".token[data-column='2']"), first.locator(".token[data-row='0']")
    source.evaluate("one => one.scrollIntoView({ block: 'center' })")
    scrolled = page.evaluate("scrollY")

    start, end = middle(source), middle(target)
    finger.put(*start)
    finger.move(*end)
    first.locator(".curves .dragging").wait_for()
    first.locator(".token.aimed[data-row='0']").wait_for()
    assert first.locator(".token.aimed").count() == 1
    page.evaluate("dispatchEvent(new Event('resize'))")  # as when a phone shows or hides its bars
    assert first.locator(".curves .dragging").count() == 1
    finger.lift()
    wait_for_links(page, before + 1)
    assert page.evaluate("scrollY") == scrolled  # it was a drag alone
    page.wait_for_selector(".rate:has-text('Alignment error rate of the model on 1 line')", timeout=SLOW)
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as Pharaoh").click()
    assert (2, 0) in list(read_alignments(saving.value.path()))[line]

    source.evaluate("one => one.scrollIntoView({ block: 'center' })")
    scrolled = page.evaluate("scrollY")
    x, y = middle(first.locator(".links"))
    finger.put(x, y)
    finger.move(x, y - 150)
    finger.lift()
    wait_until(page, f"scrollY > {scrolled} + 50", 30)
    assert align_state(page)[0] == [line, before + 1]
    assert not page.complaints


def test_a_drag_that_ends_elsewhere_links_nothing(visit):
    page = visit("align", **PHONE)
    page.wait_for_selector(".pair .token", timeout=SLOW)
    finger, first = Finger(page), page.locator(".pair").first
    source = first.locator(".token[data-column='2']")
    source.evaluate("one => one.scrollIntoView({ block: 'center' })")
    x, y = middle(source)
    finger.put(x, y)
    finger.move(x, 20)
    first.locator(".curves .dragging").wait_for(state="attached")
    finger.lift()
    wait_until(page, "document.querySelectorAll('.dragging').length === 0", 30)
    source.click()  # as ever; a tap right after it would be taken for the end of the flick
    wait_until(page, "document.querySelector('.pair .token.chosen') !== null", 30)
    assert page.locator(".pair.checked").count() == 0


def test_a_link_is_corrected_by_the_keyboard(visit):
    page = visit("align")
    page.wait_for_selector(".pair .token", timeout=SLOW)
    first = page.locator(".pair").first
    before = align_state(page)[0][1]
    first.locator(".token[data-column='0']").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+Enter")
    first.get_by_role("button", name="Link or unlink these two").press("Enter")
    wait_until(
        page, f"Math.abs(document.querySelector('.pair').querySelectorAll('{LINKS}').length - {before}) === 1", 30
    )


def test_gold_links_are_laid_over(visit):
    page = visit("align?source=The+cat+sleeps.&target=El+gato+duerme.&gold=0-0+1-1+2-0")
    page.wait_for_selector(".pair .token", timeout=SLOW)
    page.get_by_text("1 wrong (dashed), 1 missed (dotted)").wait_for()
    curves = page.locator(".pair .curves path").evaluate_all("all => all.map((one) => one.getAttribute('class'))")
    assert sorted(curves) == ["positive", "positive", "positive missed", "positive wrong"]
    page.wait_for_selector(".rate:has-text('33.3 %')", timeout=SLOW)


def test_gold_links_that_are_counted_from_1(visit):
    page = visit("align?source=The+cat+sleeps.&target=El+gato+duerme.&gold=1-1+2-2+3-3")
    page.locator(".problem", has_text="names a word that is not there: are words counted from 1?").wait_for()
    page.get_by_label("Words are counted from").select_option("1")
    assert "base=1" in where(page)
    page.get_by_role("button", name="Align", exact=True).click()
    page.get_by_text("as in the gold alignment").wait_for()
    page.wait_for_selector(".rate:has-text('0.0 %')", timeout=SLOW)
    page.get_by_label("Gold links, if there are any").fill("1-1\n2-2")
    page.get_by_role("button", name="Align", exact=True).click()
    page.locator(".problem", has_text="There are more lines of gold links (2) than of text (1)").wait_for()


def test_a_text_is_classified_and_another_label_asked_for(visit):
    page = visit("classify")
    page.wait_for_selector(".bars li", timeout=SLOW)
    shares = [float(text.removesuffix(" %")) for text in page.locator(".bars li > span:last-child").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=0.3)
    assert shares == sorted(shares, reverse=True)
    other = page.locator(".bars button").nth(1)
    label = other.inner_text()
    other.click()
    page.wait_for_selector(f"figure[data-label='{label}']", timeout=SLOW)
    assert figure(page).locator(".line.label .token").inner_text() == label


def test_a_continuation_flows_on_from_its_prompt(visit):
    page = visit("continue?text=The+cat+sees&target=the+bird+and+sings")
    page.wait_for_selector("figure[data-explained] .token", timeout=SLOW)
    assert figure(page).locator(".line.flow .token").all_inner_texts() == [
        "The",
        "cat",
        "sees",
        "the",
        "bird",
        "and",
        "sings",
    ]
    token(page, "row", 3).click()
    marked = (
        figure(page)
        .locator(".line.flow .token")
        .evaluate_all("all => all.map((one) => Number(one.style.getPropertyValue('--strength')))")
    )
    assert max(marked[:6]) == 1  # prompt and what was written before


def test_a_continuation_arrives_word_by_word(visit):
    page = visit("continue?text=The+dog")
    page.wait_for_selector("figure[data-explained] .matrix", timeout=SLOW)
    asked = []
    page.on("request", lambda request: asked.append(request.url.rsplit("/api/", 1)[-1]))
    page.evaluate(WATCHED, "main > figure .token[data-row]")
    page.get_by_label("A text to continue").fill("The cat sees")
    wait_until(page, "[1, 2, 3].every((words) => window.seen.includes(words))", 30)  # never all at once
    page.wait_for_selector("figure[data-explained='attention'] .matrix", timeout=SLOW)
    continuation = figure(page).locator(".token[data-row]").all_inner_texts()
    page.get_by_label("Ask").select_option("gradient")
    page.wait_for_selector("figure[data-explained='gradient'] .matrix", timeout=SLOW)
    assert figure(page).locator(".token[data-row]").all_inner_texts() == continuation
    calls = [one for one in asked if "/" not in one]
    assert calls == ["continue", "explain", "explain"]  # another method explains what was written before
    assert not page.complaints


@pytest.mark.parametrize("view", ["explain", "align", "tags", "classify", "continue", "runs"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_a_serious_fault_of_accessibility(visit, view, scheme):
    page = visit(view, color_scheme=scheme)
    page.wait_for_selector("main .token, main .rendered b, main .run-plot", timeout=SLOW)
    if view == "explain":
        explained(page)
        token(page, "row", 1).click()
        page.get_by_role("heading", name="Why “gato”?").wait_for(timeout=SLOW)
        page.get_by_text("Ask in another way").click()
        page.wait_for_selector(".method-choice", timeout=SLOW)
    assert serious_faults(page) == []


def test_methods_that_the_server_has_yet_to_try_are_listed_once_it_has(browser, models):
    app = create_app({"reviews": models["reviews"]})
    [worker] = app.state.workers.by_name.values()
    worker._untried.clear()
    with Server(app) as address:
        page = open_page(browser, f"{address}/#classify")
        page.wait_for_selector(".bars li", timeout=SLOW)
        offered = page.get_by_label("Ask").locator("option")
        assert offered.evaluate_all("all => all.map((one) => one.value)") == ["erasure"]
        with worker._changed:
            worker._untried.extend(METHODS)
            worker._changed.notify_all()
        wait_for_models(app)
        wait_until(page, f"document.querySelectorAll('.choice option').length === {len(worker.methods)}", 30)
        assert offered.evaluate_all("all => all.map((one) => one.value)") == worker.methods
        assert page.get_by_label("Ask").input_value() == "erasure"


def test_runs_show_curves_and_replay_attention_as_it_forms(visit):
    page = visit("runs")
    page.wait_for_selector(".run-plot", timeout=SLOW)
    shown = page.get_by_label("Show").locator("option").all_inner_texts()
    assert shown == ["a run (run)", "a study (study)", "kept: another (study)"]
    page.get_by_label("Show").select_option("1")
    slider = page.get_by_label("step")
    slider.wait_for(timeout=SLOW)
    assert page.locator(".slider output").inner_text() == "step 50"
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator(".slider output").inner_text() == "step 0"
    assert page.get_by_text("It holds.").count() == 1
    assert not page.complaints


def test_the_whole_way_by_keyboard(visit):
    page = explained(visit())
    page.get_by_label("A sentence to translate").focus()
    order = []
    for _ in range(12):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate("document.activeElement.textContent.trim().slice(0, 20) || document.activeElement.className")
        )
    assert any(text.startswith("The") for text in order)  # the source words are one stop
    assert order.count("black") == 0  # and not one each
    token(page, "row", 0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Why “gato”?").wait_for(timeout=SLOW)
    page.keyboard.press("Escape")
    page.locator(".word-panel").wait_for(state="hidden")
