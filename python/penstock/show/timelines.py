# SPDX-License-Identifier: Apache-2.0
"""Single flows over time, from the packets of a port and what the senders did.

A page has the timelines of the slowest and the median flow of each traffic and scheme, and of as
many others as there is room for, spread over all completion times: a click on a curve shows the
nearest.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from penstock import units
from penstock.results import Results
from penstock.show.charts import Axis, Chart, Numbers, Panel, Series
from penstock.show.recorded import Recorded, Row
from penstock.show.style import Look

SECTION = "One flow over time"
ROOM = 500_000
"""Characters that the timelines of a page may take."""
_POINTS = 160
_ALWAYS = "*"
"""The scheme of lines that the picker of schemes leaves alone."""
_MARKS = (
    ("rto", "RTO", Look(5)),
    ("syn_timeout", "SYN timeout", Look(7)),
    ("retransmit", "sent again", Look(1)),
    ("probe", "tail loss probe", Look(6)),
    ("window_probe", "window probe", Look(6)),
    ("delayed_ack", "delayed ACK", Look(4)),
)
_SCALE_MAX = 14
_IN_FLIGHT = "in flight"


class Timeline(NamedTuple):
    """One flow."""

    traffic: str
    scheme: str
    label: str
    is_listed: bool
    """The reader can choose it by name; others by a click on a curve."""
    fct_s: float | None
    charts: tuple[Chart, ...]

    def as_json(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {
            "traffic": self.traffic,
            "scheme": self.scheme,
            "label": self.label,
            "isListed": self.is_listed,
            "fct": self.fct_s,
            "charts": [chart.as_json() for chart in self.charts],
        }


def timelines(run: Results) -> list[Timeline]:
    """Those of a page, within its room; none where no packets were recorded."""
    if run.packets.is_empty() or run.flows.is_empty():
        return []
    found, used = [], 0
    recorded = Recorded(run)
    for flow, label in _in_order(recorded):
        timeline = _timeline(recorded, flow, label)
        used += len(json.dumps(timeline.as_json()))
        if used > ROOM and not timeline.is_listed:
            break
        found.append(timeline)
    return found


def _timeline(recorded: Recorded, flow: Row, label: str) -> Timeline:
    is_within = recorded.is_within(flow)
    packets, events = recorded.packets_of(flow), recorded.events_of(flow)
    scale = _window_scale(packets, flow)
    took = units.seconds(flow["fct_s"]) if flow["fct_s"] else "unfinished"
    return Timeline(
        flow["traffic"],
        flow["scheme"],
        f"{label}{flow['traffic']} {flow['flow']} under {flow['scheme']}: {took}",
        bool(label),
        flow["fct_s"],
        tuple(_charts(packets.filter(is_within), events.filter(is_within), flow, scale)),
    )


def _in_order(recorded: Recorded) -> Iterator[tuple[Row, str]]:
    """The flows that were recorded from their start: those with a name first, then ever finer."""
    groups = []
    for _, members in recorded.flows.group_by("traffic", "scheme", maintain_order=True):
        slowest_last = members.sort("fct_s", nulls_last=True).iter_rows(named=True)
        rows = [flow for flow in slowest_last if recorded.has(flow)]
        if rows:
            groups.append(rows)
    for rows in groups:
        yield rows[-1], "slowest: "
        if len(rows) > 1:
            yield rows[(len(rows) - 1) // 2], "median: "
    for place in _ever_finer(max(map(len, groups), default=0)):
        for rows in groups:
            if place < len(rows) and place not in (len(rows) - 1, (len(rows) - 1) // 2):
                yield rows[place], ""


def _ever_finer(count: int) -> Iterator[int]:
    """All of `range(count)`, so that any beginning of them is spread evenly."""
    seen: set[int] = set()
    step = max(count, 1)
    while len(seen) < count:
        step = max(1, step // 2)
        for place in range(0, count, step):
            if place not in seen:
                seen.add(place)
                yield place


def _window_scale(packets: pl.DataFrame, flow: Row) -> int:
    """Bits by which the windows of the data's receiver are shifted, once both sides offer it."""
    offers = packets.filter(pl.col("syn_options") > 0)
    by_host = dict(offers.select("source", "syn_options").iter_rows())
    scales: dict[str, int] = {
        host: ((options >> 16) & 0xFF) - 1 for host, options in by_host.items()
    }
    if min(scales.values(), default=-1) < 0:
        return 0
    return min(scales.get(flow["destination"], 0), _SCALE_MAX)


def _charts(packets: pl.DataFrame, events: pl.DataFrame, flow: Row, scale: int) -> Iterator[Chart]:
    data = packets.filter(pl.col("source") == flow["source"], pl.col("forward"))
    acks = packets.filter(pl.col("source") == flow["destination"], ~pl.col("forward"))
    variables = events.filter(pl.col("event") == "window")
    if not variables.is_empty():
        variables = variables.filter(pl.col("host") == flow["source"])
    shift = pl.when(pl.col("flags") & 2 != 0).then(1).otherwise(1 << scale)
    acks = acks.with_columns(
        (pl.col("window") * shift).alias("sent"), (pl.col("window_after") * shift).alias("left")
    )
    begin = flow["start_s"]
    lines = [
        *_line("congestion window", Look(2), variables, "cwnd_bytes", begin),
        *_line(_IN_FLIGHT, Look(0, 3), variables, "in_flight_bytes", begin),
        *_line("window as sent", Look(4, 1), acks, "sent", begin),
        *_line("window as rewritten", Look(3), acks, "left", begin),
    ]
    if acks["sent"].equals(acks["left"]):
        lines = [line for line in lines if line.name != "window as rewritten"]
    # Marks stand at the foot: a decade below the least, where no line is.
    windows = [line for line in lines if line.name != _IN_FLIGHT]
    least = min((y for line in windows for y in line.y if y), default=100.0)
    foot = 10.0 ** (math.floor(math.log10(least)) - 1)
    level = 2 * foot
    for event, name, look in _MARKS:
        times = events.filter(pl.col("event") == event)["time_s"]
        if len(times):
            x = [time - begin for time in _thinned(times.to_list())]
            lines.append(Series(name, look, x, [level] * len(x), kind="dots", scheme=_ALWAYS))
    last = max((x for line in lines for x in line.x if x is not None), default=0.0)
    lines = [_held(line, last) if line.kind == "step" else line for line in lines]
    time = Axis("time since its start", "s", least=0.0, greatest=last * 1.01 or None)
    yield Chart(
        *(SECTION, "flow-windows", "Windows"),
        "What the sender could have in flight; the dots at the foot are timers that fired.",
        *(time, Axis("bytes", "B", log=True, least=foot), (Panel(tuple(lines)),)),
        linked="flow",
    )
    lost = data.filter(pl.col("lost").is_not_null())
    kept = data.filter(pl.col("lost").is_null())
    series = [
        Series(name, look, [t - begin for t in x], y, kind="dots", scheme=_ALWAYS)
        for name, look, of in (("packet", Look(2), kept), ("dropped", Look(5), lost))
        if (x := _thinned(of["time_s"].to_list())) and (y := _thinned(of["queue_bytes"].to_list()))
    ]
    yield Chart(
        *(SECTION, "flow-queue", "Queue"),
        "The queue that each of its packets met at the port.",
        *(time, Axis("queue", "B", least=0.0), (Panel(tuple(series)),)),
        linked="flow",
    )


def _line(name: str, look: Look, rows: pl.DataFrame, column: str, begin: float) -> Iterator[Series]:
    if rows.is_empty():
        return
    x = [time - begin for time in _thinned(rows["time_s"].to_list())]
    y: Numbers = _thinned(rows[column].to_list())
    yield Series(name, look, x, y, kind="step", scheme=_ALWAYS)


def _held(line: Series, last: float) -> Series:
    """A line that goes on to the last event: a change is recorded, and what stays is not."""
    return replace(line, x=[*line.x, last], y=[*line.y, line.y[-1]])


def _thinned(values: Sequence[Any]) -> list[Any]:
    """Evenly spread ones of them, the last included."""
    step = -(-len(values) // _POINTS) or 1
    kept = list(values[::step])
    return kept if (len(values) - 1) % step == 0 else [*kept, values[-1]]
