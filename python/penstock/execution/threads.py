# SPDX-License-Identifier: Apache-2.0
"""Simulations on the cores of this machine: one thread a task, as the simulator drops the GIL."""

import contextlib
import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from penstock import _native
from penstock.execution.task import Finished, Progress, Row, Task, counted
from penstock.scenario import trace_to_csv

TICK_S = 0.1  # how often progress is shown
_MOST_JOBS = 4096  # more threads than machines have cores


def simulate(task: Task, progress: Progress | None = None, threads: int = 1) -> Row:
    """Runs one task on this thread, and a large fabric on up to `threads`, with the same result."""
    pair = [(task.scheme, task.seed)]
    return Row(*_native.run(task.scenario, task.origin, pair, threads, trace_to_csv, progress)[0])


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _StoppedError(Exception):
    """Ends a simulation whose result is no longer needed."""


def run(tasks: Sequence[Task], jobs: int | None, progress: Progress | None) -> Finished:
    """Runs the tasks on `jobs` threads; default: one per core."""
    jobs = min(jobs or cores(), _MOST_JOBS)
    stop = threading.Event()
    fractions = [0.0] * len(tasks)
    # A few only: a caller that is slower than the simulations would else fill the memory.
    finished: queue.Queue[tuple[int, Row | BaseException]] = queue.Queue(4 * jobs)

    def hand_over(number: int, result: Row | BaseException) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                finished.put((number, result), timeout=TICK_S)
                return

    def work(number: int) -> None:
        def listen(fraction: float, _: str) -> None:
            fractions[number] = fraction
            if stop.is_set():  # signals reach the main thread only, which sets it
                raise _StoppedError

        try:
            hand_over(number, simulate(tasks[number], listen, max(1, jobs // len(tasks))))
        except BaseException as error:  # raised on the caller's thread
            hand_over(number, error)

    with ThreadPoolExecutor(min(jobs, len(tasks)) or 1) as pool:
        try:
            for number in range(len(tasks)):
                pool.submit(work, number)
            done = 0
            while done < len(tasks):
                with contextlib.suppress(queue.Empty):
                    number, result = finished.get(timeout=TICK_S)
                    fractions[number] = 1.0
                    done += 1
                    yield number, result
                if progress is not None:
                    progress(sum(fractions) / len(tasks), counted(done, len(tasks)))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
