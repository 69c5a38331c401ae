# SPDX-License-Identifier: Apache-2.0
"""The runs of several experiments as one list of tasks; each is handed on as its last run ends."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock import api, execution
from penstock.api import Prepared
from penstock.errors import PenstockError
from penstock.execution import SIMULATOR, Progress, Row, Task
from penstock.runs import Run
from penstock_papers.experiment import Experiment


@dataclass(eq=False)
class Work:
    """An experiment whose runs have not all ended."""

    experiment: Experiment
    prepared: dict[str, Prepared]
    missing: set[Task]
    rows: dict[Task, Row] = field(default_factory=dict)
    failures: dict[str, None] = field(default_factory=dict)
    has_queues: bool = True
    """Whether the samples of the queues are kept, most of a run's bytes; figures need them."""

    @property
    def computed_s(self) -> float:
        """The time that its simulations took, on one core each."""
        walls = (json.loads(row.summary)["performance"]["wall_s"] for row in self.rows.values())
        return float(sum(walls))

    def runs(self) -> dict[str, Run]:
        """Its runs by name; the rows are let go."""
        made = {name: one.collect(self.rows) for name, one in self.prepared.items()}
        self.rows.clear()
        return made


def prepare(made: Experiment, on: str = SIMULATOR) -> Work:
    """Checks the runs of an experiment.

    Raises:
        ScenarioError: one cannot run on this substrate.
    """
    prepared = {}
    if made.scenario is not None:
        for name, overrides in made.runs.items():
            prepared[name] = api.prepare(
                made.scenario,
                schemes=made.schemes or None,
                overrides=overrides,
                seeds=made.seeds,
                on=on,
            )
    return Work(made, prepared, {task for one in prepared.values() for task in one.tasks})


def ended(
    works: Sequence[Work],
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Work]:
    """Runs what the works need, equal runs once; yields each in the order of their last runs.

    A work with `failures` has no rows to judge.

    Raises:
        RunError: the cluster cannot be used.
    """
    users: dict[Task, list[Work]] = {}
    for work in works:
        for prepared in work.prepared.values():
            for task in prepared.tasks:
                users.setdefault(task, []).append(work)
    complete = [work for work in works if not work.missing]  # theory alone

    def done(task: Task, work: Work) -> None:
        if task in work.missing:
            work.missing.discard(task)
            if not work.missing:
                complete.append(work)

    def failed(task: Task, error: PenstockError) -> None:
        for work in users[task]:
            work.failures[f"{task.scheme}, seed {task.seed}: {error}"] = None
            done(task, work)

    yield from _taken(complete)
    for task, row in execution.execute(
        users, jobs=jobs, cluster=cluster, progress=progress, failed=failed
    ):
        for work in users[task]:
            work.rows[task] = row if work.has_queues else _without_samples(row)
            done(task, work)
        yield from _taken(complete)
    yield from _taken(complete)  # those whose last run failed


def _without_samples(row: Row) -> Row:
    def header(table: bytes) -> bytes:
        return table[: table.find(b"\n") + 1]

    return row._replace(queues=header(row.queues), windows=header(row.windows))


def _taken(complete: list[Work]) -> Iterator[Work]:
    while complete:
        yield complete.pop(0)
