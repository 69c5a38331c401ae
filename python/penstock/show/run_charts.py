# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, in the order of its page."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl

from penstock import units
from penstock.results import Results
from penstock.show import charts, curves, reasons, style, turns
from penstock.show.charts import Axis, Bars, Chart, Figure, Panel, Series
from penstock.show.style import Look

PORTS = 3
"""Most ports whose queue is drawn: those that dropped most, then the longest queues."""
_PERCENTILES = ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"))
_SECTION = "Flow completion times"

Looks = Mapping[str, Look]


def figures(run: Results) -> list[Figure]:
    """All of them."""
    schemes = [result["scheme"] for result in run.summary["results"]]
    looks = style.looks(schemes)
    groups = run.summary["results"][0]["groups"]
    members = {group: run.members(group) for group in groups}
    return charts.distinct(
        [
            *_job_times(run, looks),
            *completion_times({group: run.planned(group) for group in groups}, looks),
            *reasons.charts(run.summary["results"]),
            *turns.charts(run),
            *_goodputs(members, looks),
            *_queues(run, looks),
            *_drops(run.ports, schemes),
        ]
    )


def completion_times(groups: Mapping[str, pl.DataFrame], looks: Looks) -> Iterator[Chart]:
    """Of each group the distribution of its completion times, and its tail."""
    for group, flows in groups.items():
        if flows["fct_s"].null_count() == flows.height:
            continue
        of_schemes = {name: flows.filter(pl.col("scheme") == name) for name in looks}
        slowest = units.number(flows["fct_s"].max())
        is_open = flows["fct_s"].null_count() > 0
        time = Axis(
            "flow completion time", "s", log=True, greatest=1.4 * slowest if is_open else None
        )
        lines = [
            distribution(name, of, looks[name], slowest)
            for name, of in of_schemes.items()
            if len(of)
        ]
        percent = Axis("share of flows", "%", least=0.0, greatest=1.0)
        yield Chart(
            *(_SECTION, f"fct-{group}", group),
            "Share of flows completed within a time: left is faster, and a curve that ends in a "
            "ring below 100 % leaves flows unfinished.",
            *(time, percent, (Panel(tuple(lines)),)),
            linked=f"fct-{group}",
            guides=_PERCENTILES[:2],
        )
        tails = tuple(_tail(line) for line in lines)
        shares = [share for tail in tails for share in tail.y if share]
        least = 10.0 ** min(math.floor(math.log10(min(shares, default=1.0))), -1)
        yield Chart(
            *(_SECTION, f"fct-{group}-tail", f"{group}: the slow flows"),
            "Share of flows that take longer than a time: each step down is a tenth of the flows, "
            "and a curve that ends in a ring leaves that share unfinished.",
            time,
            Axis("share of flows that take longer", "%", log=True, least=least, greatest=1.0),
            (Panel(tails),),
            linked=f"fct-{group}",
            guides=tuple((1 - share, label) for share, label in _PERCENTILES if 1 - share >= least),
        )


def _job_times(run: Results, looks: Looks) -> Iterator[Chart]:
    """Of each traffic of jobs the distribution of their completion times."""
    for traffic in run.jobs["traffic"].unique(maintain_order=True):
        times = run.planned_jobs(traffic).rename({"time_s": "fct_s"})
        for chart in completion_times({traffic: times}, looks):
            yield replace(
                chart,
                section="Job completion times",
                name=chart.name.replace("fct-", "jct-", 1),
                meaning=chart.meaning.replace("flows", "jobs"),
                x=replace(chart.x, label="job completion time"),
                y=replace(chart.y, label=chart.y.label.replace("flows", "jobs")),
                linked=f"jct-{traffic}",
            )


def distribution(name: str, flows: pl.DataFrame, look: Look, slowest: float) -> Series:
    """The share of flows completed within a time, to the slowest of all that are drawn."""
    curve = curves.cdf(flows)
    lacking = flows["fct_s"].null_count()
    x, y = list(curve.x), list(curve.y) or [0.0]
    return Series(
        name,
        look,
        [*x, 1.4 * slowest if lacking else slowest],
        [*y, y[-1]] if x else y,
        kind="step",
        open_end=f"{units.count(lacking)} of {units.count(flows.height)} unfinished"
        if lacking
        else "",
    )


def _tail(line: Series) -> Series:
    """The complement of a distribution."""
    return replace(line, y=[round(1 - (share or 0.0), 9) for share in line.y])


def _goodputs(groups: Mapping[str, pl.DataFrame], looks: Looks) -> Iterator[Chart]:
    for group, flows in groups.items():
        rates = flows["goodput_bps"].drop_nulls()
        if rates.is_empty():
            continue
        slow, fast = units.number(rates.quantile(0.02)), units.number(rates.max())
        is_log = 0 < slow < fast / 50
        series = []
        for name, look in looks.items():
            curve = curves.sorted_goodput(flows.filter(pl.col("scheme") == name))
            if len(curve.x):
                series.append(Series(name, look, [*curve.x], [*curve.y]))
        yield Chart(
            *("Goodput of each flow", f"goodput-{group}", group),
            "Goodput of the flows, sorted: flat is fair, and a dip at the left is starved flows.",
            Axis("flows, slowest first", "%", least=0.0, greatest=1.0),
            Axis("goodput", "b/s", log=is_log, least=None if is_log else 0.0),
            (Panel(tuple(series)),),
        )


def _queues(run: Results, looks: Looks) -> Iterator[Chart]:
    if run.queues.is_empty():
        return
    first_seed = run.queues.filter(pl.col("seed") == run.summary["seeds"][0])
    for port in _busiest(run):
        samples = first_seed.filter(pl.col("port") == port)
        panels = []
        for name, look in looks.items():
            queue = curves.envelope(samples.filter(pl.col("scheme") == name))
            low, high = [*queue.least], [*queue.greatest]
            line = Series(name, look, [*queue.time], [*queue.mean], low=low, high=high)
            panels.append(Panel((line,), title=name, scheme=name))
        yield Chart(
            *("Queue over time", f"queue-{port}", port, _of_queues(run)),
            *(Axis("time", "s"), Axis("queue", "B", least=0.0), tuple(panels)),
            linked="time",
        )


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


def _drops(ports: pl.DataFrame, schemes: list[str]) -> Iterator[Bars]:
    reasons = [name for name in ports.columns if name.startswith("drops_")]
    per_seed = pl.col("seed").n_unique()
    by_scheme = ports.group_by("scheme").agg(pl.col(reasons).sum() / per_seed)
    reasons = [name for name in reasons if by_scheme[name].sum() > 0]
    if reasons:
        rows = {name: counts for name, *counts in by_scheme.select("scheme", *reasons).iter_rows()}
        yield Bars(
            *("Drops", "drops", "", "Packets dropped at the measured ports, by cause."),
            label="packets dropped",
            parts=tuple(name.removeprefix("drops_").replace("_", " ") for name in reasons),
            rows={name: tuple(rows[name]) for name in schemes if name in rows},
        )
