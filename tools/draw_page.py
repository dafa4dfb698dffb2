"""Take the picture of the page that the guide and the README show: docs/page.png, and docs/page-phone.png.

python tools/draw_page.py        # needs sightline[test] and Chromium
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import PHONE, open_page, start_browser  # noqa: E402

PORT = 8491
ADDRESS = f"http://127.0.0.1:{PORT}"
SLOW = 60_000  # milliseconds


def wait_until_ready(server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            with urlopen(f"{ADDRESS}/ready"):
                return
        except URLError:
            time.sleep(0.3)
    raise SystemExit("The server did not start.")


def main() -> None:
    command = [sys.executable, "-m", "sightline.cli", "serve", "--quiet", "--port", str(PORT)]
    server = subprocess.Popen([*command, "-m", "en-es", "-m", "en-es-calibrated"])
    try:
        wait_until_ready(server)
        with start_browser() as browser:
            for name, options in (
                ("page", {"color_scheme": "light"}),
                ("page-phone", PHONE | {"color_scheme": "dark"}),
            ):
                page = open_page(browser, ADDRESS, device_scale_factor=1.5, **options)
                page.wait_for_selector("main > figure[data-explained] .matrix", timeout=SLOW)
                page.locator("main > figure .token[data-row='2']").click()
                page.wait_for_selector(".word-panel:not([hidden])", timeout=SLOW)
                time.sleep(0.5)
                page.screenshot(path=ROOT / "docs" / f"{name}.png")
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    main()
