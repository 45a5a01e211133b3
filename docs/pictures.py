"""Pictures of the README and the site, made from the demo: `python docs/pictures.py`.

Needs Playwright and a Chromium (`apt-get install chromium`). Noise is new in every run, so numbers
in the pictures differ from run to run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Draw the demo, open its report, take its first screen."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        demo = Path(folder) / "demo"
        command = [sys.executable, "-m", "congenial.cli", "demo", "--out", str(demo)]
        subprocess.run(command, check=True)  # noqa: S603 - our own program
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1080, "height": 1300})
        page.goto((demo / "bundles" / "sex-by-age" / "report.html").as_uri())
        page.wait_for_selector("svg")
        page.screenshot(path=IMAGES / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
