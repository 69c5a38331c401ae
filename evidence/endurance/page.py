# SPDX-License-Identifier: Apache-2.0
"""The page of a long run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from penstock import units
from penstock.show import html, style
from penstock.show.charts import Axis, Chart, Panel, Series
from penstock.show.html import Html

_CHARTS = (
    ("rss_kb", "Memory of the agent", "resident memory, kB; each start is a new process"),
    ("files", "Open files of the agent", "descriptors"),
    ("cpu_s", "CPU time of the agent", "seconds since its last start"),
    ("flows", "Flows", "flows that share the ports"),
    ("flows_tracked", "Entries", "entries in the tables of flows; none after the end"),
    ("half_open_flows", "Half-open flows", "floods are seen here"),
    ("connections", "Connections", "done since the beginning"),
)


def sentences(
    table: pl.DataFrame, happened: Mapping[str, int], counts: Mapping[str, int]
) -> list[str]:
    """What happened, and what it needed."""
    faults = ", ".join(f"{name} {count}" for name, count in sorted(happened.items()))
    seconds = float(table["time_s"].max())
    rss = table["rss_kb"].drop_nulls()
    memory = f"{rss.min():.0f} to {rss.max():.0f} kB" if len(rss) else "not known"
    lasting = table["process"].value_counts(sort=True).row(0, named=True)
    times = table.filter(pl.col("process") == lasting["process"])["time_s"]
    return [
        f"{units.count(counts['connections'])} connections with {units.size(counts['bytes'])} in "
        f"{seconds:.0f} s; {counts['failed']} failed, {counts['kept_lost']} lasting ones broke.",
        f"{sum(happened.values())} events: {faults}.",
        f"The agent's memory: {memory}. The process that was sampled most often lasted at least "
        f"{times.max() - times.min():.0f} s.",
    ]


def write(
    table: pl.DataFrame,
    happened: Mapping[str, int],
    counts: Mapping[str, int],
    wrong: Sequence[str],
    folder: Path,
) -> Path:
    """Writes `endurance.html`; returns its path."""
    look = style.looks(["agent"])["agent"]
    figures = []
    for name, title, meaning in _CHARTS:
        known = table.filter(pl.col(name).is_not_null())
        line = Series(name, look, known["time_s"].to_list(), known[name].cast(pl.Float64).to_list())
        x, y = Axis("time", "s"), Axis(meaning.partition(";")[0], least=0.0)
        figures.append(
            Chart("Over time", name, title, meaning, x, y, (Panel((line,)),), linked="time")
        )
    lines = [*sentences(table, happened, counts), *wrong]
    outcome = "Nothing is lost, and nothing stays." if not wrong else "It did not pass."
    body = Html("").join(Html("<p>{}</p>").format(line) for line in lines)
    text = html.render("outcome.html", "Endurance", figures, outcome=outcome, body=body)
    return html.save(text, figures, folder / "endurance.html")
