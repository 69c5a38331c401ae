# SPDX-License-Identifier: Apache-2.0
"""The tables of a summary, the same in terminal and report: rows, columns, and the best values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock import metric_names, missing, units
from penstock.metrics import GROUPS, PORTS, Metric
from penstock.missing import UNFINISHED

_PORTS = 3
"""Most ports that have a table."""

Values = dict[str, Any]
"""The summary of a group or port, or the half-widths of its confidence intervals."""


@dataclass(frozen=True)
class Column:
    """One column of a table with a row for each scheme."""

    path: str
    """Dotted, in a group's or port's summary."""
    metric: Metric
    heading: str
    """Without the part that is the same as in the column before."""

    @property
    def _is_of_jobs(self) -> bool:
        return self.path.startswith("jobs.")

    @property
    def _quantity(self) -> str:
        return metric_names.quantity(self.path.split("."))

    def value(self, of: Values) -> float | None:
        """The number, or None where there is none."""
        return metric_names.number(of, self.path.split("."))

    def form(self, value: float | None) -> str:
        """A number of this column as text."""
        return self.metric.text(self._quantity, value)

    def text(self, of: Values) -> str:
        """The number as shown."""
        if self.path in ("finished", "jobs.finished"):
            counts = of["jobs"] if self._is_of_jobs else of
            return f"{units.count(counts['finished'])} of {units.count(missing.planned(counts))}"
        if missing.is_cut_off(self.path, of):
            return UNFINISHED
        return missing.with_seeds(self.form(self.value(of)), missing.seeds_with(self.path, of))

    def with_spread(self, of: Values, half: Values | None) -> str:
        """The number, and the half-width of its confidence interval in percent of it.

        In a terminal there is room for the spread of what has a unit, not of counts and indices.
        """
        text, value, width = self.text(of), self.value(of), self.value(half) if half else None
        if not value or width is None or not self._quantity or self.path.endswith(".max"):
            return text
        if text == UNFINISHED:
            return text
        with_width = f"{self.form(value)} ±{100 * width / value:.0f} %"
        return missing.with_seeds(with_width, missing.seeds_with(self.path, of))

    def best(self, rows: Sequence[Values]) -> set[int]:
        """Indices of the rows with the best value; none where all are alike.

        A completion time competes only where as many flows finished as under any other scheme:
        one that leaves the slow ones unfinished would win.
        """
        if self.path == "finished":
            values: list[float | None] = [_finished(row) for row in rows]
        else:
            values = [self.value(row) for row in rows]
        if self.path.startswith(("fct_s", "slowdown", "jobs.time_s")):
            most = comparable([row["jobs"] for row in rows] if self._is_of_jobs else rows)
            values = [
                value if i in most and self.text(rows[i]) != UNFINISHED else None
                for i, value in enumerate(values)
            ]
        known = [value for value in values if value is not None]
        if self.metric.better == "neither" or not known or min(known) == max(known):
            return set()
        best = min(known) if self.metric.better == "less" else max(known)
        if self.path == "finished":
            return {i for i, value in enumerate(values) if value == best}
        shown = self.form(best)
        return {
            i for i, value in enumerate(values) if value is not None and self.form(value) == shown
        }


def _columns(of: Mapping[str, Metric], *paths: str) -> tuple[Column, ...]:
    """Columns whose headings leave out a base that is that of the column before: FCT mean, p99."""
    columns: list[Column] = []
    for path in paths:
        base = path.rpartition(".")[0]
        is_same = base and columns and columns[-1].path.rpartition(".")[0] == base
        heading = of[path].heading
        columns.append(Column(path, of[path], heading.split()[-1] if is_same else heading))
    return tuple(columns)


GROUP = _columns(
    GROUPS,
    *("finished", "fct_s.mean", "fct_s.p99", "fct_s.max", "timeouts", "goodput_bps.mean", "jain"),
)
JOBS = _columns(
    GROUPS,
    *("jobs.finished", "jobs.time_s.mean", "jobs.time_s.p50", "jobs.time_s.p99", "jobs.time_s.max"),
    "jobs.per_second",
)
DETAILED = _columns(
    GROUPS,
    *("finished", "fct_s.mean", "fct_s.p99", "fct_s.p999", "fct_s.max"),
    *("slowdown.mean", "slowdown.p99", "flows_per_second", "timeouts", "goodput_bps.mean", "jain"),
)
ENDLESS = _columns(
    GROUPS,
    *("goodput_bps.mean", "goodput_bps.min", "goodput_bps.max", "jain", "timeouts", "retransmits"),
)
PORT = _columns(
    PORTS, "drops", "utilization", "queue_bytes.mean", "queue_bytes.p99", "queue_bytes.max"
)
PAUSES = _columns(PORTS, "pauses", "paused_s")
"""Of ports that send into a switch with priority flow control."""


@dataclass(frozen=True)
class Block:
    """A table: a row for each scheme, of one traffic group or one port."""

    title: str
    about: str
    columns: tuple[Column, ...]
    schemes: list[str]
    rows: list[Values]
    ci95: list[Values | None]
    """Half-widths of the 95 % confidence intervals of `rows`, with several seeds."""


def _finished(of: Values) -> float:
    """The share of a group's flows that finished, of all that were to."""
    planned = missing.planned(of)
    return float(of["finished"] / planned) if planned else 0.0


def comparable(rows: Sequence[Values]) -> set[int]:
    """Indices of the rows where the largest share of the flows finished, to 0.1 %.

    Only their completion times can be compared: those of the others lack slow flows.
    """
    shares = [_finished(row) for row in rows]
    return {i for i, share in enumerate(shares) if share > max(shares) - 0.001}


def blocks(summary: Values, *, is_detailed: bool = False) -> list[Block]:
    """The tables of a summary: one for each traffic group, then the ports that dropped most.

    `is_detailed`: with the columns for which a terminal has no room.
    """
    results = summary["results"]
    first = results[0]
    groups = []
    for name, group in first["groups"].items():
        if "jobs" in group:
            jobs = [result["groups"][name]["jobs"] for result in results]
            begun = [each["begun"] for each in jobs]
            block = _block(results, "groups", name, JOBS, _counted(begun, "job", jobs))
            groups.append(replace(block, title=f"{name}/jobs"))
        columns = _columns_of(results, name, is_detailed=is_detailed)
        groups.append(_block(results, "groups", name, columns))
    busiest = sorted(first["ports"], key=lambda name: -_drops(results, name))
    about = "port"
    if len(busiest) > _PORTS:
        has_drops = _drops(results, busiest[0]) > 0
        about = f"port, one of the {_PORTS} of {len(busiest)} that dropped most"
        about = about if has_drops else f"port, one of {len(busiest)}, none of which dropped"
    for name in busiest[:_PORTS]:
        pauses = any("pauses" in result["ports"][name] for result in results)
        groups.append(_block(results, "ports", name, PORT + (PAUSES if pauses else ()), about))
    return groups


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
    return _counted([row["flows"] for row in rows], "flow", rows)


def _counted(numbers: list[float], noun: str, of: list[Values]) -> str:
    """A count, or the range of counts; it is named as begun where others were to begin."""
    counts = [float(number) for number in numbers]
    least, most = units.count(min(counts)), units.count(max(counts))
    flows = (
        f"{most} {noun}{'' if most == '1' else 's'}"
        if least == most
        else f"{least} to {most} {noun}s"
    )
    if any(missing.planned(row) > number for number, row in zip(numbers, of, strict=True)):
        flows += " begun"
    return flows if all(count.is_integer() for count in counts) else f"{flows} (mean of the seeds)"


def _columns_of(results: list[Values], group: str, *, is_detailed: bool) -> tuple[Column, ...]:
    """Endless flows have no completion time: their columns show how fast they went."""
    of_schemes = [result["groups"][group] for result in results]
    if not any(of["finished"] or of.get("unfinished") for of in of_schemes):
        return ENDLESS
    return DETAILED if is_detailed else GROUP


def _drops(results: list[Values], port: str) -> float:
    return math.fsum(result["ports"][port]["drops"] for result in results)
