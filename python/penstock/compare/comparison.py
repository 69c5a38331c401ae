# SPDX-License-Identifier: Apache-2.0
"""Two runs of one scenario, number by number.

The first run is the reference: the kernel for the simulator, or the state before a change.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from penstock import folders, metrics, units
from penstock.errors import RunError, ScenarioError
from penstock.metrics import Metric
from penstock.runs import Run

METRICS = {"groups": metrics.GROUPS, "ports": metrics.PORTS}


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
        path, metric = next(
            (path, metric)
            for table in METRICS.values()
            for path, metric in table.items()
            if metric.heading == self.measure
        )
        first, second = (
            metric.text(metrics.quantity(path.split(".")), value)
            for value in (self.first, self.second)
        )
        ratio = units.NONE if self.ratio is None else f"{self.ratio:.2f}"
        verdict = {
            None: "",
            True: f"within {self.tolerance:.0%}".replace("%", " %"),
            False: "apart",
        }[self.agrees]
        return first, second, ratio, verdict


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
    """Compares the second run of a scenario with the first.

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
    scenarios = [run.summary["scenario"] for run in (first, second)]
    for key in ("duration", "fabric", "tcp", "traffic"):
        if difference := _difference(key, *(document.get(key) for document in scenarios)):
            message = f"compare: the runs are of different scenarios: {difference}"
            raise ScenarioError(message)
    begun = (document.get("measure", {}).get("from") for document in scenarios)
    if difference := _difference("measure.from", *begun):
        message = f"compare: the runs measure different times: {difference}"
        raise ScenarioError(message)
    if not set(_by_scheme(first)) & set(_by_scheme(second)):
        message = "compare: the runs have no scheme in common"
        raise ScenarioError(message)


def _difference(path: str, first: object, second: object) -> str:
    """The first value that differs, by its dotted path; empty where none does."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = {**first, **second}
        differences = (_difference(f"{path}.{k}", first.get(k), second.get(k)) for k in keys)
        return next(filter(None, differences), "")
    return "" if first == second else f"{path} is {first} in the first and {second} in the second"


def _by_scheme(run: Run) -> dict[str, dict[str, Any]]:
    return {result["scheme"]: result for result in run.summary["results"]}


def _lines(first: Run, second: Run) -> Iterator[Line]:
    runs = _by_scheme(first), _by_scheme(second)
    for scheme in (name for name in runs[0] if name in runs[1]):
        for kind, table in METRICS.items():
            owners, others = (run[scheme][kind] for run in runs)
            for owner in (name for name in owners if name in others):
                for path, metric in table.items():
                    if metric.tolerance is not None:
                        keys = path.split(".")
                        values = (metrics.number(of[owner], keys) for of in (owners, others))
                        yield _line(scheme, owner, metric, *values)


def _line(
    scheme: str, group: str, metric: Metric, first: float | None, second: float | None
) -> Line:
    tolerance = metric.tolerance or 0.0
    ratio = second / first if first and second is not None else None
    agrees = None
    if first is not None and second is not None:
        agrees = math.isclose(first, second, rel_tol=0.0, abs_tol=tolerance * abs(first))
    elif (first is None) != (second is None):
        agrees = False
    return Line(scheme, group, metric.heading, first, second, ratio, tolerance, agrees)
