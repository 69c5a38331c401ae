# SPDX-License-Identifier: Apache-2.0
"""The results of a scenario: a summary for people and JSON, and tables of what was measured."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import polars as pl

from penstock import metrics, missing, stats, tables, units
from penstock.execution import Row
from penstock.scenario import seeds_of


@dataclass(frozen=True)
class Results:
    """What one scenario did under its schemes and seeds."""

    summary: dict[str, Any]
    """The object that `--json` prints; `penstock run --help` describes it."""
    flows: pl.DataFrame
    """One row a flow; the columns are those of `penstock.tables.FLOWS`."""
    queues: pl.DataFrame
    """One row a measured port and sample, with `port`, `time_s`, `bytes`, `packets`."""
    ports: pl.DataFrame
    """One row a measured port, with what it sent, marked, rewrote, and dropped by reason."""
    scenario: str
    """The scenario as resolved, in TOML, its defaults written out."""
    info: dict[str, Any]
    """Versions, seeds, schemes, overrides, command line and machine of the run."""
    windows: pl.DataFrame = field(default_factory=lambda: tables.NO_WINDOWS)
    """One row a chosen flow and sample; the columns are those of `penstock.tables.WINDOWS`."""
    jobs: pl.DataFrame = field(default_factory=lambda: tables.NO_JOBS)
    """One row a job; the columns are those of `penstock.tables.JOBS`."""
    packets: pl.DataFrame = field(default_factory=lambda: tables.NO_PACKETS)
    """One row a packet of the port in `measure.packets`; the columns of `tables.PACKETS`."""
    events: pl.DataFrame = field(default_factory=lambda: tables.NO_EVENTS)
    """What the senders did meanwhile; the columns are those of `penstock.tables.EVENTS`."""

    @classmethod
    def collect(cls, scenario: str, rows: Sequence[Row], info: dict[str, Any]) -> Self:
        """The rows of a resolved scenario's tasks as one result: seeds combined, tables stacked.

        Args:
            scenario: as resolved, in TOML.
            rows: in the order of the tables.
            info: of the run; what the rows' substrates report is added.
        """
        document = tomllib.loads(scenario)
        summaries = [(row.scheme, row.seed, json.loads(row.summary)) for row in rows]
        of_substrate = [summary.pop("substrate", {}) for _, _, summary in summaries]
        results = [
            _result(scheme, [summary for of, _, summary in summaries if of == scheme])
            for scheme in document["schemes"]
        ]
        queues = (
            tables.read_queues(row.queues, list(summary["ports"]), row.scheme, row.seed)
            for row, (_, _, summary) in zip(rows, summaries, strict=True)
        )
        flows = (tables.read(row.flows, tables.FLOWS, row.scheme, row.seed) for row in rows)
        windows = (tables.read(row.windows, tables.WINDOWS, row.scheme, row.seed) for row in rows)
        jobs = (tables.read(row.jobs, tables.JOBS, row.scheme, row.seed) for row in rows)
        first = [row for row in rows if row.seed == rows[0].seed]  # packets of one seed are enough
        packets = (tables.read(row.packets, tables.PACKETS, row.scheme, row.seed) for row in first)
        events = (tables.read(row.events, tables.EVENTS, row.scheme, row.seed) for row in first)
        ports = ((scheme, seed, summary["ports"]) for scheme, seed, summary in summaries)
        return cls(
            summary={"scenario": document, "seeds": seeds_of(document), "results": results},
            flows=tables.stack(flows),
            queues=tables.stack(queues),
            ports=tables.ports(ports),
            scenario=scenario,
            info=info | merged(of_substrate),
            windows=tables.stack(windows),
            jobs=tables.stack(jobs),
            packets=tables.stack(packets),
            events=tables.stack(events),
        )

    @property
    def notes(self) -> list[str]:
        """Sentences on what disturbed the run, such as a busy machine."""
        return notes(self.info)

    def members(self, group: str) -> pl.DataFrame:
        """The rows of `flows` that a group of the summary counts.

        A group is a traffic, or one class of its sizes: `web/small` are the flows of `web` up to
        the size `measure.sizes.small`, and above that of the class before it.
        """
        traffic, _, name = group.rpartition("/")
        bounds = self.summary["scenario"].get("measure", {}).get("sizes", {})
        if not traffic or name not in bounds:
            return self.flows.filter(pl.col("traffic") == group)
        upper = units.to_bytes(bounds[name])
        below = [bound for bound in map(units.to_bytes, bounds.values()) if bound < upper]
        above = pl.col("bytes") > max(below, default=-1)
        return self.flows.filter(pl.col("traffic") == traffic, above, pl.col("bytes") <= upper)

    def planned(self, group: str) -> pl.DataFrame:
        """`members` with a row without times for each flow that never began, as in closed loops."""
        counts = {r["scheme"]: r["groups"][group] for r in self.summary["results"]}
        return self._with_missing(self.members(group), counts)

    def planned_jobs(self, traffic: str) -> pl.DataFrame:
        """The rows of `jobs` of a traffic, with one for each that never began."""
        jobs = self.jobs.filter(pl.col("traffic") == traffic)
        results = self.summary["results"]
        groups = {r["scheme"]: r["groups"].get(traffic, {}).get("jobs") for r in results}
        return self._with_missing(jobs, {name: each for name, each in groups.items() if each})

    def _with_missing(self, rows: pl.DataFrame, counts: Mapping[str, Any]) -> pl.DataFrame:
        """Rows, and as many empty ones as the means over the seeds have more of each scheme."""
        seeds = len(self.summary["seeds"])
        have = dict(rows.group_by("scheme").len().iter_rows())
        lacking = {
            scheme: round(seeds * missing.planned(each)) - have.get(scheme, 0)
            for scheme, each in counts.items()
        }
        names = [scheme for scheme, count in lacking.items() for _ in range(count)]
        never_begun = pl.DataFrame({"scheme": names}, schema={"scheme": pl.String})
        return pl.concat([rows, never_begun], how="diagonal") if names else rows

    def __str__(self) -> str:
        """The title, and how much was run."""
        schemes = ", ".join(result["scheme"] for result in self.summary["results"])
        return f"{self.summary['scenario']['title']}: {schemes}; {self.flows.height} flows"


def _result(scheme: str, seeds: list[dict[str, Any]]) -> dict[str, Any]:
    measured = [{"groups": seed["groups"], "ports": seed["ports"]} for seed in seeds]
    means = stats.mean_of(seeds)
    for name, group in means["groups"].items():
        of_each = [seed["groups"][name] for seed in seeds if name in seed["groups"]]
        if len(seeds) > 1 and (known := missing.of_seeds(of_each)):
            group[metrics.OF_SEEDS] = known
    return {
        "scheme": scheme,
        **means,
        "ci95": stats.ci95_of(measured) if len(seeds) > 1 else None,
    }


def notes(info: Mapping[str, Any]) -> list[str]:
    """Sentences on what disturbed runs, of what their substrates report."""
    sentences = [f"{warning}." for warning in info.get("warnings", ())]
    if changed := info.get("changed_files"):
        sentences.append(f"Changed since the run that is repeated: {', '.join(changed)}.")
    if runs := info.get("busy"):
        busy = "; ".join(runs)
        sentences.append(f"This machine was busy, which may have changed the results: {busy}.")
    return sentences


def merged(reports: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What the substrates of all rows report: lists joined without repeats, else the last."""
    merged: dict[str, Any] = {}
    for report in reports:
        for key, value in report.items():
            is_list = isinstance(value, list)
            merged[key] = list(dict.fromkeys(merged.get(key, []) + value)) if is_list else value
    return merged
