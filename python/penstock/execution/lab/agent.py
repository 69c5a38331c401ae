# SPDX-License-Identifier: Apache-2.0
"""penstockd on the protected ports of a fabric."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.errors import RunError
from penstock.execution import build
from penstock.execution.lab import programs, system
from penstock.execution.lab.plan import Plan, Port
from penstock.execution.lab.schemes import Scheme

PROGRAM = build.AGENT
_COUNTERS = {"rewrites": "rewritten", "clamps": "clamps", "floors": "floored", "marks": "marked"}
"""What a port's summary takes from the agent's counters, and how they are called there."""


@contextlib.contextmanager
def attached(scheme: Scheme, plan: Plan, tag: str) -> Iterator[None]:
    """Holds the scheme on every protected port while the block runs.

    Raises:
        RunError: penstockd is missing, refuses, or ended before the block did; one line.
    """
    held = []
    with contextlib.ExitStack() as stack:
        for port in plan.protected if scheme.agent else ():
            pins = _pins(port)
            log = system.STATE / f"penstockd-{port.node}-{port.interface}.log"
            command = scheme.attach(port, str(pins))
            started = system.inside(plan.name(port.node, tag), build.find(PROGRAM), *command)
            process = stack.enter_context(programs.running(started, log))
            # Pins come before the programs: only its word says that packets are seen.
            programs.wait_until(process, " attached", PROGRAM, log)
            held.append((process, log))
        yield
        for process, log in held:  # without its heartbeat the windows are left alone
            programs.still(process, PROGRAM, log)


def counters(scheme: Scheme, plan: Plan, tag: str) -> dict[str, dict[str, int]]:
    """What the agent counted, by port; empty without one. Ask while it is attached.

    Raises:
        RunError: penstockd does not know the port.
    """
    return {
        port.name: _counters(port, plan.name(port.node, tag))
        for port in (plan.protected if scheme.agent else ())
    }


def _counters(port: Port, namespace: str) -> dict[str, int]:
    status = ("status", port.interface, "--json", "--for", "1 ms", "--pins", str(_pins(port)))
    told = system.call(system.inside(namespace, build.find(PROGRAM), *status))
    return read_status(told, port.interface)


def read_status(text: str, interface: str) -> dict[str, int]:
    """The counters of an interface from `penstockd status --json`.

    Raises:
        RunError: it is not in there.
    """
    ports: list[dict[str, Any]] = json.loads(text)
    for port in ports:
        if port["interface"] == interface:
            counted: dict[str, int] = port["counters"]
            return {key: counted[name] for key, name in _COUNTERS.items()}
    message = f"lab: penstockd status does not list {interface}; is it still attached?"
    raise RunError(message)


def _pins(port: Port) -> Path:
    """A folder for each namespace: interfaces of the same name exist in several."""
    folder = system.PINS / port.node
    folder.mkdir(exist_ok=True)
    return folder
