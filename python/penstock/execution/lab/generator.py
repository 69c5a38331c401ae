# SPDX-License-Identifier: Apache-2.0
"""penstock-traffic: the scenario's own traffic, played on real sockets."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.execution import build
from penstock.execution.lab import programs, system
from penstock.execution.lab.plan import Plan

Told = Callable[[float], object]
"""Called with the fraction of the run that is done."""

Played = tuple[dict[str, Any], bytes, bytes]
"""The summary of a run, its flows and its queue samples (CSV)."""

PROGRAM = build.TRAFFIC
_TICK_S = 0.1


def play(
    scenario: str, scheme: str, seed: int, plan: Plan, tag: str, duration_s: float, told: Told
) -> Played:
    """Plays the resolved scenario; gives its summary, flows and queue samples (CSV).

    Raises:
        RunError: penstock-traffic is missing, or refuses; one line.
    """
    folder = system.STATE / "traffic"
    folder.mkdir()
    files = {"scenario.toml": scenario, "hosts.json": plan.hosts_json(tag)}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    log = folder / "log"
    command = system.orphaned(
        build.find(PROGRAM),
        str(folder / "scenario.toml"),
        *("--scheme", scheme, "--seed", str(seed)),
        *("--hosts", str(folder / "hosts.json"), "--out", str(folder), "--progress", "none"),
    )
    begun = time.monotonic()
    with programs.running(command, log) as process:
        while process.poll() is None:
            told(min((time.monotonic() - begun) / duration_s, 0.99))
            time.sleep(_TICK_S)
    if process.returncode:
        raise programs.failure(PROGRAM, log)
    return read(folder)


def read(folder: Path) -> Played:
    """The summary, flows and queue samples that penstock-traffic wrote."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return summary, (folder / "flows.csv").read_bytes(), (folder / "queues.csv").read_bytes()
