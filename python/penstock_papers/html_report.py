# SPDX-License-Identifier: Apache-2.0
"""The page of a reproduction: every claim, published and measured, and the figures."""

import os
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from penstock import provenance, units
from penstock.show import html, style
from penstock.show.html import Html
from penstock_papers.claims import published, verdict
from penstock_papers.reproduction import claims_by_experiment

Table = Mapping[str, Any]


def render(document: Table, folder: Path, at: Path) -> str:
    """The page as text.

    Args:
        document: of `reproduction.json`.
        folder: the reproduction's; it has the figures and runs.
        at: the folder of the page, to which links are relative.
    """
    claims = claims_by_experiment(document)
    overview = html.table(
        "",
        ["experiment", "what", "claims that hold"],
        [
            [
                Html(f'<a href="#{escape(one["id"])}">{escape(one["id"])}</a>'),
                one["title"],
                f"{one['held']} of {one['judged']}",
            ]
            for one in document["experiments"]
        ],
    )
    parts = "".join(
        _experiment(one, claims.get(one["id"], []), folder, at) for one in document["experiments"]
    )
    quick = "<p>Quick: runs were shortened, as noted at each experiment.</p>"
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>What reproduces</h1>
<p class="lead">{document["held"]} of {document["judged"]} claims hold.</p>
{quick if document["quick"] else ""}
<p class="about">Measured numbers are means over the seeds, ± the half-width of the 95 % confidence
interval. “Within the noise”: values within the intervals give the other verdict.</p>
</header>
<main>
<section>
<h2>Experiments</h2>
{overview}
</section>
{parts}
</main>
{footer(document, " · figures as SVG and PDF in <code>figures/</code>")}"""
    return html.document("What reproduces", body)


def footer(document: Table, more: str = "") -> str:
    """How a page's numbers came about: command, version, date, time and machine; then `more`."""
    return f"""<footer>
<p><code>{escape(document["command"])}</code></p>
<p>{escape(provenance.text(document))} · {units.seconds(document["wall_s"])}{more}</p>
</footer>"""


def _experiment(one: Table, claims: list[Table], folder: Path, at: Path) -> str:
    notes = [*one["notes"], *([f"Quick: {one['shortened']}."] if one["shortened"] else [])]
    rows = [
        [
            _claim(claim),
            _verdict(claim),
            published(claim["published"]),
            claim["shown"],
        ]
        for claim in claims
    ]
    table = html.table("", ["claim", "verdict", "published", "measured"], rows)
    reports = [
        (run, os.path.relpath(folder / run / "report.html", at))
        for run in one["runs"]
        if (folder / run / "report.html").is_file()
    ]
    links = ", ".join(f'<a href="{escape(to)}">{escape(run)}</a>' for run, to in reports)
    return f"""<section id="{escape(one["id"])}">
<h2>{escape(one["id"])}: {escape(one["title"])}</h2>
<p class="hint">{escape(one["about"])}</p>
{"".join(f"<p>{escape(note)}</p>" for note in notes)}
{table if claims else ""}
<div class="columns">{"".join(_figure(figure, folder) for figure in one["figures"])}</div>
{_text(one["why"])}
{f"<p>Reports of the runs: {links}</p>" if links else ""}
</section>
"""


def _claim(claim: Table) -> Html:
    shown = f" (shown: {claim['run']})" if claim["run"] else ""
    text, where = escape(claim["text"] + shown), escape(claim["where"])
    return Html(f"{text}<br><small>{where}</small>")


def _verdict(claim: Table) -> Html:
    outcome = verdict(claim["holds"], is_open=claim["within_noise"])
    return Html(outcome if claim["holds"] is not False else f"<b>{outcome}</b>")


def _figure(figure: Table, folder: Path) -> str:
    svg = (folder / figure["file"]).read_text(encoding="utf-8")
    title = f"<b>{escape(figure['title'])}</b> {escape(figure['where'])}"
    return f"""<figure>
<figcaption>{title}<p>{escape(figure["meaning"])}</p></figcaption>
<div class="scroll">{style.for_page(svg, escape(figure["title"]))}</div>
</figure>
"""


def _text(markdown: str) -> str:
    """Paragraphs with code and stress; a list or table stays as it is written."""
    parts = []
    for block in filter(str.strip, markdown.strip("\n").split("\n\n")):
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(block, quote=False))
        text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
        tag = "pre" if block[0] in "|-# " else "p"
        parts.append(f"<{tag}>{text}</{tag}>")
    return "\n".join(parts)
