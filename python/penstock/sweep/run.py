# SPDX-License-Identifier: Apache-2.0
"""Computes what a sweep's folder does not hold yet."""

import json
from pathlib import Path

import polars as pl

from penstock import execution, fields
from penstock.errors import PenstockError, RunError
from penstock.execution import Progress, Task
from penstock.sweep.plan import Plan
from penstock.sweep.store import Store


class InterruptedSweepError(PenstockError):
    """Ctrl-C; what is done is kept."""

    exit_code = 130


def run(
    plan: Plan,
    store: Store,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> tuple[pl.DataFrame, list[str]]:
    """Runs the missing simulations and gives the folder's table, and a line for each failure.

    However it ends, what was computed is in the folder.

    Raises:
        RunError: the cluster cannot be used, or nothing could be computed.
        InterruptedSweepError: Ctrl-C.
    """
    tasks = [task for of_point in plan.points.values() for task in of_point]
    missing = [task for task in tasks if task.key not in store.done]
    failures: list[str] = []

    def failed(task: Task, error: PenstockError) -> None:
        failures.append(f"{_where(plan, task)}: {error}")

    try:
        for task, row in execution.execute(
            missing, jobs=jobs, cluster=cluster, progress=progress, failed=failed
        ):
            if task.key not in store.done:
                store.add(task, fields.flat(json.loads(row[2])))
    except KeyboardInterrupt:
        done = sum(task.key in store.done for task in tasks)
        message = (
            f"interrupted; {done} of {len(tasks)} runs are in {store.folder}, "
            "and the same command goes on from there"
        )
        raise InterruptedSweepError(message) from None
    finally:
        table = store.merge(plan)
    if table.is_empty():
        raise RunError(failures[0])
    return table, failures


def _where(plan: Plan, task: Task) -> str:
    """The point of a task, its scheme and seed."""
    point = next(point for point, tasks in plan.points.items() if task in tasks)
    values = [f"{key.name}={value.text}" for key, value in zip(plan.keys, point, strict=True)]
    return ", ".join(values)


def folder_note(folder: Path, plan: Plan, store: Store) -> str:
    """What is said of runs that are there already; empty if there are none."""
    tasks = [task for of_point in plan.points.values() for task in of_point]
    there = sum(task.key in store.done for task in tasks)
    return f"{there} of {len(tasks)} runs are in {folder} already" if there else ""
