# SPDX-License-Identifier: Apache-2.0
"""Configuration of the documentation site, `make docs`.

Pages are plain Markdown, so the navigation is defined here. The source folder is the repository, so
that links work as they do on GitHub.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import cast

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import pictures  # noqa: E402 (next to this file)

NAVIGATION = {
    "Getting started": ["install", "getting-started", "gallery", "README </README>"],
    "Observe": ["slow-requests", "observing"],
    "Simulate": ["scenarios", "jobs", "schemes/index", "sweeps", "tuning"],
    "Deploy": [
        "operations",
        "deploying",
        "kubernetes",
        "virtual-machines",
        "limits",
        "runbook",
        "laboratory",
        "sicc-on-open-vswitch",
        "/evidence/kernels/README",
        "/evidence/datapath/README",
    ],
    "Hardware": [
        "/rtl/README",
        "/rtl/ack",
        "/rtl/registers",
        "/rtl/resources",
        "/rtl/taxi",
        "/rtl/corundum",
        "/rtl/netfpga",
        "/evidence/hardware/README",
    ],
    "Papers": ["/papers/results", "analysis", "/papers/README"],
    "Reference": [
        "glossary",
        "python-api",
        "/examples/README",
        "adding-a-scheme",
        "/ARCHITECTURE",
        "/CONTRIBUTING",
        "/CODE_OF_CONDUCT",
        "/SECURITY",
        "tcp",
        "/evidence/README",
        "/evidence/mutants/README",
        "/evidence/endurance/README",
        "/evidence/ns2/README",
        "/evidence/linux/README",
        "/evidence/grant/README",
        "/evidence/grant/fabrics",
        "/evidence/grant/laboratory",
        "/evidence/grid/README",
        "/evidence/kubernetes/README",
        "/evidence/sdn/README",
        "/evidence/speed/README",
        "/CHANGELOG",
    ],
}
"""Pages by heading, relative to docs/. Sphinx fails if a page is under no heading."""

SCHEMES = ["grant", "fairq", "hscc", "sicc", "hcf", "baselines"]

project = "Penstock"
author = "the Penstock authors"
version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
html_title = f"Penstock {version}"
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_static_path = ["site"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
html_theme_options = {"top_of_page_buttons": []}
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "*.md",
    "examples/*.md",
    "papers/*.md",
    "rtl/*.md",
    "evidence/*.md",
    "evidence/*/README.md",
    "evidence/grant/*.md",
]
# Folders that are not to be searched.
exclude_patterns = ["[a-cf-oqs-z]*/**", "p[ay][ct]*/**", "ru*/**", "rtl/[a-z]*/**", ".?*/**"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_sitemap",
    "sphinxext.opengraph",
]
# Of pyproject.toml, until the project has a public home.
html_baseurl = f"https://penstock.invalid/{version}/"
sitemap_url_scheme = "{link}"
sitemap_excludes = ["search.html", "genindex.html"]
ogp_site_url = html_baseurl
ogp_site_name = "Penstock"
ogp_social_cards = {
    "enable": tags.has("publish"),  # noqa: F821 (Sphinx'); a picture of each page takes its time
    "font": "DejaVu Sans",  # that of matplotlib
    "line_color": "#0072b3",
}
myst_heading_anchors = 4
myst_links_external_new_tab = True
nitpicky = True
# Names in annotations that no page of this site documents.
nitpick_ignore_regex = [
    ("py:.*", r"(pl|polars|pathlib|collections)\..*|Path|Figure|Scenario|Overrides"),
    (
        "py:.*",
        r"penstock\.(sweeps|searches)\.\w+\.(Shown|Question|Kept|Number)|InterruptedRunError",
    ),
    ("py:.*", r"penstock\.comparisons\.comparison\.Comparison"),
    ("py:.*", r"penstock\.execution\.(task\.Row|unfinished\.Rows|lab\.check\.Finding)"),
]
default_role = "code"  # for docstrings
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True


def add_navigation(_app: Sphinx, name: str, source: list[str]) -> None:
    """Appends tables of contents to the two index pages; GitHub would show their code."""
    if name == root_doc:
        source[0] += "".join(toctree(heading, pages) for heading, pages in NAVIGATION.items())
    elif name == "docs/schemes/index":
        source[0] += toctree("", SCHEMES)


def add_pictures(_app: Sphinx, name: str, source: list[str]) -> None:
    """Adds the pictures of captions, and to the page of results the recorded ones."""
    if name in (pictures.RESULTS, pictures.LABORATORY):
        text = pictures.results()[0] if name == pictures.RESULTS else pictures.on_real_tcp()
        source[0] += "\n" + re.sub(r"(?<=\]\()(?=target/)", "/", text)
    source[0] = pictures.with_pictures(source[0])


def drop_folders(_app: Sphinx, name: str, source: list[str]) -> None:
    """Turns links to folders, which work on GitHub but not in a site, into plain text."""
    base = (ROOT / name).parent
    source[0] = re.sub(
        r"(?<!!)\[([^\]\n]+)\]\(([^)#:\s]+)\)",
        lambda link: link[1] if (base / link[2]).is_dir() else link[0],
        source[0],
    )


def toctree(heading: str, entries: list[str]) -> str:
    """A table of contents that appears only in the navigation."""
    options = ":hidden:" + (f"\n:caption: {heading}" if heading else "")
    return "\n".join(["", "```{toctree}", options, "", *entries, "```", ""])


def add_entrances(app: Sphinx, _error: Exception | None) -> None:
    """Redirects from the root of the site to its first page, and lists the versions next to it.

    A folder named by its version is hosted with those of others: the redirect next to it is to the
    newest.
    """
    if app.builder.format != "html":
        return
    redirect(Path(app.outdir), app.builder.get_target_uri(root_doc))
    if Path(app.outdir).name == version:
        hosted = Path(app.outdir).parent
        found = [path.name for path in hosted.iterdir() if re.fullmatch(r"\d+(\.\d+)+", path.name)]
        found.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
        (hosted / "versions.json").write_text(json.dumps(found) + "\n")
        redirect(hosted, f"{found[0]}/")


def redirect(folder: Path, target: str) -> None:
    """Makes the first page of a folder lead to another one."""
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={target}">\n'
    (folder / "index.html").write_text(page)


def keep_colons(_app: Sphinx, what: str, *rest: object) -> None:
    """Keeps napoleon from reading the text before a colon as a type."""
    if what == "attribute":
        cast("list[str]", rest[-1]).insert(0, "\\")  # nothing, in reStructuredText


def setup(app: Sphinx) -> None:
    """Registers the functions above with Sphinx."""
    app.add_lexer("csv", TextLexer)
    app.add_lexer("mermaid", TextLexer)  # GitHub draws it
    app.connect("source-read", add_navigation)
    app.connect("source-read", add_pictures)
    app.connect("source-read", drop_folders)
    app.connect("autodoc-process-docstring", keep_colons, priority=400)
    app.connect("build-finished", add_entrances)
