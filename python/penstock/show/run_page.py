# SPDX-License-Identifier: Apache-2.0
"""The page of a run: its findings, figures and summary tables."""

from pathlib import Path
from typing import Any

import polars as pl

from penstock import missing, provenance, units
from penstock.results import Results
from penstock.show import (
    html,
    reasons,
    replay,
    run_charts,
    sentences,
    style,
    summary_table,
    timelines,
    topology,
    topology_drawing,
)
from penstock.show.charts import Figure
from penstock.show.html import Cell, Column, Html
from penstock.show.summary_table import Block


def write(run: Results, path: Path, *, pdf: bool = False) -> Path:
    """Writes the page and, if `pdf`, `figures/` next to it; returns the page's path."""
    figures = run_charts.figures(run)
    return html.save(render(run, figures), figures, path, pdf=pdf)


def render(run: Results, figures: list[Figure]) -> str:
    """The page as text."""
    summary, seeds = run.summary, len(run.summary["seeds"])
    flows, burst = timelines.timelines(run), replay.replay(run)
    scripts: dict[str, Any] = {}
    if burst:
        scripts["replay"] = burst
    if flows:
        scripts["timelines"] = [flow.as_json() for flow in flows]
    intervals = (
        f"Numbers are means of {seeds} seeds, ± the half-width of the 95 % confidence interval; "
        "where fewer seeds have a number, their count follows it."
    )
    return html.render(
        "run.html",
        summary["scenario"]["title"],
        figures,
        style.looks(result["scheme"] for result in summary["results"]),
        scripts,
        flows[0].charts if flows else (),
        title=summary["scenario"]["title"],
        lead=sentences.scenario(summary, run.info.get("substrate", "sim")),
        about=summary["scenario"].get("about", ""),
        findings=[
            *sentences.findings(summary["results"]),
            *reasons.sentences(summary["results"]),
        ],
        unfinished=missing.UNFINISHED,
        intervals=intervals if seeds > 1 else "",
        tables=[_table(block) for block in summary_table.blocks(summary, is_detailed=True)],
        info=run.info,
        effort=_effort(run),
        origin=provenance.text(run.info),
        topology=_topology(run),
        why=reasons.SECTION,
        replay={"port": _recorded_port(run), "schemes": list(burst["schemes"])} if burst else None,
        timeline={
            "count": units.count(len(flows)),
            "flows": units.count(run.flows.filter(seed=run.summary["seeds"][0]).height),
            "charts": flows[0].charts,
        }
        if flows
        else None,
    )


def _topology(run: Results) -> topology_drawing.Picture | None:
    fabric = topology.fabric(run.scenario)
    if fabric is None:
        return None
    dropped = run.ports.group_by("port").agg(pl.col("drops").sum()).filter(pl.col("drops") > 0)
    worst = dropped.sort("drops", "port", descending=[True, False])["port"].head(1).to_list()
    return topology_drawing.picture(fabric, worst, "where most packets were dropped" * bool(worst))


def _recorded_port(run: Results) -> str:
    packets = run.summary["scenario"].get("measure", {}).get("packets", {})
    ports = list(run.summary["results"][0]["ports"])
    return str(packets.get("port") or (ports[0] if ports else "port"))


def notebook(run: Results) -> str:
    """The summary tables alone, without script and style."""
    return html.fragment(
        "notebook.html",
        title=run.summary["scenario"]["title"],
        lead=sentences.scenario(run.summary, run.info.get("substrate", "sim")),
        blocks=[
            {
                "title": block.title,
                "about": block.about,
                "headings": ["scheme", *(column.heading for column in block.columns)],
                "rows": [
                    [scheme, *(column.with_spread(row, half) for column in block.columns)]
                    for scheme, row, half in zip(block.schemes, block.rows, block.ci95, strict=True)
                ],
            }
            for block in summary_table.blocks(run.summary, is_detailed=True)
        ],
    )


def _table(block: Block) -> Html:
    best = [column.best(block.rows) for column in block.columns]
    headings = [Column(column.heading, column.metric.meaning) for column in block.columns]
    rows = [
        [
            Cell(scheme),
            *(
                Cell(
                    column.text(block.rows[number]),
                    _sorted_by(column, block.rows[number]),
                    best=number in best[place],
                    spread=_half_width(column, block, number),
                )
                for place, column in enumerate(block.columns)
            ),
        ]
        for number, scheme in enumerate(block.schemes)
    ]
    return html.table(
        block.title, ["scheme", *headings], rows, block.about, style.looks(block.schemes)
    )


def _sorted_by(column: summary_table.Column, row: summary_table.Values) -> float | None:
    """The number of a cell, but none where it does not count: it is neither sorted nor copied."""
    return None if column.text(row) == missing.UNFINISHED else column.value(row)


def _half_width(column: summary_table.Column, block: Block, number: int) -> str:
    half = block.ci95[number]
    value = column.value(half) if half else None
    hidden = value is None or column.text(block.rows[number]) == missing.UNFINISHED
    return "" if hidden else f"± {column.form(value)}"


def _effort(run: Results) -> str:
    """What the run cost, or on what it ran if not in the simulator."""
    costs = [result["performance"] for result in run.summary["results"]]
    wall = units.seconds(sum(cost["wall_s"] for cost in costs))
    if run.info.get("substrate", "sim") == "sim":
        hops = units.count(sum(cost["packet_hops"] for cost in costs))
        return f"{hops} packet-hops in {wall} of computing, per seed"
    not_emulated = ", ".join(run.info["not_emulated"]) or "nothing"
    busy = run.info["busy"]
    return (
        f"real TCP of Linux {run.info['kernel']} in network namespaces, {wall} per repeat; "
        f"not emulated: {not_emulated}"
        + (f"; the machine was busy in: {'; '.join(busy)}" if busy else "")
        + "".join(f"; {warning}" for warning in run.info.get("warnings", ()))
    )
