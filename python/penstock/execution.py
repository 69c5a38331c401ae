# SPDX-License-Identifier: Apache-2.0
"""Many simulations at once: on all cores of this machine, or on a Dask cluster.

One task is one simulation: a scenario, a scheme and a seed. What comes back depends on nothing
else, so it may be computed anywhere and kept under the task's key.
"""

import contextlib
import hashlib
import json
import os
import queue
import threading
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from penstock import _native
from penstock.errors import PenstockError
from penstock.traces import to_csv

Row = tuple[str, int, str, bytes, bytes]
"""One simulation's results: scheme, seed, summary (JSON), flows (CSV), queue samples (CSV)."""
Progress = Callable[[float, str], object]
"""Called with (fraction of all done, "12 of 40 runs")."""
Ended = Generator[tuple[int, Row | BaseException]]
"""The number of a task that ended, and its row or what went wrong."""

TICK_S = 0.1  # how often progress is shown
NAMING_FILES = ("file", "size")
"""The keys of a `[traffic.*]` table that may name a file."""
_SAID = ("title", "about", "schemes", "seeds")  # what a scenario says beside what is simulated


@dataclass(frozen=True)
class Task:
    """One simulation: `scheme` and `seed` of a scenario as resolved, in TOML."""

    scenario: str
    origin: str
    """The scenario's file, for messages."""
    scheme: str
    seed: int

    @cached_property
    def key(self) -> str:
        """The SHA-256 of all that decides the result, the simulator itself included."""
        deciding = _deciding(self.scenario, self.scheme)
        said = [simulator(), deciding, self.scheme, self.seed]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the key, which another version of Penstock would compute otherwise."""
        return {name: value for name, value in self.__dict__.items() if name != "key"}


@lru_cache(maxsize=64)
def parsed(scenario: str) -> dict[str, Any]:
    """A resolved scenario; not to be changed, since it is shared by all who read the same text."""
    return tomllib.loads(scenario)


def _deciding(scenario: str, scheme: str) -> dict[str, Any]:
    """The part of a scenario that decides what a scheme gives; of files their contents."""
    document = {key: value for key, value in parsed(scenario).items() if key not in _SAID}
    document["scheme"] = document.get("scheme", {}).get(scheme)
    document["traffic"] = [
        [name, {key: _content(key, value) for key, value in table.items()}]
        for name, table in document.get("traffic", {}).items()
    ]
    return document


def _content(key: str, value: Any) -> Any:  # noqa: ANN401 (a TOML value)
    if key in NAMING_FILES and isinstance(value, str) and (path := Path(value)).is_file():
        stat = path.stat()
        return _digest(path, stat.st_mtime_ns, stat.st_size)
    return value


@cache
def simulator() -> str:
    """A digest of the simulator's code: results of another one are not of this one."""
    module = Path(_native.__file__)
    return _digest(module, 0, 0)


@lru_cache(maxsize=64)
def _digest(path: Path, _changed: int, _size: int) -> str:
    return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()} {path.suffix}"


def execute(
    tasks: Iterable[Task],
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
    failed: Callable[[Task, PenstockError], object] | None = None,
) -> Iterator[tuple[Task, Row]]:
    """Runs the tasks and gives each with its row as it ends, in any order.

    Tasks with equal keys run once. When the caller stops asking, the running ones end soon.

    Args:
        tasks: what to simulate.
        jobs: threads on this machine; default: one a core.
        cluster: the address of a Dask scheduler, as `tcp://head:8786`, instead of this machine.
        progress: called on this thread when a task ended, and ten times a second meanwhile (not on
            a cluster).
        failed: called with a simulation that cannot be computed; the others go on.

    Raises:
        RunError, ScenarioError: a simulation cannot be computed, and there is no `failed`; or the
            cluster cannot be used.
        KeyboardInterrupt: within a second of Ctrl-C.
    """
    alike: dict[str, list[Task]] = {}
    for task in tasks:
        alike.setdefault(task.key, []).append(task)
    distinct = [same[0] for same in alike.values()]
    if cluster is not None:
        from penstock.cluster import on_cluster

        ended = on_cluster(distinct, cluster, progress)
    else:
        ended = _on_threads(distinct, jobs or cores(), progress)
    with contextlib.closing(ended):
        for number, result in ended:
            for task in alike[distinct[number].key]:
                if not isinstance(result, BaseException):
                    yield task, result
                elif failed is not None and isinstance(result, PenstockError):
                    failed(task, result)
                else:
                    raise result


def simulate(task: Task, progress: Progress | None = None, threads: int = 1) -> Row:
    """Runs one task on this thread, and a large fabric on up to `threads`, with the same result."""
    which = [(task.scheme, task.seed)]
    return _native.run(task.scenario, task.origin, which, threads, to_csv, progress)[0]


def counted(done: int, total: int) -> str:
    """What progress says: `12 of 40 runs`."""
    return f"{done} of {total} run{'' if total == 1 else 's'}"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _StoppedError(Exception):
    """Ends a simulation whose result nobody waits for."""


def _on_threads(tasks: Sequence[Task], jobs: int, progress: Progress | None) -> Ended:
    """Runs on this machine's cores: the simulator leaves Python's lock to the other threads."""
    stop = threading.Event()
    fractions = [0.0] * len(tasks)
    ended: queue.SimpleQueue[tuple[int, Row | BaseException]] = queue.SimpleQueue()

    def work(number: int) -> None:
        def listen(fraction: float, _: str) -> None:
            fractions[number] = fraction
            if stop.is_set():  # signals reach the main thread only, which tells it here
                raise _StoppedError

        try:
            ended.put((number, simulate(tasks[number], listen, max(1, jobs // len(tasks)))))
        except BaseException as error:  # raised on the caller's thread
            ended.put((number, error))

    with ThreadPoolExecutor(min(jobs, len(tasks)) or 1) as pool:
        try:
            for number in range(len(tasks)):
                pool.submit(work, number)
            done = 0
            while done < len(tasks):
                with contextlib.suppress(queue.Empty):
                    number, result = ended.get(timeout=TICK_S)
                    fractions[number] = 1.0
                    done += 1
                    yield number, result
                if progress is not None:
                    progress(sum(fractions) / len(tasks), counted(done, len(tasks)))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
