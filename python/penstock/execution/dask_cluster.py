# SPDX-License-Identifier: Apache-2.0
"""Simulations on a Dask cluster (https://distributed.dask.org): one future a task.

The scheduler reassigns a dead worker's tasks. A worker computes what this machine would: it
refuses if it has another version of Penstock.
"""

import contextlib
import importlib
import logging
import socket
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

from penstock import _native
from penstock.errors import PenstockError, RunError, ScenarioError
from penstock.execution import threads
from penstock.execution.task import Finished, Progress, Row, Task, counted

_PATIENCE_S = 10  # for the scheduler to answer and the first worker to come


class _UnfitWorkerError(RunError):
    """A worker that cannot take part, whatever the task."""


def run(tasks: Sequence[Task], address: str, progress: Progress | None) -> Finished:
    """Runs on the workers of the scheduler at `address`.

    Raises:
        RunError: it cannot be reached or has no workers, is lost, or a worker cannot take part.
        ScenarioError: distributed is not installed.
    """
    distributed = _distributed()
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # reported in one line below
    try:
        host, port = distributed.comm.get_address_host_port(address, strict=True)
        socket.create_connection((host, port), _PATIENCE_S).close()  # fails sooner than Client
        client = distributed.Client(address, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        message = f"cluster {address}: cannot be reached ({reason}); start `dask scheduler` there"
        raise RunError(message) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError:
            message = f"cluster {address}: has no workers; start some: `dask worker {address}`"
            raise RunError(message) from None
        version = _native.__version__
        futures = [client.submit(simulate, task, version, pure=False) for task in tasks]
        numbers = {future.key: number for number, future in enumerate(futures)}
        try:
            for done, future in enumerate(distributed.as_completed(futures, loop=client.loop), 1):
                number = numbers[future.key]
                yield number, _result(future, address)
                future.release()
                if progress is not None:
                    progress(done / len(tasks), counted(done, len(tasks)))
        finally:
            if client.status == "running":
                client.cancel(futures)


def simulate(task: Task, version: str) -> Row:
    """Runs one task, on a worker.

    Raises:
        RunError, ScenarioError: it cannot be computed here.
    """
    if version != _native.__version__:
        message = f"has Penstock {_native.__version__} and not {version}; install the same"
        raise _UnfitWorkerError(message)
    try:
        return threads.simulate(task)
    except ScenarioError as error:  # it was valid on the client: only files can differ
        message = f"{error} (on a worker: files of a scenario must be in a folder that all share)"
        raise ScenarioError(message) from None


def _distributed() -> Any:  # noqa: ANN401 (its calls have no types)
    try:
        return importlib.import_module("distributed")
    except ModuleNotFoundError:
        message = "--cluster: needs Dask; pip install 'penstock[cluster]'"
        raise ScenarioError(message) from None


def _result(future: Any, address: str) -> Row | BaseException:  # noqa: ANN401 (as above)
    """The row of a future, or why it has none.

    Raises:
        RunError: no other future will have a row either.
    """
    error = None
    # The connection may be lost after the future has finished and before its row arrives.
    with contextlib.suppress(OSError, CancelledError):
        if future.status == "finished":
            row: Row = future.result()
            return row
        if future.status == "error":
            error = future.exception()
    if error is None:
        message = f"cluster {address}: the connection was lost; finished runs are kept"
        raise RunError(message)
    if isinstance(error, _UnfitWorkerError):
        message = f"cluster {address}: a worker {error}"
        raise RunError(message)
    if isinstance(error, PenstockError):
        return error
    if isinstance(error, _distributed().KilledWorker):
        return RunError(f"cluster {address}: several workers died of it; have they enough memory?")
    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    message = f"cluster {address}: a worker cannot run Penstock {_native.__version__} ({reason})"
    raise RunError(message)
