# SPDX-License-Identifier: Apache-2.0
"""A sweep's folder: its request, and the numbers of every finished run.

`sweep.json` is the request, `sweep.parquet` has a row for each point, scheme and seed. While a
sweep runs, each finished run becomes a line of `journal.jsonl`, which the Parquet file takes over
in the end. A kill at any moment loses no finished run.
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from penstock import folders, provenance, tables
from penstock.errors import RunError, ScenarioError
from penstock.execution import Task, build, files_of
from penstock.sweeps import completeness
from penstock.sweeps.journal import JOURNAL, Journal
from penstock.sweeps.points import Plan

Numbers = dict[str, float | None]
"""The summary of one run, by full names (see `penstock.metric_names`)."""

TABLE = "sweep.parquet"
KEY = "key"  # the column of the tasks' keys
_SAME = (
    "substrate",
    "build",
    "scenario",
    "columns",
)  # what two commands have alike that share a folder
_SHARED = ("scheme", "files")  # tables of which they have alike what both have


def read_request(folder: Path) -> dict[str, Any]:
    """The request of a sweep.

    Raises:
        RunError: the folder is damaged.
    """
    return folders.read_json(folder / folders.SWEEP.file, "begin again in another --out")


def folder_for(request: Mapping[str, Any], name: str, out: Path | None) -> Path:
    """The folder of a sweep: `out`, or `runs/NAME-sweep` with a number where that is another's.

    Raises:
        ScenarioError: `out` holds something else, or cannot be written.
    """

    def is_same(folder: Path) -> bool:
        return _is_same(read_request(folder), request)

    other = "a sweep of another scenario, files, keys, substrate or build of Penstock"
    return folders.for_work(folders.SWEEP, f"{name}-sweep", out, is_same, other)


def _is_same(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether they differ in values, schemes and seeds only."""
    return all(first.get(name) == other.get(name) for name in _SAME) and all(
        first[name][key] == other[name][key]
        for name in _SHARED
        for key in first.get(name, {}).keys() & other[name].keys()
    )


def request_of(plan: Plan, show: Sequence[str] = ()) -> dict[str, Any]:
    """The content of `sweep.json` for a plan; `show` are the numbers of the report."""
    varies = ("title", "about", "schemes", "seeds", "scheme")
    return {
        "name": plan.name,
        "title": plan.base["title"],
        "show": list(show),
        "planned": completeness.planned(plan),
        **provenance.head(),
        "substrate": plan.tasks[0].on,
        "build": build.digest(plan.tasks[0].on),
        "scenario": {name: value for name, value in plan.base.items() if name not in varies},
        "scheme": {name: plan.base["scheme"][name] for name in plan.schemes},
        "files": {
            path: digest
            for task, *_ in plan.points.values()
            for path, digest in files_of(task.scenario).items()
        },
        "columns": {key.name: [key.column, _family(key.kind)] for key in plan.keys},
    }


def _family(kind: str) -> str:
    return kind if kind in ("truth", "text") else "number"


class Store:
    """A sweep's folder, locked for one process until `close`."""

    def __init__(self, folder: Path, request: dict[str, Any]) -> None:
        """Opens the folder, which exists, and merges the request into an earlier one.

        Raises:
            RunError: another process works on it, or it is damaged.
        """
        self.folder = folder
        with contextlib.ExitStack() as opened:
            opened.enter_context(folders.locked(folder, "sweep"))
            is_begun = folders.has_kind(folder, folders.SWEEP)
            before = read_request(folder) if is_begun else request
            self.request = request | {n: before.get(n, {}) | request[n] for n in _SHARED}
            folders.write_json(folder / folders.SWEEP.file, self.request, is_durable=True)
            self._table = _read_table(folder)
            self.done = {} if self._table is None else _by_key(self._table, self.request)
            self._journal = opened.enter_context(contextlib.closing(Journal(folder / JOURNAL)))
            self.done |= self._journal.entries
            self.close = opened.pop_all().close

    def add(self, task: Task, numbers: Numbers) -> None:
        """Writes a run's numbers to the journal, at once."""
        self._journal.add(task.key, numbers)
        self.done[task.key] = numbers

    def merge(self, plan: Plan) -> pl.DataFrame:
        """Writes the Parquet file with the plan's finished runs, and returns it.

        The journal keeps those of other plans, which a kill has left there.
        """
        rows = []
        for point, tasks in plan.points.items():
            swept = {k.column: k.typed(v) for k, v in zip(plan.keys, point, strict=True)}
            rows += [
                {**swept, "scheme": task.scheme, "seed": task.seed}
                | self.done[task.key]
                | {KEY: task.key}
                for task in tasks
                if task.key in self.done
            ]
        swept_columns = [key.column for key in plan.keys]
        table = _stacked(rows, self._table, swept_columns, list(self.request["scheme"]))
        if not table.is_empty():
            tables.write(table, self.folder / TABLE, is_durable=True)
        self._journal.drop({task.key for task in plan.tasks})
        return table


def _stacked(
    rows: list[dict[str, Any]], old: pl.DataFrame | None, swept: list[str], schemes: list[str]
) -> pl.DataFrame:
    """New rows, and the old ones of other points, in the order of values, schemes and seeds."""
    by = [*swept, "scheme", "seed"]
    if not rows:
        return pl.DataFrame() if old is None else old
    new = pl.DataFrame(rows, infer_schema_length=None)
    new = new.with_columns(pl.col(pl.Null).cast(pl.Float64))
    table = new if old is None else pl.concat([new, old], how="diagonal_relaxed")
    place = pl.col("scheme").replace_strict(
        {scheme: number for number, scheme in enumerate(schemes)}, return_dtype=pl.Int64
    )
    table = table.unique(by, keep="first", maintain_order=True).sort([*swept, place, "seed"])
    return table.select([*(name for name in table.columns if name != KEY), KEY])


def load(folder: Path) -> tuple[dict[str, Any], pl.DataFrame]:
    """Request and table of a sweep's folder.

    Raises:
        ScenarioError: it is not a sweep's, or its table is not written yet.
        RunError: it is damaged.
    """
    request, table = read_request(folder), _read_table(folder)
    if table is None:
        message = f"{folder}: the sweep did not end; give its command again, and it goes on"
        raise ScenarioError(message)
    return request, table


def _read_table(folder: Path) -> pl.DataFrame | None:
    path = folder / TABLE
    if not path.exists():
        return None
    try:
        return tables.load(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0]
        message = f"{path}: cannot be read ({reason}); remove it, and the sweep begins again"
        raise RunError(message) from None


def _by_key(table: pl.DataFrame, request: dict[str, Any]) -> dict[str, Numbers]:
    swept = [column for column, _ in request["columns"].values()]
    numbers = table.drop([*swept, "scheme", "seed"], strict=False)
    return {str(row.pop(KEY)): row for row in numbers.iter_rows(named=True)}
