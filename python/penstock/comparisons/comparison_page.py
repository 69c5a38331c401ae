# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: settings, completion times of the runs overlaid, every number."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import polars as pl

from penstock import folders, tables, units
from penstock.comparisons.comparison import Comparison, Line
from penstock.show import charts as figures
from penstock.show import html, run_charts, style
from penstock.show.charts import Axis, Chart, Panel
from penstock.show.html import Cell, Html

_FARTHEST = 12  # so many of the numbers that are apart are listed first
_DASHES = (0, 1, 3, 2)  # of the runs; the colour is the scheme's


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
    charts = figures.distinct(_charts(comparison))
    by_table = groupby(comparison.lines, lambda line: (line.run, line.scheme, line.group))
    text = html.render(
        "comparison.html",
        f"{comparison.title} · compared",
        charts,
        title=comparison.title,
        names=comparison.names,
        sentences=comparison.sentences(),
        settings=_settings(comparison),
        apart=_apart(comparison),
        tables=[_table(comparison, *of, list(lines)) for of, lines in by_table],
    )
    return html.save(text, charts, path, pdf=pdf)


def _charts(comparison: Comparison) -> Iterator[Chart]:
    """For each group a chart with a panel for each scheme."""
    schemes = comparison.flows["scheme"].unique(maintain_order=True).to_list()
    looks = style.looks(schemes)
    for group in dict.fromkeys(line.group for line in comparison.lines):
        members = comparison.flows.filter(pl.col("group") == group)
        if members["fct_s"].null_count() == members.height:
            continue
        slowest = units.number(members["fct_s"].max())
        is_open = members["fct_s"].null_count() > 0
        panels = []
        for scheme in schemes:
            flows = members.filter(pl.col("scheme") == scheme)
            lines = []
            for number, name in enumerate(comparison.names):
                its = flows.filter(pl.col("run") == name)
                if its.is_empty():
                    continue
                look = looks[scheme]._replace(dash=_DASHES[number % len(_DASHES)])
                line = run_charts.distribution(name, its, look, slowest)
                lines.append(replace(line, scheme=scheme))
            if lines:
                panels.append(Panel(tuple(lines), title=scheme, scheme=scheme))
        yield Chart(
            *("Flow completion times", f"compare-{group}", group),
            "Share of flows completed within a time, a line for each run: where they lie on each "
            "other, the runs agree, and one that ends in a ring below 100 % leaves flows "
            "unfinished.",
            Axis(
                "flow completion time", "s", log=True, greatest=1.4 * slowest if is_open else None
            ),
            Axis("share of flows", "%", least=0.0, greatest=1.0),
            tuple(panels),
            linked="fct",
            is_grid=True,
        )


def _settings(comparison: Comparison) -> Html | None:
    rows = [[setting.key, *setting.values] for setting in comparison.settings]
    return html.table("", ("setting", *comparison.names), rows) if rows else None


def _apart(comparison: Comparison) -> Html | None:
    """What does not agree, what is no chance first, then the farthest apart."""
    lines = [line for line in comparison.lines if line.agrees is False]
    lines.sort(key=lambda line: (line.significant is False, -_distance(line)))
    if not lines:
        return None
    is_one = len(comparison.names) == 2
    rows: list[tuple[str | Cell, ...]] = [
        (
            f"{line.scheme}, {line.group}: {line.measure}",
            *(() if is_one else (line.run,)),
            *_cells(line),
        )
        for line in lines[:_FARTHEST]
    ]
    about = f"The {_FARTHEST} farthest of {len(lines)}." if len(lines) > _FARTHEST else ""
    names = comparison.names if is_one else ("run", comparison.names[0], "there")
    return html.table("", ("number", *names, "ratio", "chance?"), rows, about)


def _distance(line: Line) -> float:
    return abs(math.log(line.ratio)) if line.ratio else math.inf


def _table(comparison: Comparison, run: str, scheme: str, group: str, lines: list[Line]) -> Html:
    rows: list[tuple[str | Cell, ...]] = [
        (line.measure, *_cells(line)) for line in lines if line.is_shown
    ]
    return html.table(scheme, ("", comparison.names[0], run, "ratio", "chance?"), rows, group)


def _cells(line: Line) -> tuple[Cell, ...]:
    """Both values, their ratio, and whether chance explains it."""
    first, second, ratio, verdict = line.shown()
    shown = verdict if line.agrees is False and line.ratio is None else ratio
    chance = {None: "", True: "no", False: "maybe"}[line.significant]
    return (
        Cell(first, line.first),
        Cell(second, line.second),
        Cell(shown, line.ratio, best=line.agrees is False),
        Cell(chance, best=line.significant is True),
    )
