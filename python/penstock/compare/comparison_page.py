# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: completion times of both runs overlaid, then every number."""

import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import polars as pl

from penstock import folders, tables
from penstock.compare.comparison import Comparison, Line
from penstock.show import curves, html, style
from penstock.show.charts import Axis, Chart, Panel, Series
from penstock.show.html import Cell, Html

_FARTHEST = 12  # so many of the numbers that are apart are listed first


def save(comparison: Comparison, folder: Path) -> Path:
    """Writes compare.json, flows.parquet, and compare.html; returns the page's path.

    Raises:
        ScenarioError: the folder holds something else.
    """
    folders.check_target(folder, folders.COMPARISON)
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(comparison.flows, folder / "flows.parquet")
    folders.write_json(folder / folders.COMPARISON.file, comparison.as_json())
    return write(comparison, folder / folders.COMPARISON.page)


def redraw(folder: Path, path: Path, *, pdf: bool = False) -> Path:
    """Writes the page of a comparison's folder again.

    Raises:
        RunError: the folder is damaged.
    """
    return write(Comparison.load(folder), path, pdf=pdf)


def write(comparison: Comparison, path: Path, *, pdf: bool = False) -> Path:
    """Writes the page and, if `pdf`, `figures/` next to it; returns the page's path."""
    charts = list(_charts(comparison))
    by_table = groupby(comparison.lines, lambda line: (line.scheme, line.group))
    text = html.render(
        "comparison.html",
        f"{comparison.title} · compared",
        charts,
        title=comparison.title,
        names=comparison.names,
        counted=comparison.as_json(),
        apart=_apart(comparison),
        tables=[_table(comparison, *of, list(lines)) for of, lines in by_table],
    )
    return html.save(text, charts, path, pdf=pdf)


def _charts(comparison: Comparison) -> Iterator[Chart]:
    """For each group a chart with a panel for each scheme."""
    schemes = list(dict.fromkeys(line.scheme for line in comparison.lines))
    looks = style.looks(schemes)
    for group in dict.fromkeys(line.group for line in comparison.lines):
        members = comparison.flows.filter(pl.col("group") == group)
        if members["fct_s"].null_count() == members.height:
            continue
        panels = []
        for scheme in schemes:
            flows = members.filter(pl.col("scheme") == scheme)
            lines = []
            for number, name in enumerate(comparison.names):
                curve = curves.cdf(flows.filter(pl.col("run") == name))
                look = looks[scheme]._replace(dash=(0, 3)[number])
                lines.append(Series(name, look, [*curve.x], [*curve.y], kind="step", scheme=scheme))
            panels.append(Panel(tuple(lines), title=scheme, scheme=scheme))
        yield Chart(
            *("Flow completion times", f"compare-{group}", group),
            "Share of flows completed within a time, the first run solid and the second dashed: "
            "where the lines lie on each other, the runs agree.",
            Axis("flow completion time", "s", log=True),
            Axis("share of flows", "%", least=0.0, greatest=1.0),
            tuple(panels),
            linked="fct",
            is_grid=True,
        )


def _apart(comparison: Comparison) -> Html | None:
    """What does not agree, the farthest apart first."""
    lines = [line for line in comparison.lines if line.agrees is False]
    lines.sort(key=lambda line: -abs(math.log(line.ratio)) if line.ratio else -math.inf)
    if not lines:
        return None
    rows = [
        (f"{line.scheme}, {line.group}: {line.measure}", *_cells(line))
        for line in lines[:_FARTHEST]
    ]
    about = f"The {_FARTHEST} farthest of {len(lines)}." if len(lines) > _FARTHEST else ""
    return html.table("", ("number", *comparison.names, "ratio"), rows, about)


def _table(comparison: Comparison, scheme: str, group: str, lines: list[Line]) -> Html:
    rows = [(line.measure, *_cells(line)) for line in lines if line.agrees is not None]
    return html.table(scheme, ("", *comparison.names, "ratio"), rows, group)


def _cells(line: Line) -> tuple[Cell, Cell, Cell]:
    """Both values and their ratio."""
    first, second, ratio, verdict = line.shown()
    shown = verdict if line.agrees is False and line.ratio is None else ratio
    return (
        Cell(first, line.first),
        Cell(second, line.second),
        Cell(shown, line.ratio, best=line.agrees is False),
    )
