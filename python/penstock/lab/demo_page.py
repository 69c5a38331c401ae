# SPDX-License-Identifier: Apache-2.0
"""The page of the demonstration: its tables, and how far each scheme carries."""

from html import escape
from pathlib import Path

import matplotlib as mpl
from matplotlib.ticker import PercentFormatter, ScalarFormatter

from penstock.lab import demo
from penstock.report import figures, page, style
from penstock.report.figures import Drawing


def write(done: demo.Demo, folder: Path) -> None:
    """Writes `demo.html` and `figures/`."""
    with mpl.rc_context(style.MATPLOTLIB):
        drawing = _sweep(done)
    page.save(_render(done, drawing), [drawing], folder / "demo.html")


def _sweep(done: demo.Demo) -> Drawing:
    """The share of stalled requests over the number of clients."""
    figure, axes = figures.plot()
    for index, scheme in enumerate(dict.fromkeys(one.row.scheme for one in done.sweep)):
        own = [point for point in done.sweep if point.row.scheme == scheme]
        colour, dashes = style.series(index)
        axes.plot(
            [point.clients for point in own],
            [100 * point.row.stalled for point in own],
            color=colour,
            linestyle=dashes,
            marker="o",
            markersize=3,
            label=scheme,
        )
    for clients, segments in ((done.limit.first_flows, "2 segments"), (done.limit.flows, "1")):
        axes.axvline(clients, color=style.QUIET.light, linewidth=0.9, linestyle=":")
        axes.annotate(
            f"{segments} ",
            (clients, 1.0),
            xycoords=("data", "axes fraction"),
            va="top",
            ha="right",
            fontsize=style.SMALL,
            color=style.QUIET.light,
        )
    axes.set(xscale="log", xlabel="clients", ylabel="requests that stall")
    axes.set_xticks(_apart(sorted({point.clients for point in done.sweep})))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.set_ylim(bottom=0)
    figures.legend(figure, axes)
    meaning = (
        "The share of the requests that stalled, by how many clients ask at once; beyond the "
        "dotted lines windows of 2 segments, and of 1, no longer fit."
    )
    return figures.drawing(figure, "How far each scheme carries", "sweep", "", meaning)


def _apart(numbers: list[int]) -> list[int]:
    """Those of rising numbers whose labels have room beside each other on a log axis."""
    kept = numbers[:1]
    for number in numbers:
        if number >= 1.5 * kept[-1]:
            kept.append(number)
    return kept


def _render(done: demo.Demo, drawing: Drawing) -> str:
    mixes = "".join(
        page.table(
            title,
            ["scheme", *(column.heading for column in demo.columns(rows))],
            [[row.scheme, *(column.text(row) for column in demo.columns(rows))] for row in rows],
        )
        for title, rows in done.mixes.items()
    )
    schemes, lines = demo.sweep_table(done)
    reached = ", ".join(f"{scheme} {clients}" for scheme, clients in demo.reach(done).items())
    runs = " · ".join(
        f'<a href="{escape(one.name)}/report.html">{escape(one.name)}</a>' for one in done.folders
    )
    body = f"""<header>
<p class="brand">Penstock</p>
<h1>The schemes on real TCP</h1>
<p class="lead">Linux {escape(done.kernel)}, CUBIC, network namespaces; windows rewritten by
penstockd.</p>
<p class="hint">Stalls are told for each repeat; other counts are means of the repeats, completion
times are of all requests.</p>
</header>
<main>
<section><h2>With and without elephants</h2>{mixes}</section>
<section><h2>More and more clients</h2>
{page.table("Requests that stall, by the number of clients", ["clients", *schemes], lines)}
<p>Clients without a stall: {escape(reached)}.</p>
<p>{escape(demo.say_limit(done))}</p></section>
{page.sections([drawing])}
</main>
<footer><p>Every run with its own report: {runs}</p></footer>"""
    return page.document("The schemes on real TCP", body)
