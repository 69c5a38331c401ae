# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: completion times of both runs overlaid, then every number."""

import math
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator

from penstock import folders, tables
from penstock.compare.comparison import Comparison, Line
from penstock.show import curves, drawing, html, style
from penstock.show.drawing import Drawing

_COLUMNS = 2  # of small multiples
_FARTHEST = 12  # so many of the numbers that are apart are listed first
_SERIES = (2, 5)  # blue and vermilion: the easiest two to distinguish


def save(comparison: Comparison, folder: Path) -> Path:
    """Writes compare.json, flows.parquet, compare.html and figures/; returns the page's path.

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
    """Writes the page, and `figures/` next to it; returns the page's path."""
    with mpl.rc_context(style.MATPLOTLIB):
        drawn = list(_draw(comparison))
    return html.save(_render(comparison, drawn), drawn, path, pdf=pdf)


def _draw(comparison: Comparison) -> Iterator[Drawing]:
    """For each group a figure with a small one for each scheme."""
    schemes = list(dict.fromkeys(line.scheme for line in comparison.lines))
    for group in dict.fromkeys(line.group for line in comparison.lines):
        members = comparison.flows.filter(pl.col("group") == group)
        if members["fct_s"].null_count() == members.height:
            continue
        columns = min(_COLUMNS, len(schemes))
        rows = -(-len(schemes) // columns)
        figure = Figure(figsize=(style.WIDTH_INCHES, 1.4 * rows + 0.4), layout="constrained")
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for place, axes in enumerate(grid.flat):
            if place >= len(schemes):
                axes.set_axis_off()
                continue
            flows = members.filter(pl.col("scheme") == schemes[place])
            for index, name in enumerate(comparison.names):
                curve = curves.cdf(flows.filter(pl.col("run") == name))
                colour, dashes = style.series(_SERIES[index])
                axes.step(*curve, where="post", color=colour, linestyle=dashes, label=name)
            axes.set_title(drawing.shortened(schemes[place], 24 // columns), loc="left", pad=2)
            axes.set(xscale="log", ylim=(0, 1.02))
            axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
        drawing.label_log(
            grid.flat[0].xaxis, EngFormatter("s", sep=" "), most=2 if columns > 1 else 5
        )
        drawing.legend(figure, grid.flat[0])
        figure.supxlabel("flow completion time", fontsize=9)
        figure.supylabel("share of flows", fontsize=9)
        meaning = (
            "The share of the flows that took at most this long: "
            "where the two lines lie on each other, the runs agree."
        )
        yield drawing.drawing(figure, "Flow completion times", f"compare-{group}", group, meaning)


def _render(comparison: Comparison, drawn: list[Drawing]) -> str:
    counted = comparison.as_json()
    first, second = map(escape, comparison.names)
    tables = "".join(
        _table(comparison, scheme, group, list(lines))
        for (scheme, group), lines in groupby(
            comparison.lines, lambda line: (line.scheme, line.group)
        )
    )
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>{escape(comparison.title)}</h1>
<p class="lead">{second} compared with {first}: {counted["agree"]} of {counted["of"]} numbers agree,
times and rates within 15 %, counts and tails within 25 %.</p>
</header>
<main>
{_apart(comparison)}
<div class="columns">{html.sections(drawn)}</div>
<section><h2>Every number</h2>
<p class="hint">The ratio is that of {second} to {first}, bold where the two are apart.</p>
<div class="columns">{tables}</div></section>
</main>"""
    return html.document(f"{comparison.title} · compared", body)


def _apart(comparison: Comparison) -> str:
    """What does not agree, the farthest apart first."""
    lines = [line for line in comparison.lines if line.agrees is False]
    lines.sort(key=lambda line: -abs(math.log(line.ratio)) if line.ratio else -math.inf)
    if not lines:
        return ""
    rows = [
        (f"{line.scheme}, {line.group}: {line.measure}", *_texts(line))
        for line in lines[:_FARTHEST]
    ]
    about = f"The {_FARTHEST} farthest of {len(lines)}." if len(lines) > _FARTHEST else ""
    table = html.table("", ("number", *comparison.names, "ratio"), rows, about)
    return f"<section><h2>What differs</h2>{table}</section>"


def _table(comparison: Comparison, scheme: str, group: str, lines: list[Line]) -> str:
    rows = [(line.measure, *_texts(line)) for line in lines if line.agrees is not None]
    return html.table(scheme, ("", *comparison.names, "ratio"), rows, group)


def _texts(line: Line) -> tuple[str, str, str]:
    """Both values and their ratio."""
    first, second, ratio, verdict = line.shown()
    if line.agrees is False:
        ratio = html.Html(f"<b>{escape(verdict if line.ratio is None else ratio)}</b>")
    return first, second, ratio
