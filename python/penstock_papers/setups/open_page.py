# SPDX-License-Identifier: Apache-2.0
"""The page of a folder of set-ups: the map, and each experiment's claims."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from penstock.show import html
from penstock_papers.html_report import footer
from penstock_papers.setups import claims_map, tables
from penstock_papers.setups.outcome import Outcome, printed


def render(document: Mapping[str, Any], outcomes: Sequence[Outcome]) -> str:
    """The page as text; `document` is that of `open.json`."""
    parts = "".join(_experiment(one) for one in outcomes)
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>What holds whatever the papers leave open</h1>
<p class="lead">{escape(tables.summary(outcomes))}</p>
<p class="about">The intervals are Wilson's, of 95 %.</p>
</header>
<main>
<section>
<h2>Map of the claims</h2>
<div class="scroll">{claims_map.svg(outcomes)}</div>
</section>
{parts}
</main>
{footer(document)}"""
    return html.document("What holds in which set-ups", body)


def _experiment(one: Outcome) -> str:
    made = one.experiment
    claims = html.table(
        "",
        ["claim", "holds in", "", "published", "decided by"],
        [
            [
                claim.claim.text,
                str(claim.share),
                claim.share.kind,
                printed(claim.claim),
                claim.decided,
            ]
            for claim in one.claims
        ],
    )
    left_open = html.table(
        "What the paper leaves open",
        ["value", "sampled", "reason"],
        [[each.key, each.given, each.table.reason] for each in one.parameters],
    )
    return f"""<section id="{escape(made.id)}">
<h2>{escape(made.id)}: {escape(made.title)}</h2>
{"".join(f"<p>{escape(note)}</p>" for note in tables.notes(one))}
{claims}
{left_open}
</section>
"""
