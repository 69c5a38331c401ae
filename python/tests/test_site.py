# SPDX-License-Identifier: Apache-2.0
"""The site builds without warnings, has no broken links, and fetches nothing from a network."""

import importlib.metadata
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .test_docs import DOCUMENTS, ROOT

FETCHING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
VERSION = importlib.metadata.version("penstock")
ELSEWHERE = re.compile(r"(https?:)?//")


class Page(HTMLParser):
    """The links of a page, the files it fetches, and its anchors."""

    def __init__(self, file):
        super().__init__()
        self.names, self.links, self.fetched = set(), [], []
        self.feed(file.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if values.get("id"):
            self.names.add(values["id"])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in FETCHING and values.get(FETCHING[tag]):
            self.fetched.append(values[FETCHING[tag]])
        if tag == "link" and values.get("rel") in {"stylesheet", "icon", "preload", "preconnect"}:
            self.fetched.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A fresh build of the site: an incremental build prints no warnings for unchanged pages."""
    folder = tmp_path_factory.mktemp("site") / VERSION
    (folder.parent / "0.1.0").mkdir()
    options = ["-b", "html", "-c", ROOT / "docs", "--fail-on-warning", "--keep-going", "--quiet"]
    command = [sys.executable, "-m", "sphinx", *options, ROOT, folder]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(site):
    found = {file: Page(file) for file in site.rglob("*.html") if "_static" not in file.parts}
    assert len(found) > len(DOCUMENTS)
    return found


def test_search_engines_find_every_document(site):
    listed = re.findall(
        rf"<loc>https://penstock.invalid/{VERSION}/([^<]+)</loc>",
        (site / "sitemap.xml").read_text(),
    )
    documents = {str(document.relative_to(ROOT).with_suffix(".html")) for document in DOCUMENTS}
    assert documents <= set(listed)
    card = (site / "docs/index.html").read_text()
    assert 'property="og:description"' in card


def test_versions_are_next_to_each_other(site):
    hosted = site.parent
    assert json.loads((hosted / "versions.json").read_text()) == [VERSION, "0.1.0"]
    assert f"url={VERSION}/" in (hosted / "index.html").read_text()


def test_every_document_is_a_page_in_the_navigation(site, pages):
    first = site / "docs/index.html"
    reached = {target(first, link)[0] for link in pages[first].links if not ELSEWHERE.match(link)}
    documents = [document.relative_to(ROOT).with_suffix(".html") for document in DOCUMENTS]
    schemes = {site / page for page in documents if page.parent.name == "schemes"}
    assert {site / page for page in documents} - reached - schemes == set()
    listed = {target(page, link)[0] for page in schemes for link in pages[page].links}
    assert schemes <= listed


def test_links_within_the_site_lead_somewhere(pages):
    broken = []
    for file, page in pages.items():
        for link in page.links:
            if urlsplit(link).scheme or ELSEWHERE.match(link):
                continue
            goal, name = target(file, link)
            if not goal.exists() or (name and goal in pages and name not in pages[goal].names):
                broken.append(f"{file.name}: {link}")
    assert not broken


def test_nothing_is_fetched_from_a_network(site, pages):
    fetched = [
        (file, url.partition("?")[0]) for file, page in pages.items() for url in page.fetched
    ]
    missing = [(file.name, url) for file, url in fetched if not target(file, url)[0].is_file()]
    assert fetched
    assert not missing, "not in the site"
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(['\"]?|@import\s+['\"]?)(https?:)?//", style.read_text())


def test_the_root_redirects_to_the_first_page(site):
    goal = re.search(r"url=([^\"]+)", (site / "index.html").read_text())
    assert goal
    assert (site / goal[1]).exists()


def target(file, link):
    """The file and the name within it that a link of `file` leads to."""
    path, _, name = unquote(link).partition("#")
    return (Path(file.parent, path).resolve() if path else file), name
