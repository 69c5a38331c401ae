# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, each drawn once: for the page, and as SVG and PDF for papers."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    FixedLocator,
    Formatter,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
)

from penstock import units
from penstock.report import data, style
from penstock.results import Run

PORTS = 3
"""Most ports whose queue is drawn: those that dropped most, then the longest queues."""

# Of a legend, in ems: the length of a line beside its name, and the room between columns.
_HANDLE, _GAP = 2.2, 1.2
_FEW = 6  # names that may have a line each


@dataclass(frozen=True)
class Drawing:
    """A figure with what the page says about it."""

    section: str
    name: str
    """Its file's name, without suffix."""
    title: str
    meaning: str
    """One sentence: how to read it."""
    svg: str
    pdf: bytes

    def save(self, folder: Path) -> None:
        """Writes `NAME.svg` and `NAME.pdf`."""
        (folder / f"{self.name}.svg").write_text(self.svg, encoding="utf-8")
        (folder / f"{self.name}.pdf").write_bytes(self.pdf)


def draw(run: Run) -> Iterator[Drawing]:
    """All figures of a run, in the order of the page."""
    schemes = [result["scheme"] for result in run.summary["results"]]
    groups = list(run.summary["results"][0]["groups"])
    members = {group: run.members(group) for group in groups}
    with mpl.rc_context(style.MATPLOTLIB):
        yield from _completion_times(members, schemes)
        yield from _goodputs(members, schemes)
        yield from _queues(run, schemes)
        yield from _drops(run.ports, schemes)


def _completion_times(groups: dict[str, pl.DataFrame], schemes: list[str]) -> Iterator[Drawing]:
    for group, members in groups.items():
        if members["fct_s"].null_count() == members.height:
            continue
        figure, axes = plot()
        slowest = members["fct_s"].max()
        for index, scheme in enumerate(schemes):
            curve = data.cdf(members.filter(pl.col("scheme") == scheme))
            x, y = [*curve.x, slowest], [*curve.y, curve.y[-1] if len(curve.y) else 0.0]
            colour, dashes = style.series(index)
            axes.step(x, y, where="post", color=colour, linestyle=dashes, label=scheme)
        axes.set(
            xscale="log", ylim=(0, 1.02), xlabel="flow completion time", ylabel="share of flows"
        )
        label_log(axes.xaxis, EngFormatter("s", sep=" "))
        legend(figure, axes)
        meaning = (
            "The share of the flows that took at most so long: further left is faster, "
            "and a curve that ends below 1 left flows unfinished."
        )
        yield drawing(figure, "Flow completion times", f"fct-{group}", group, meaning)


def _goodputs(groups: dict[str, pl.DataFrame], schemes: list[str]) -> Iterator[Drawing]:
    for group, members in groups.items():
        rates = members["goodput_bps"].drop_nulls()
        if rates.is_empty():
            continue
        figure, axes = plot()
        for index, scheme in enumerate(schemes):
            curve = data.sorted_goodput(members.filter(pl.col("scheme") == scheme))
            colour, dashes = style.series(index)
            axes.plot(*curve, color=colour, linestyle=dashes, label=scheme)
        slow, fast = rates.quantile(0.02) or 0.0, rates.max() or 0.0
        wide = 0 < slow < fast / 50  # type: ignore[operator]
        axes.set(xlim=(0, 100), xlabel="flows, slowest first (%)", ylabel="goodput (Mb/s)")
        if wide:
            axes.set_yscale("log")
            label_log(axes.yaxis, FuncFormatter(lambda value, _: f"{value:g}"))
        else:
            axes.set_ylim(bottom=0)
        legend(figure, axes)
        meaning = (
            "The flows in order of what arrived of each: "
            "a flat line is a fair share for all, one that sinks to the left starves flows."
        )
        yield drawing(figure, "Goodput of each flow", f"goodput-{group}", group, meaning)


def _queues(run: Run, schemes: list[str]) -> Iterator[Drawing]:
    if run.queues.is_empty():
        return
    first_seed = run.queues.filter(pl.col("seed") == run.queues["seed"].min())
    for port in _busiest(run):
        samples = first_seed.filter(pl.col("port") == port)
        figure = Figure(
            figsize=(style.WIDTH_INCHES, 0.62 * len(schemes) + 0.5), layout="constrained"
        )
        rows = figure.subplots(len(schemes), sharex=True, sharey=True, squeeze=False)[:, 0]
        for index, (axes, scheme) in enumerate(zip(rows, schemes, strict=True)):
            queue = data.envelope(samples.filter(pl.col("scheme") == scheme))
            colour, _ = style.series(index)
            axes.fill_between(
                queue.time, queue.least, queue.greatest, color=colour, alpha=0.3, lw=0
            )
            axes.plot(queue.time, queue.mean, color=colour, linewidth=0.9)
            axes.set_title(shortened(scheme, 32), loc="left", pad=2, weight="bold")
            axes.yaxis.set_major_locator(MaxNLocator(3))
            axes.set_ylim(bottom=0)
            axes.margins(x=0)
        figure.supylabel("queue (kB)", fontsize=9)
        rows[-1].set_xlabel("time (s)")
        yield drawing(figure, "Queue over time", f"queue-{port}", port, _of_queues(run))


def _of_queues(run: Run) -> str:
    parts = ["The line is the mean of each interval, the band its shortest and longest queue"]
    if (known := run.queues["port"].n_unique()) > PORTS:
        parts.append(f"of {known} ports those {PORTS} are drawn that dropped most")
    if run.queues["seed"].n_unique() > 1:
        parts.append("of the seeds it is the first")
    return "; ".join(parts) + "."


def _busiest(run: Run) -> list[str]:
    queues = run.queues.group_by("port").agg(pl.col("bytes").mean())
    drops = run.ports.group_by("port").agg(pl.col("drops").sum())
    order = queues.join(drops, on="port", how="left").sort(
        "drops", "bytes", "port", descending=[True, True, False], nulls_last=True
    )
    return order["port"].head(PORTS).to_list()


def _drops(ports: pl.DataFrame, schemes: list[str]) -> Iterator[Drawing]:
    reasons = [name for name in ports.columns if name.startswith("drops_")]
    per_seed = pl.col("seed").n_unique()
    by_scheme = ports.group_by("scheme").agg(pl.col(reasons).sum() / per_seed)
    reasons = [name for name in reasons if by_scheme[name].sum() > 0]
    if not reasons:
        return
    figure, axes = plot(height=0.26 * len(schemes) + 0.6)
    left = dict.fromkeys(schemes, 0.0)
    for place, reason in enumerate(reasons):
        counts = dict(by_scheme.select("scheme", reason).iter_rows())
        axes.barh(
            range(len(schemes)),
            [counts[scheme] for scheme in schemes],
            left=list(left.values()),
            color=style.SERIES[(place + 1) % len(style.SERIES)].light,
            height=0.62,
            label=reason.removeprefix("drops_").replace("_", " "),
        )
        left = {scheme: left[scheme] + counts[scheme] for scheme in schemes}
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0, labelcolor=style.TEXT.light)
    axes.set_yticks(range(len(schemes)), [shortened(scheme, 24) for scheme in schemes])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: units.count(value)))
    axes.set_xlabel("packets dropped")
    legend(figure, axes)
    meaning = "Packets that the measured ports let go, by the reason why."
    yield drawing(figure, "Drops", "drops", "", meaning)


def plot(height: float = 2.4) -> tuple[Figure, Axes]:
    """An empty plot of the usual width; the height is in inches, and `legend` adds to it."""
    figure = Figure(figsize=(style.WIDTH_INCHES, height), layout="constrained")
    return figure, figure.subplots()


def legend(figure: Figure, axes: Axes) -> None:
    """Names the lines above the plot, in as many columns as fit, and adds the room for it."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    most = 40 if len(labels) <= _FEW else 18  # so that two fit beside each other
    labels = [shortened(label, most) for label in labels]
    ems = figure.get_figwidth() * 72 / style.SMALL
    widest = 0.53 * max(map(len, labels)) + _HANDLE + 0.8 + _GAP
    columns = max(1, min(4, len(labels), int(ems / widest)))
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + rows * 1.5 * style.SMALL / 72)
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=columns,
        handlelength=_HANDLE,
        columnspacing=_GAP,
    )


def label_log(axis: Axis, form: Formatter, most: int = 5) -> None:
    """Labels some powers of ten of a logarithmic axis, or what has room where there is only one.

    Comes after the drawing, which tells how far the axis goes.
    """
    least, greatest = sorted(axis.get_view_interval())
    for locator in (LogLocator(numticks=most), MaxNLocator(most - 1)):
        ticks = [tick for tick in locator.tick_values(least, greatest) if least <= tick <= greatest]
        if len(ticks) > 1:
            break
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(form)
    axis.set_minor_formatter(NullFormatter())


def shortened(name: str, most: int) -> str:
    """A name with its middle left out where it is too long for a figure."""
    head = most - most // 3 - 1
    return name if len(name) <= most else f"{name[:head]}…{name[-(most // 3) :]}"


def drawing(figure: Figure, section: str, name: str, title: str, meaning: str) -> Drawing:
    """The figure as files and page have it; `name` becomes the files' name."""
    svg, pdf = io.StringIO(), io.BytesIO()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # or both files would be laid out anew, at twice the time
    # Not by `savefig`, which would draw everything once more for each file.
    figure.set_facecolor(style.GROUND)
    canvas: Any = FigureCanvasSVG(figure)
    canvas.print_svg(svg, metadata={"Date": None, "Creator": "Penstock"})
    figure.set_facecolor("none")
    canvas = FigureCanvasPdf(figure)
    canvas.print_pdf(pdf, metadata={"CreationDate": None, "Creator": "Penstock"})
    file_name = re.sub(r"[^\w.]+", "-", name)
    return Drawing(section, file_name, title, meaning, svg.getvalue(), pdf.getvalue())
