# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: completion times of both runs overlaid, then every number."""

from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from penstock.compare import Comparison, Line
from penstock.report import data, figures, page, style
from penstock.report.figures import Drawing

_COLUMNS = 2  # of small multiples
_SERIES = (2, 5)  # blue and vermilion: the two that are told apart best


def write(comparison: Comparison, folder: Path) -> None:
    """Writes `compare.html` and `figures/` into the folder."""
    with mpl.rc_context(style.MATPLOTLIB):
        drawn = list(_draw(comparison))
    (folder / "figures").mkdir()
    for drawing in drawn:
        drawing.save(folder / "figures")
    (folder / "compare.html").write_text(_render(comparison, drawn), encoding="utf-8")


def _draw(comparison: Comparison) -> Iterator[Drawing]:
    """For each group a figure with a small one for each scheme."""
    schemes = list(dict.fromkeys(line.scheme for line in comparison.lines))
    for group in dict.fromkeys(line.group for line in comparison.lines):
        members = comparison.flows.filter(pl.col("traffic") == group)
        if members["fct_s"].null_count() == members.height:
            continue
        rows = -(-len(schemes) // _COLUMNS)
        figure = Figure(figsize=(style.WIDTH_INCHES, 1.5 * rows + 0.6), layout="constrained")
        grid = figure.subplots(rows, _COLUMNS, sharex=True, sharey=True, squeeze=False)
        for place, axes in enumerate(grid.flat):
            if place >= len(schemes):
                axes.set_axis_off()
                continue
            own = members.filter(pl.col("scheme") == schemes[place])
            for index, name in enumerate(comparison.names):
                curve = data.cdf(own.filter(pl.col("run") == name))
                colour, dashes = style.series(_SERIES[index])
                axes.step(*curve, where="post", color=colour, linestyle=dashes, label=name)
            axes.set_title(schemes[place], loc="left", fontsize=8, pad=2)
            axes.set(xscale="log", ylim=(0, 1.02))
            axes.xaxis.set_major_formatter(EngFormatter("s", sep=" "))
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2)
        figure.supxlabel("flow completion time", fontsize=9)
        figure.supylabel("share of flows", fontsize=9)
        meaning = "Where the two lines lie on each other the runs agree."
        yield figures.drawing(figure, "Flow completion times", f"compare-{group}", group, meaning)


def _render(comparison: Comparison, drawn: list[Drawing]) -> str:
    counted = comparison.as_json()
    first, second = map(escape, comparison.names)
    tables = "".join(
        _table(comparison, scheme, group, list(lines))
        for (scheme, group), lines in groupby(comparison.lines, lambda one: (one.scheme, one.group))
    )
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>{escape(comparison.title)}</h1>
<p class="lead">{second} held against {first}: {counted["agree"]} of {counted["of"]} numbers agree,
times and rates within 15 %, counts and tails within 25 %.</p>
</header>
<main>
<div class="columns">{page.sections(drawn)}</div>
<section><h2>Every number</h2><div class="tables">{tables}</div></section>
</main>"""
    return page.document(f"{comparison.title} · compared", body)


def _table(comparison: Comparison, scheme: str, group: str, lines: list[Line]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in (*comparison.names, "ratio", ""))
    body = ""
    for line in lines:
        first, second, ratio, verdict = map(escape, line.shown())
        mark = f"<b>{verdict}</b>" if line.agrees is False else verdict
        cells = "".join(f"<td>{text}</td>" for text in (first, second, ratio, mark))
        body += f'<tr><th scope="row">{escape(line.measure)}</th>{cells}</tr>\n'
    return f"""<div class="scroll"><table>
<caption><b>{escape(scheme)}</b> {escape(group)}</caption>
<thead><tr><th></th>{head}</tr></thead>
<tbody>
{body}</tbody>
</table></div>
"""
