# SPDX-License-Identifier: Apache-2.0
"""Computes the runs that a sweep's folder lacks."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from penstock import execution, folders, metric_names, missing, results
from penstock.errors import InterruptedRunError, PenstockError, RunError, resumable
from penstock.execution import SIMULATOR, Progress, Task
from penstock.scenario import Overrides, Scenario
from penstock.sweeps import completeness, means, points, store, sweep_page
from penstock.sweeps.points import Plan
from penstock.sweeps.store import Store


@dataclass(frozen=True)
class Sweep:
    """A sweep that ended."""

    folder: Path
    title: str
    table: pl.DataFrame
    """A row for each point, scheme and seed that the folder holds: values, then all numbers."""
    shown: list[means.Shown]
    """Means over the seeds of the numbers to show."""
    runs: int
    """How many the command requested."""
    known: int
    """How many of them the folder had before."""
    failures: list[str]
    """A line for each run that failed."""
    notes: list[str]
    """Sentences on what disturbed the runs of this command."""
    incomplete: str
    """A sentence on the runs that the folder lacks, as `3 of 4 runs: ...`; empty if it has all."""

    @property
    def done(self) -> int:
        """How many of the requested runs the folder has."""
        return self.runs - len(self.failures)


def sweep(
    scenario: Scenario,
    over: Sequence[str],
    *,
    schemes: Sequence[str] | None = None,
    overrides: Overrides | None = None,
    seeds: int | Sequence[int] | None = None,
    numbers: Sequence[str] = (),
    jobs: int | None = None,
    cluster: str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    on: str = SIMULATOR,
) -> Sweep:
    """Runs a scenario at every combination of some values, as `penstock sweep` does.

    Args:
        scenario: as `api.run` has it, and so have `schemes`, `overrides` and `seeds`.
        schemes: instead of the scenario's own.
        overrides: values by dotted path, the same at each point.
        seeds: how many (1 to n), or which.
        over: each `KEY=VALUES`, in the grammar of `penstock.sweeps.values`.
        numbers: what to show, as `mice.fct.p99`; default: see `penstock sweep --help`.
        jobs: threads; default: one per core.
        cluster: the address of a Dask scheduler whose workers compute.
        out: the folder; default: `runs/NAME-sweep`. What it holds already is not run again.
        progress: called with (fraction done, "12 of 40 runs").
        on: the substrate, as `api.run` has it.

    Raises:
        ScenarioError: a point cannot be simulated, or the folder is not this sweep's; one line.
        RunError: the cluster cannot be used, or no run at all could be computed.
        InterruptedRunError: Ctrl-C. What was computed is in the folder, whatever is raised.
    """
    plan = points.plan(scenario, over, schemes=schemes, overrides=overrides, seeds=seeds, on=on)
    return run(plan, numbers=numbers, jobs=jobs, cluster=cluster, out=out, progress=progress)


def run(
    plan: Plan,
    *,
    numbers: Sequence[str] = (),
    jobs: int | None = None,
    cluster: str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Runs a plan; the arguments are those of `sweep`."""
    points.check(numbers, plan)
    request = store.request_of(plan, numbers)
    folder = store.folder_for(request, plan.name, Path(out) if out is not None else None)
    with closing(Store(folder, request)) as stored:
        known = sum(task.key in stored.done for task in plan.tasks)
        try:
            table, failures, notes = _compute(plan, stored, jobs, cluster, progress)
        except OSError as error:
            place = f"{error.filename or folder}: cannot be written ({error.strerror or error})"
            message = f"{place}; {_kept(plan, stored)}"
            raise RunError(message) from None
        shown = [means.shown(stored.request, table, number) for number in numbers or [""]]
        incomplete = completeness.note(stored.request, table)
        sweep_page.write(stored.request, shown, folder / folders.SWEEP.page, incomplete)
    title, runs = plan.base["title"], len(plan.tasks)
    return Sweep(folder, title, table, shown, runs, known, failures, notes, incomplete)


def _compute(
    plan: Plan, stored: Store, jobs: int | None, cluster: str | None, progress: Progress | None
) -> tuple[pl.DataFrame, list[str], list[str]]:
    """Runs what is missing; returns the folder's table, a line for each failure, and notes."""
    lacking = [task for task in plan.tasks if task.key not in stored.done]
    failures: list[str] = []
    reports = []

    def failed(task: Task, error: PenstockError) -> None:
        failures.append(f"{plan.where(task)}: {error}")

    options: dict[str, Any] = {"jobs": jobs, "cluster": cluster, "progress": progress}
    try:
        for task, row in execution.execute(lacking, failed=failed, **options):
            if task.key not in stored.done:
                summary = json.loads(row.summary)
                numbers = missing.without_cut_off(metric_names.flat(summary), summary)
                stored.add(task, numbers)
                reports.append(summary.get("substrate", {}))
    except KeyboardInterrupt:
        message = f"interrupted; {_kept(plan, stored)}"
        raise InterruptedRunError(message) from None
    finally:
        table = stored.merge(plan)
    if table.is_empty():
        raise RunError(failures[0])
    return table, failures, results.notes(results.merged(reports))


def _kept(plan: Plan, stored: Store) -> str:
    done = sum(task.key in stored.done for task in plan.tasks)
    return resumable(f"{done} of {len(plan.tasks)} runs", stored.folder)
