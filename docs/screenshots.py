# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of pages and displays in docs/img: `make screenshots`.

The pages are those of `commands`, in headless Chromium; the display of `penstockd
watch` is the text in docs/observing.md.
"""

import base64
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs/img"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH = 1180
COLOURS = 96
"""Of a picture: enough for flat pages, and a third of the bytes."""


class Shot(NamedTuple):
    """A picture: the page, and the first and the last element that are on it."""

    page: str
    first: str
    last: str


SHOTS = {
    "report": Shot("demo", "header", "#why-mice"),
    "replay": Shot("demo", "#replay", "#replay"),
    "timeline": Shot("demo", "#timeline", "#timeline"),
    "sweep": Shot("sweep", "header", "main section"),
    "fabric": Shot("fabric", "#topology", "#topology"),
    "compare": Shot("compare", "header", "main section:nth-of-type(2)"),
}
PREPARE = """
document.querySelector(".picker")?.style.setProperty("position", "static");
if (!document.querySelector("#replay")) return;
penstock.replay.at(0.42);
const slow = penstock.data.timelines.findIndex((flow) => /^slowest.*drop-tail/.test(flow.label));
penstock.showFlow(slow);
"""
BOX = """
const box = (each) => document.querySelector(each).getBoundingClientRect();
const [first, last] = [...arguments].map(box);
return [first.top + scrollY, last.bottom + scrollY];
"""
SETTLED = "requestAnimationFrame(() => setTimeout(arguments[0], 300))"


def shots(pages: dict[str, Path]) -> Iterator[tuple[str, bytes]]:
    """The pictures as PNG, by their names."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if not (program and driver):
        sys.exit("no Chromium or no chromedriver: install them, as `make test` does")
    settings = webdriver.ChromeOptions()
    settings.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        settings.add_argument(argument)
    browser = webdriver.Chrome(options=settings, service=Service(driver))
    try:
        screen = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        for name, shot in SHOTS.items():
            browser.get(pages[shot.page].as_uri())
            browser.execute_script(PREPARE)
            browser.execute_async_script(SETTLED)
            top, bottom = browser.execute_script(BOX, shot.first, shot.last)
            clip = {"x": 0, "y": top - 16, "width": WIDTH, "height": bottom - top + 32, "scale": 1}
            options = {"captureBeyondViewport": True, "clip": clip}
            data = browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
            yield name, base64.b64decode(data)
    finally:
        browser.quit()


def small(png: bytes) -> bytes:
    """The same picture in few colours."""
    stream = io.BytesIO()
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
        stream, "PNG", optimize=True
    )
    return stream.getvalue()


def terminal(lines: list[str]) -> str:
    """Text as the picture of a terminal."""
    width, height = 8.4 * max(map(len, lines)) + 40, 19 * len(lines) + 34
    texts = "".join(
        f'<text x="20" y="{34 + 19 * number}" xml:space="preserve">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" role="img" aria-label="penstockd watch">'
        f'<rect width="100%" height="100%" rx="8" fill="#14171e"/>'
        f'<g fill="#e6e8ee" font-family="DejaVu Sans Mono, monospace" font-size="14">{texts}</g>'
        "</svg>\n"
    )


def display() -> list[str]:
    """The display of `penstockd watch`, as docs/observing.md has it."""
    text = (ROOT / "docs/observing.md").read_text(encoding="utf-8")
    found = re.search(r"```text\n(  port0 .*?)```", text, re.S)
    if not found:
        sys.exit("docs/observing.md: has no display of `penstockd watch`")
    return found[1].rstrip().splitlines()


def names() -> list[str]:
    """The files of the pictures."""
    return ["watch.svg", *(f"{name}.png" for name in SHOTS)]


def commands(folder: Path) -> list[str]:
    """The commands that make the pages, as the gallery shows them."""
    demo, deep = folder / "demo", folder / "deep"
    return [
        f"run demo --out {demo}",
        f"run demo --out {deep} --set fabric.bottleneck.buffer='500 kB'",
        f"compare {demo} {deep} --out {folder}/compare",
        f"run websearch --seeds 1 --scheme drop-tail --out {folder}/fabric",
        f"sweep incast --over traffic.stripes.flows=8..128*2 --seeds 3 --out {folder}/sweep",
    ]


def pages(folder: Path) -> dict[str, Path]:
    """The pages, made by the commands."""
    for command in commands(folder):
        subprocess.run(["penstock", *shlex.split(command)], check=True, stdout=subprocess.DEVNULL)
    return {
        "demo": folder / "demo/report.html",
        "fabric": folder / "fabric/report.html",
        "compare": folder / "compare/compare.html",
        "sweep": folder / "sweep/report.html",
    }


def main() -> None:
    """Writes all pictures."""
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "watch.svg").write_text(terminal(display()), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, png in shots(pages(Path(folder))):
            (IMAGES / f"{name}.png").write_bytes(small(png))


if __name__ == "__main__":
    main()
