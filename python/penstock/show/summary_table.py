# SPDX-License-Identifier: Apache-2.0
"""The columns of the summary table: what is shown, how, and which end of it is the better one.

The terminal and the report show the same table.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock import units

Values = dict[str, Any]

_MOST = 0.99
UNFINISHED = "unfinished"
"""Instead of a 99th percentile where more than 1 % of the flows did not finish."""

# In a terminal there is room for the spread of what has a unit, not of counts and indices.
_SPREAD = (units.seconds, units.rate, units.size)


@dataclass(frozen=True)
class Column:
    """One column of a table with a row for each scheme."""

    heading: str
    path: str
    """Dotted path into a group's or port's summary."""
    form: Callable[[float | None], str]
    better: Literal["less", "more", "neither"]
    meaning: str

    def value(self, of: Values) -> float | None:
        """The number, or None where there is none."""
        value: Any = of
        for key in self.path.split("."):
            value = None if value is None else value.get(key)
        return None if value is None else float(value)

    def text(self, of: Values) -> str:
        """The number as shown."""
        if self.path == "finished":
            return f"{self.form(of['finished'])} of {self.form(of['flows'])}"
        if self.path == "fct_s.p99" and _finished(of) < _MOST:
            return UNFINISHED
        return self.form(self.value(of))

    def with_spread(self, of: Values, half: Values | None) -> str:
        """The number, and the half-width of its confidence interval in percent of it."""
        text, value, width = self.text(of), self.value(of), self.value(half) if half else None
        if not value or width is None or self.form not in _SPREAD or self.path.endswith(".max"):
            return text
        return text if text == UNFINISHED else f"{text} ±{100 * width / value:.0f} %"

    def best(self, rows: Sequence[Values]) -> set[int]:
        """Indices of the rows with the best value; none where all are alike.

        A completion time competes only where as many flows finished as under any other scheme:
        whoever leaves the slow ones unfinished would win.
        """
        if self.path == "finished":
            values: list[float | None] = [_finished(row) for row in rows]
        else:
            values = [self.value(row) for row in rows]
        if self.path.startswith("fct_s"):
            most = comparable(rows)
            values = [
                value if i in most and self.text(rows[i]) != UNFINISHED else None
                for i, value in enumerate(values)
            ]
        known = [value for value in values if value is not None]
        if self.better == "neither" or not known or min(known) == max(known):
            return set()
        goal = min(known) if self.better == "less" else max(known)
        if self.path == "finished":
            return {i for i, value in enumerate(values) if value == goal}
        shown = self.form(goal)
        return {
            i for i, value in enumerate(values) if value is not None and self.form(value) == shown
        }


GROUP = (
    Column("finished", "finished", units.count, "more", "flows that ended, of those that began"),
    Column(
        "FCT mean", "fct_s.mean", units.seconds, "less", "completion time of the finished flows"
    ),
    Column(
        "p99", "fct_s.p99", units.seconds, "less", "99 % of the flows took less, if so many ended"
    ),
    Column("max", "fct_s.max", units.seconds, "less", "the slowest finished flow"),
    Column("timeouts", "timeouts", units.count, "less", "retransmission timeouts"),
    Column("goodput", "goodput_bps.mean", units.rate, "more", "what arrived, mean of the flows"),
    Column("Jain", "jain", units.ratio, "more", "fairness of the goodputs: 1 is equal shares"),
)
ENDLESS = (
    Column("goodput", "goodput_bps.mean", units.rate, "more", "what arrived, mean of the flows"),
    Column("min", "goodput_bps.min", units.rate, "more", "the slowest flow"),
    Column("max", "goodput_bps.max", units.rate, "neither", "the fastest flow"),
    Column("Jain", "jain", units.ratio, "more", "fairness of the goodputs: 1 is equal shares"),
    Column("timeouts", "timeouts", units.count, "less", "retransmission timeouts"),
    Column("retransmits", "retransmits", units.count, "less", "segments sent again"),
)
PORT = (
    Column("drops", "drops", units.count, "less", "packets lost at this port"),
    Column("utilization", "utilization", units.percent, "more", "share of the link's time in use"),
    Column("queue mean", "queue_bytes.mean", units.size, "less", "mean of the queue over time"),
    Column("p99", "queue_bytes.p99", units.size, "less", "the queue was shorter 99 % of the time"),
    Column("max", "queue_bytes.max", units.size, "less", "the longest queue seen"),
)


@dataclass(frozen=True)
class Block:
    """A table: a row for each scheme, of one traffic group or one port."""

    title: str
    about: str
    columns: tuple[Column, ...]
    schemes: list[str]
    rows: list[Values]
    ci95: list[Values | None]
    """Half-widths of the 95 % confidence intervals beside `rows`, with several seeds."""


def _finished(of: Values) -> float:
    """The share of a group's flows that finished."""
    return float(of["finished"] / of["flows"]) if of["flows"] else 0.0


def comparable(rows: Sequence[Values]) -> set[int]:
    """Indices of the rows where the largest share of the flows finished, to 0.1 %.

    Only their completion times can be compared: those of the others lack slow flows.
    """
    shares = [_finished(row) for row in rows]
    return {i for i, share in enumerate(shares) if share > max(shares) - 0.001}


def blocks(summary: Values, ports: int = 3) -> list[Block]:
    """The tables of a summary: one for each traffic group, then the ports that dropped most."""
    results = summary["results"]
    first = results[0]
    groups = [
        _block(results, "groups", name, _columns_of(results, name)) for name in first["groups"]
    ]
    busiest = sorted(first["ports"], key=lambda name: -_drops(results, name))
    about = "port"
    if len(busiest) > ports:
        about = f"port, one of the {ports} of {len(busiest)} that dropped most"
    return groups + [_block(results, "ports", name, PORT, about) for name in busiest[:ports]]


def _block(
    results: list[Values], kind: str, name: str, columns: tuple[Column, ...], about: str = ""
) -> Block:
    rows = [result[kind][name] for result in results]
    return Block(
        title=name,
        about=about or _flows(rows),
        columns=columns,
        schemes=[result["scheme"] for result in results],
        rows=rows,
        ci95=[result["ci95"][kind][name] if result["ci95"] else None for result in results],
    )


def _flows(rows: list[Values]) -> str:
    """How many flows began; closed loops begin more under a faster scheme."""
    counts = [float(row["flows"]) for row in rows]
    least, most = units.count(min(counts)), units.count(max(counts))
    flows = (
        f"{most} flow{'' if most == '1' else 's'}" if least == most else f"{least} to {most} flows"
    )
    return flows if all(count.is_integer() for count in counts) else f"{flows} (mean of the seeds)"


def _columns_of(results: list[Values], group: str) -> tuple[Column, ...]:
    """Endless flows have no completion time: their columns say how fast they went."""
    ended = any(result["groups"][group]["finished"] for result in results)
    return GROUP if ended else ENDLESS


def _drops(results: list[Values], port: str) -> float:
    return math.fsum(result["ports"][port]["drops"] for result in results)
