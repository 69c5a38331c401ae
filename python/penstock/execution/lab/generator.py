# SPDX-License-Identifier: Apache-2.0
"""penstock-traffic: plays the scenario's own traffic on real sockets, and samples the ports."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from penstock.errors import RunError
from penstock.execution import build
from penstock.execution.lab import programs, system
from penstock.execution.lab.plan import Plan
from penstock.execution.task import Task
from penstock.scenario import parsed
from penstock.units import to_seconds

Listener = Callable[[float], object]
"""Called with the fraction of the run that is done."""

_TICK_S = 0.1
_TABLES = ("flows.csv", "queues.csv", "windows.csv", "jobs.csv")


class Played(NamedTuple):
    """The results of one run."""

    summary: dict[str, Any]
    flows: bytes
    """CSV."""
    queues: bytes
    """CSV."""
    windows: bytes = b""
    """CSV."""
    jobs: bytes = b""
    """CSV."""


class Playing:
    """penstock-traffic at work."""

    def __init__(self, process: programs.Process, folder: Path, duration_s: float) -> None:
        """Of a process that writes into the folder when it ends."""
        self._process, self._folder = process, folder
        self._duration_s, self._begun = duration_s, time.monotonic()

    def is_over(self, listen: Listener) -> bool:
        """Whether it has ended; calls `listen`, and takes a tenth of a second."""
        listen(min((time.monotonic() - self._begun) / self._duration_s, 0.99))
        if self._process.has_ended():
            return True
        time.sleep(_TICK_S)
        return False

    def results(self) -> Played:
        """What it wrote.

        Raises:
            RunError: it failed; one line.
        """
        self._process.check_success()
        return read(self._folder)


@contextmanager
def playing(task: Task, plan: Plan, tag: str, *, is_silent: bool = False) -> Iterator[Playing]:
    """penstock-traffic while the block runs; it ends by itself after the scenario's duration.

    If it `is_silent`, it only samples the ports.
    """
    folder = system.STATE / "traffic"
    folder.mkdir()
    files = {"scenario.toml": task.scenario, "hosts.json": plan.hosts_json(tag)}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = system.orphaned(
        build.find(build.TRAFFIC),
        str(folder / "scenario.toml"),
        *("--scheme", task.scheme, "--seed", str(task.seed)),
        *("--hosts", str(folder / "hosts.json"), "--out", str(folder), "--progress", "none"),
        *(("--no-traffic",) if is_silent else ()),
    )
    duration_s = to_seconds(parsed(task.scenario)["duration"])
    with programs.running(command, build.TRAFFIC, folder / "log") as process:
        yield Playing(process, folder, duration_s)


def read(folder: Path) -> Played:
    """The summary, flows, queue samples, windows and jobs that penstock-traffic wrote."""
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        tables = ((folder / name).read_bytes() for name in _TABLES)
        return Played(summary, *tables)
    except OSError as error:
        message = f"lab: {build.TRAFFIC} has not written {error.filename}"
        raise RunError(message) from None
