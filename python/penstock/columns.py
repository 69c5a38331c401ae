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
        return self.form(self.value(of))

    def with_spread(self, of: Values, half: Values | None) -> str:
        """The number, and the half-width of its confidence interval in percent of it."""
        value, width = self.value(of), self.value(half) if half else None
        if not value or width is None or self.form not in _SPREAD or self.path.endswith(".max"):
            return self.text(of)
        return f"{self.text(of)} ±{100 * width / value:.0f} %"

    def best(self, rows: Sequence[Values]) -> set[int]:
        """Indices of the rows with the best value; none where all are alike."""
        values = [self.value(row) for row in rows]
        known = [value for value in values if value is not None]
        if self.better == "neither" or not known or min(known) == max(known):
            return set()
        goal = min(known) if self.better == "less" else max(known)
        shown = self.form(goal)
        return {
            i for i, value in enumerate(values) if value is not None and self.form(value) == shown
        }


GROUP = (
    Column("FCT mean", "fct_s.mean", units.seconds, "less", "mean flow completion time"),
    Column("p99", "fct_s.p99", units.seconds, "less", "99 % of the finished flows took less"),
    Column("max", "fct_s.max", units.seconds, "less", "the slowest finished flow"),
    Column("finished", "finished", units.count, "more", "flows that ended within the run"),
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


def blocks(summary: Values, ports: int = 3) -> list[Block]:
    """The tables of a summary: one for each traffic group, then the `ports` busiest ports."""
    results = summary["results"]
    first = results[0]
    groups = [
        _block(results, "groups", name, _columns_of(results, name)) for name in first["groups"]
    ]
    busiest = sorted(first["ports"], key=lambda name: -_drops(results, name))
    return groups + [_block(results, "ports", name, PORT) for name in busiest[:ports]]


def _block(results: list[Values], kind: str, name: str, columns: tuple[Column, ...]) -> Block:
    rows = [result[kind][name] for result in results]
    return Block(
        title=name,
        about=_flows(rows) if kind == "groups" else "port",
        columns=columns,
        schemes=[result["scheme"] for result in results],
        rows=rows,
        ci95=[result["ci95"][kind][name] if result["ci95"] else None for result in results],
    )


def _flows(rows: list[Values]) -> str:
    """How many flows began; closed loops begin more under a faster scheme."""
    counts = [row["flows"] for row in rows]
    least, most = units.count(min(counts)), units.count(max(counts))
    return f"{most} flows" if least == most else f"{least} to {most} flows"


def _columns_of(results: list[Values], group: str) -> tuple[Column, ...]:
    """Endless flows have no completion time: their columns say how fast they went."""
    ended = any(result["groups"][group]["finished"] for result in results)
    return GROUP if ended else ENDLESS


def _drops(results: list[Values], port: str) -> float:
    return math.fsum(result["ports"][port]["drops"] for result in results)
