# SPDX-License-Identifier: Apache-2.0
"""The page of a fleet, and its lines in the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from penstock import folders, units
from penstock.fleet.readings import CANDIDATES
from penstock.show import html
from penstock.show.html import Cell, Column, Html

PAGE = "fleet.html"
ROWS = 200
"""Ports on the page, the worst first; ports.csv has all."""
_CURES = ("grant", *CANDIDATES)


def sentences(summary: dict[str, Any]) -> list[str]:
    """What matters, the most important first."""
    suffering, begin_with = summary["suffering"], summary["begin_with"]
    ports, hosts = (units.counted(summary[f"{noun}s"], noun) for noun in ("port", "host"))
    have = "has" if suffering == 1 else "have"
    lines = [f"{suffering} of {ports} on {hosts} {have} timeouts and drops."]
    if summary["wait_s"] > 0:
        saved = ", ".join(
            f"{one} {units.percent(summary['saved_s'][one] / summary['wait_s'])}" for one in _CURES
        )
        have, these = ("has", "it") if begin_with == 1 else ("have", "these")
        lines += [
            f"Senders waited at least {units.seconds(summary['wait_s'])} there; "
            f"{units.counted(begin_with, 'port')} {have} 80 % of it: begin with {these}.",
            f"Of this, cures would have saved at most: {saved}.",
        ]
    if summary["elsewhere_s"] > 0:
        wait = units.seconds(summary["elsewhere_s"])
        lines.append(
            f"Further waits of {wait} were seen at ports that drop nothing: look upstream."
        )
    for key, one, several in (
        ("not_acting", "has a scheme that does not act", "have a scheme that does not act"),
        ("blind", "is blind", "are blind"),
    ):
        if count := summary[key]:
            what = one if count == 1 else several
            lines.append(f"{units.counted(count, 'port')} {what}: see the runbook.")
    return lines


def write(
    ports: pl.DataFrame, summary: dict[str, Any], failed: Sequence[str], folder: Path
) -> Path:
    """Writes `fleet.html` and `ports.csv` of judged ports; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    folders.write(folder / "ports.csv", ports.write_csv())
    headings = (
        Column("port"),
        Column("scheme"),
        Column("waits", "timeouts seen, 200 ms each: the least that senders waited"),
        Column("of all", "share of the fleet's waits, up to this row"),
        Column("timeouts"),
        Column("drops", "of the packets that wanted to leave"),
        *(Column(one, f"waits that {one} would have saved at most") for one in _CURES),
    )
    shown = ports.filter(pl.col("wait_s") > 0).head(ROWS)
    table = html.table("Ports", headings, [_row(row) for row in shown.iter_rows(named=True)])
    lines = "".join(Html("<p>{}</p>").format(line) for line in sentences(summary))
    missing = "".join(Html("<li>{}</li>").format(line) for line in failed)
    parts = [Html("<h1>Fleet</h1>"), Html(lines), table]
    if failed:
        parts.append(Html(f"<h2>Not included: {len(failed)}</h2><ul>{missing}</ul>"))
    return html.save(html.document("Fleet", Html("").join(parts)), (), folder / PAGE)


def _row(row: dict[str, Any]) -> list[str | Cell]:
    def time(name: str) -> Cell:
        return Cell(units.seconds(row[name]), row[name])

    return [
        f"{row['host']} {row['interface']}",
        row["scheme"] or "",
        time("wait_s"),
        Cell(units.percent(row["of_all"]), row["of_all"]),
        Cell(units.count(row["timeouts_seen"]), row["timeouts_seen"]),
        Cell(units.percent(row["drop_share"]), row["drop_share"]),
        *(time(f"saved_{one}_s") for one in _CURES),
    ]
