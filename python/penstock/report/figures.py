# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, each drawn once: for the page, and as SVG and PDF for papers."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from penstock.report import data, style
from penstock.results import Run

PORTS = 3
"""Most ports whose queue is drawn: those that dropped most, then the longest queues."""


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
    with mpl.rc_context(style.MATPLOTLIB):
        yield from _completion_times(run.flows, schemes, groups)
        yield from _goodputs(run.flows, schemes, groups)
        yield from _queues(run, schemes)
        yield from _drops(run.ports, schemes)


def _completion_times(
    flows: pl.DataFrame, schemes: list[str], groups: list[str]
) -> Iterator[Drawing]:
    for group in groups:
        members = flows.filter(pl.col("traffic") == group)
        if members["fct_s"].null_count() == members.height:
            continue
        figure, axes = _axes()
        slowest = members["fct_s"].max()
        for index, scheme in enumerate(schemes):
            curve = data.cdf(members.filter(pl.col("scheme") == scheme))
            x, y = [*curve.x, slowest], [*curve.y, curve.y[-1] if len(curve.y) else 0.0]
            colour, dashes = style.series(index)
            axes.step(x, y, where="post", color=colour, linestyle=dashes, label=scheme)
        axes.set(
            xscale="log", ylim=(0, 1.02), xlabel="flow completion time", ylabel="share of flows"
        )
        axes.xaxis.set_major_formatter(EngFormatter("s", sep=" "))
        _legend(figure, axes)
        meaning = "Further left is faster; a curve that ends below 1 left flows unfinished."
        yield drawing(figure, "Flow completion times", f"fct-{group}", group, meaning)


def _goodputs(flows: pl.DataFrame, schemes: list[str], groups: list[str]) -> Iterator[Drawing]:
    for group in groups:
        members = flows.filter(pl.col("traffic") == group)
        figure, axes = _axes()
        for index, scheme in enumerate(schemes):
            curve = data.sorted_goodput(members.filter(pl.col("scheme") == scheme))
            colour, dashes = style.series(index)
            axes.plot(*curve, color=colour, linestyle=dashes, label=scheme)
        rates = members["goodput_bps"].drop_nulls()
        slow, fast = rates.quantile(0.02) or 0.0, rates.max() or 0.0
        wide = 0 < slow < fast / 50  # type: ignore[operator]
        axes.set(xlim=(0, 100), xlabel="flows, slowest first (%)", ylabel="goodput (Mb/s)")
        if wide:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        else:
            axes.set_ylim(bottom=0)
        _legend(figure, axes)
        meaning = "A flat line is a fair share for all; one that sinks to the left starves flows."
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
            axes.set_title(scheme, loc="left", fontsize=8, pad=2, color=colour, weight="bold")
            axes.yaxis.set_major_locator(MaxNLocator(3))
            axes.set_ylim(bottom=0)
            axes.margins(x=0)
        figure.supylabel("queue (kB)", fontsize=9)
        rows[-1].set_xlabel("time (s)")
        meaning = "The line is the mean of each interval, the band its shortest and longest queue."
        if (known := run.queues["port"].n_unique()) > PORTS:
            meaning += f" {PORTS} of {known} ports are drawn: those that dropped most."
        yield drawing(figure, "Queue over time", f"queue-{port}", port, meaning)


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
    figure, axes = _axes(height=0.26 * len(schemes) + 1.0)
    left = dict.fromkeys(schemes, 0.0)
    for place, reason in enumerate(reasons):
        counts = dict(by_scheme.select("scheme", reason).iter_rows())
        axes.barh(
            schemes,
            [counts[scheme] for scheme in schemes],
            left=list(left.values()),
            color=style.SERIES[(place + 1) % len(style.SERIES)].light,
            height=0.62,
            label=reason.removeprefix("drops_").replace("_", " "),
        )
        left = {scheme: left[scheme] + counts[scheme] for scheme in schemes}
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0, labelcolor=style.TEXT.light, labelsize=9)
    axes.set_xlabel("packets dropped at the measured ports")
    _legend(figure, axes)
    meaning = "Each packet that did not fit, by the reason why the port let it go."
    yield drawing(figure, "Drops", "drops", "", meaning)


def _axes(height: float = 3.0) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(style.WIDTH_INCHES, height), layout="constrained")
    return figure, figure.subplots()


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper left", ncols=4, handlelength=2.2, columnspacing=1.4
    )


def drawing(figure: Figure, section: str, name: str, title: str, meaning: str) -> Drawing:
    """The figure as files and page have it; `name` becomes the files' name."""
    svg, pdf = io.StringIO(), io.BytesIO()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # or both files would be laid out anew, at twice the time
    figure.savefig(
        svg,
        format="svg",
        facecolor=style.GROUND,
        transparent=False,
        metadata={"Date": None, "Creator": "Penstock"},
    )
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Creator": "Penstock"})
    file_name = re.sub(r"[^\w.]+", "-", name)
    return Drawing(section, file_name, title, meaning, svg.getvalue(), pdf.getvalue())
