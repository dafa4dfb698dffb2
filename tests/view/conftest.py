import pytest
from browser import open_page, wait_until


@pytest.fixture
def show(browser, tmp_path):
    """Open the text of a page in the browser, as a file; every figure in it is live when this returns."""

    def show_text(text, **options):
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        page = open_page(browser, file.as_uri(), **options)
        wait_until(page, "document.querySelectorAll('figure.sightline:not(.live)').length === 0")
        return page

    return show_text
