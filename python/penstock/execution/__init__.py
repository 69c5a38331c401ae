# SPDX-License-Identifier: Apache-2.0
"""Runs tasks: on this machine's cores, on a Dask cluster, or on real TCP.

    task           a scenario, a scheme, a seed and a substrate; its key; the row it results in
    build          programs of this repository, and digests of the code that computes results
    unfinished     rows of a run that has not ended, in its folder
    threads        the simulator on the cores of this machine
    dask_cluster   the simulator on the workers of a Dask scheduler
    lab/           the laboratory: real TCP in network namespaces of this machine

Start with `execute`, which picks the executor. A row depends on its task only, so it may be
computed anywhere and kept under the task's key; rows of all executors have the same columns.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from penstock import terms
from penstock.errors import PenstockError, ScenarioError
from penstock.execution import dask_cluster, threads
from penstock.execution.lab import executor as laboratory
from penstock.execution.task import (
    LABORATORY,
    OVS,
    SIMULATOR,
    SUBSTRATES,
    Finished,
    Progress,
    Row,
    Task,
    files_of,
    substrate_of,
)
from penstock.execution.unfinished import Rows

__all__ = [
    "LABORATORY",
    "OVS",
    "SIMULATOR",
    "SUBSTRATES",
    "Progress",
    "Row",
    "Rows",
    "Task",
    "execute",
    "files_of",
    "substrate_of",
]


@terms.of_arguments
def execute(
    tasks: Iterable[Task],
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    failed: Callable[[Task, PenstockError], object] | None = None,
    kept: Rows | None = None,
) -> Iterator[tuple[Task, Row]]:
    """Runs the tasks and yields each with its row as it ends, in any order.

    Tasks with equal keys run once. When the caller stops iterating, the running ones end soon.

    Args:
        tasks: the runs to compute, all on one substrate.
        jobs: threads of the simulator; default: one per core.
        cluster: the address of a Dask scheduler, as `tcp://head:8786`, instead of this machine.
        progress: called on this thread when a task ended, and ten times a second meanwhile (not on
            a cluster).
        failed: called with a task that cannot be computed; the others go on.
        kept: rows of earlier commands, which are not computed again; those of this one are added.

    Raises:
        RunError, ScenarioError: a task cannot be computed, and there is no `failed`; or the
            cluster cannot be used.
        KeyboardInterrupt: within a second of Ctrl-C.
    """
    if jobs is not None and jobs < 1:
        message = f"jobs: is {jobs}; allowed: 1 or more"
        raise ScenarioError(message)
    alike: dict[str, list[Task]] = {}
    for task in tasks:
        alike.setdefault(task.key, []).append(task)
    for key in list(alike):
        if kept is not None and (row := kept.get(key)) is not None:
            yield from ((task, row) for task in alike.pop(key))
    distinct = [same[0] for same in alike.values()]
    with contextlib.closing(_started(distinct, jobs, cluster, progress)) as results:
        for number, result in results:
            if kept is not None and not isinstance(result, BaseException):
                kept.add(distinct[number].key, result)
            for task in alike[distinct[number].key]:
                if not isinstance(result, BaseException):
                    yield task, result
                elif failed is not None and isinstance(result, PenstockError):
                    failed(task, result)
                else:
                    raise result


def _started(
    tasks: Sequence[Task], jobs: int | None, cluster: str | None, progress: Progress | None
) -> Finished:
    """The executor of these tasks, at work."""
    on_simulator = all(task.on == SIMULATOR for task in tasks)
    if jobs is not None and not (on_simulator and cluster is None):
        message = "--jobs: is for the simulator on this machine; leave it out"
        raise ScenarioError(message)
    if cluster is None:
        return (
            threads.run(tasks, jobs, progress) if on_simulator else laboratory.run(tasks, progress)
        )
    if not on_simulator:
        message = "--cluster: is for the simulator; leave out --on"
        raise ScenarioError(message)
    return dask_cluster.run(tasks, cluster, progress)
