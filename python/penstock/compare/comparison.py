# SPDX-License-Identifier: Apache-2.0
"""Two runs of one scenario side by side: how far is one substrate from the other?

The first run is the measure, the second is held against it: the simulator against the kernel, or
a change against what was before.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from penstock import folders, units
from penstock.errors import RunError, ScenarioError
from penstock.runs import Run

STALL_S = 0.19
"""A flow that takes longer has met a timeout: the kernel's smallest is 200 ms."""

CLOSE, NEAR = 0.15, 0.25
"""How far apart times and rates, and counts, may be and still agree."""


@dataclass(frozen=True)
class Measure:
    """A number that is compared."""

    name: str
    form: Callable[[float | None], str]
    tolerance: float
    """Most that the values may differ, as a share of the first."""
    value: Callable[[dict[str, Any], float | None], float | None]
    """Of a group's summary, and of how many of its flows stalled."""


def _at(*keys: str) -> Callable[[dict[str, Any], float | None], float | None]:
    def value(group: dict[str, Any], _: float | None) -> float | None:
        found: Any = group
        for key in keys:
            found = None if found is None else found.get(key)
        return None if found is None else float(found)

    return value


# A flow's own drops are left out: a kernel does not tell whose packet a queue has lost.
GROUP = (
    Measure("flows", units.count, CLOSE, _at("flows")),
    Measure("FCT mean", units.seconds, CLOSE, _at("fct_s", "mean")),
    Measure("FCT p50", units.seconds, CLOSE, _at("fct_s", "p50")),
    Measure("FCT p99", units.seconds, NEAR, _at("fct_s", "p99")),
    Measure("FCT max", units.seconds, NEAR, _at("fct_s", "max")),
    Measure("stalls", units.count, NEAR, lambda _, stalls: stalls),
    Measure("RTOs", units.count, NEAR, _at("timeouts")),
    Measure("SYN timeouts", units.count, NEAR, _at("syn_timeouts")),
    Measure("goodput", units.rate, CLOSE, _at("goodput_bps", "mean")),
    Measure("Jain", units.ratio, CLOSE, _at("jain")),
)
PORT = (
    Measure("drops", units.count, NEAR, _at("drops")),
    Measure("utilization", units.percent, CLOSE, _at("utilization")),
    Measure("queue mean", units.size, CLOSE, _at("queue_bytes", "mean")),
    Measure("queue p99", units.size, CLOSE, _at("queue_bytes", "p99")),
)


@dataclass(frozen=True)
class Line:
    """One number of one group or port under one scheme, in both runs."""

    scheme: str
    group: str
    """The traffic, or the port."""
    measure: str
    first: float | None
    second: float | None
    ratio: float | None
    """The second over the first; None where one is missing or the first is zero."""
    tolerance: float
    agrees: bool | None
    """Whether they differ by no more than the tolerance; None where both are missing."""

    def shown(self) -> tuple[str, str, str, str]:
        """The two values, their ratio and the verdict as people read them."""
        form = next(one.form for one in (*GROUP, *PORT) if one.name == self.measure)
        ratio = units.NONE if self.ratio is None else f"{self.ratio:.2f}"
        verdict = {
            None: "",
            True: f"within {self.tolerance:.0%}".replace("%", " %"),
            False: "apart",
        }[self.agrees]
        return form(self.first), form(self.second), ratio, verdict


@dataclass(frozen=True)
class Comparison:
    """Two runs and how they differ."""

    title: str
    names: tuple[str, str]
    """What each run is called: its substrate, or its folder where both have the same."""
    lines: tuple[Line, ...]
    flows: pl.DataFrame
    """The flows of both: `run`, `scheme`, `group`, `fct_s`."""

    def as_json(self) -> dict[str, Any]:
        """What `penstock compare --json` prints."""
        judged = [line for line in self.lines if line.agrees is not None]
        return {
            "title": self.title,
            "runs": list(self.names),
            "agree": sum(bool(line.agrees) for line in judged),
            "of": len(judged),
            "lines": [asdict(line) for line in self.lines],
        }

    @classmethod
    def load(cls, folder: Path) -> "Comparison":
        """Reads a comparison's folder.

        Raises:
            RunError: a file of it is missing or damaged.
        """
        try:
            document = json.loads((folder / folders.COMPARISON.file).read_text(encoding="utf-8"))
            first, second = document["runs"]
            lines = tuple(Line(**line) for line in document["lines"])
            flows = pl.read_parquet(folder / "flows.parquet")
            return cls(document["title"], (first, second), lines, flows)
        except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
            reason = str(error).partition("\n")[0]
            message = f"{folder}: the comparison is damaged ({reason}); compare the runs again"
            raise RunError(message) from error


def compare(first: Path, second: Path) -> Comparison:
    """Reads two runs of one scenario and holds the second against the first.

    Raises:
        ScenarioError: a folder is no run's, or the runs are of different scenarios.
        RunError: a run is damaged.
    """
    runs = Run.load(first), Run.load(second)
    _check(*runs)
    kinds = [str(run.info.get("substrate", "sim")) for run in runs]
    names = (kinds[0], kinds[1])
    if kinds[0] == kinds[1]:
        names = (first.resolve().name, second.resolve().name)
    if names[0] == names[1]:
        names = (str(first), str(second))
    flows = [
        run.members(group).select(
            pl.lit(name).alias("run"), "scheme", pl.lit(group).alias("group"), "fct_s"
        )
        for run, name in zip(runs, names, strict=True)
        for group in run.summary["results"][0]["groups"]
    ]
    return Comparison(
        title=runs[0].summary["scenario"]["title"],
        names=names,
        lines=tuple(_lines(*runs)),
        flows=pl.concat(flows),
    )


def _check(first: Run, second: Run) -> None:
    """Refuses runs that cannot be compared: another network, TCP or traffic."""
    one, other = first.summary["scenario"], second.summary["scenario"]
    for key in ("duration", "fabric", "tcp", "traffic"):
        if difference := _difference(one.get(key), other.get(key), key):
            message = f"compare: the runs are of different scenarios: {difference}"
            raise ScenarioError(message)
    begun = (one.get("measure", {}).get("from"), other.get("measure", {}).get("from"))
    if difference := _difference(*begun, "measure.from"):
        message = f"compare: the runs measure different times: {difference}"
        raise ScenarioError(message)
    if not set(_by_scheme(first)) & set(_by_scheme(second)):
        message = "compare: the runs have no scheme in common"
        raise ScenarioError(message)


def _difference(one: object, other: object, path: str) -> str:
    """The first value that differs, by its dotted path; empty where none does."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            if found := _difference(one.get(key), other.get(key), f"{path}.{key}"):
                return found
        return ""
    return "" if one == other else f"{path} is {one} in the first and {other} in the second"


def _by_scheme(run: Run) -> dict[str, dict[str, Any]]:
    return {result["scheme"]: result for result in run.summary["results"]}


def _lines(first: Run, second: Run) -> Iterator[Line]:
    one, other = _by_scheme(first), _by_scheme(second)
    stalls = _stalls(first), _stalls(second)
    for scheme in (name for name in one if name in other):
        for kind, measures in (("groups", GROUP), ("ports", PORT)):
            values = one[scheme][kind], other[scheme][kind]
            for name in (name for name in values[0] if name in values[1]):
                for measure in measures:
                    a, b = (
                        measure.value(value[name], stalled.get((scheme, name), 0.0))
                        for value, stalled in zip(values, stalls, strict=True)
                    )
                    yield _line(scheme, name, measure, a, b)


def _line(
    scheme: str, group: str, measure: Measure, first: float | None, second: float | None
) -> Line:
    ratio = second / first if first and second is not None else None
    agrees = None
    if first is not None and second is not None:
        agrees = math.isclose(first, second, rel_tol=0.0, abs_tol=measure.tolerance * abs(first))
    elif (first is None) != (second is None):
        agrees = False
    return Line(scheme, group, measure.name, first, second, ratio, measure.tolerance, agrees)


def stalled(run: Run) -> pl.DataFrame:
    """The flows that took longer than `STALL_S`, or have not ended though begun so long before."""
    scenario = run.summary["scenario"]
    stops = {
        name: units.to_seconds(table["stop"])
        for name, table in scenario.get("traffic", {}).items()
        if table.get("kind") == "bulk" and "stop" in table  # ends a flow that is under way
    }
    duration = pl.lit(units.to_seconds(scenario["duration"]))
    end = pl.col("traffic").replace_strict(stops, default=duration, return_dtype=pl.Float64)
    ended = pl.col("bytes").is_null() | pl.col("fct_s").is_not_null()
    taken = pl.when(ended).then(pl.col("fct_s")).otherwise(end - pl.col("start_s"))
    return run.flows.filter(taken > STALL_S)


def _stalls(run: Run) -> dict[tuple[str, str], float]:
    """How many flows of a scheme's group stalled, mean over the seeds."""
    seeds = len(run.summary["seeds"])
    late = replace(run, flows=stalled(run))
    return {
        (scheme, group): count / seeds
        for group in run.summary["results"][0]["groups"]
        for scheme, count in late.members(group)["scheme"].value_counts().iter_rows()
    }
