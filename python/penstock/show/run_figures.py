# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, each drawn once: for the page, and as SVG and PDF for papers."""

from collections.abc import Iterator

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from penstock import units
from penstock.results import Results
from penstock.show import curves, style
from penstock.show.drawing import Drawing, drawing, label_log, legend, plot, shortened

PORTS = 3
"""Most ports whose queue is drawn: those that dropped most, then the longest queues."""


def draw(run: Results) -> Iterator[Drawing]:
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
            curve = curves.cdf(members.filter(pl.col("scheme") == scheme))
            x, y = [*curve.x, slowest], [*curve.y, curve.y[-1] if len(curve.y) else 0.0]
            colour, dashes = style.series(index)
            axes.step(x, y, where="post", color=colour, linestyle=dashes, label=scheme)
        axes.set(
            xscale="log", ylim=(0, 1.02), xlabel="flow completion time", ylabel="share of flows"
        )
        label_log(axes.xaxis, EngFormatter("s", sep=" "))
        legend(figure, axes)
        meaning = (
            "The share of the flows that took at most this long: further left is faster, "
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
            curve = curves.sorted_goodput(members.filter(pl.col("scheme") == scheme))
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


def _queues(run: Results, schemes: list[str]) -> Iterator[Drawing]:
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
            queue = curves.envelope(samples.filter(pl.col("scheme") == scheme))
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


def _of_queues(run: Results) -> str:
    parts = ["The line is the mean of each interval, the band its shortest and longest queue"]
    if (known := run.queues["port"].n_unique()) > PORTS:
        parts.append(f"of {known} ports those {PORTS} are drawn that dropped most")
    if run.queues["seed"].n_unique() > 1:
        parts.append("of the seeds it is the first")
    return "; ".join(parts) + "."


def _busiest(run: Results) -> list[str]:
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
