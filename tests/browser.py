"""A real browser for tests: Playwright with the system's Chromium, without a network."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def needs_browser() -> None:
    """Skip a test where there is no Chromium; in continuous integration that is an error."""
    if CHROMIUM is None:
        reason = "Chromium is not installed: apt install chromium"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@contextmanager
def start_browser() -> Iterator[object]:
    """Start Chromium, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser, address: str, **options):
    """Open an address in a context of its own; what the page's scripts complain about ends up in `page.complaints`."""
    context = browser.new_context(**(DESKTOP | {"reduced_motion": "reduce", "accept_downloads": True} | options))
    page = context.new_page()
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("console", lambda message: page.complaints.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (page.complaints.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
    page.goto(address)
    return page


def wait_until(page, expression: str, seconds: float = 10.0) -> None:
    """Wait until an expression holds in the page; Playwright's own way would be refused by a strict policy."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"this never came true: {expression}"
        time.sleep(0.03)


def save(page, figure, name: str) -> bytes:
    """Choose a format in a figure's menu, and return the file that the browser saves."""
    menu = figure.locator("details.save")
    if menu.get_attribute("open") is None:
        menu.locator("summary").click()
    with page.expect_download() as saving:
        figure.get_by_role("button", name=name, exact=True).click()
    return Path(saving.value.path()).read_bytes()


def serious_faults(page) -> list[str]:
    """List what axe-core finds that is serious or critical."""
    script = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    page.evaluate(script)  # a policy does not bind what the browser's own tools evaluate
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {one['help']} ({node['html'][:120]})"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
