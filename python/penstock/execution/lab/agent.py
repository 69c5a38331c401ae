# SPDX-License-Identifier: Apache-2.0
"""penstockd on the protected ports of a fabric."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock import metrics
from penstock.errors import RunError
from penstock.execution import build
from penstock.execution.lab import programs, system
from penstock.execution.lab.plan import Plan, Port
from penstock.execution.lab.schemes import Scheme


@contextlib.contextmanager
def attached(scheme: Scheme, plan: Plan, tag: str) -> Iterator[None]:
    """Holds the scheme on every protected port while the block runs.

    Raises:
        RunError: penstockd is missing, refuses, or ended before the block did; one line.
    """
    processes = []
    with contextlib.ExitStack() as stack:
        for port in places(scheme, plan):
            log = system.STATE / f"penstockd-{port.node}-{port.interface}.log"
            command = scheme.attach(port, str(_pins(port)))
            inside = system.inside(plan.name(port.node, tag), build.find(build.AGENT), *command)
            process = stack.enter_context(programs.running(inside, build.AGENT, log))
            # Pins exist before the programs run: only its output confirms that packets are seen.
            process.wait_for(" attached")
            processes.append(process)
        yield
        for process in processes:  # without its heartbeat windows are not rewritten
            process.check_alive()


def counters(scheme: Scheme, plan: Plan, tag: str) -> dict[str, dict[str, int]]:
    """The agent's counters by port, read while it is attached; empty without one.

    Raises:
        RunError: penstockd does not know the port.
    """
    return {port.name: _counters(port, plan.name(port.node, tag)) for port in places(scheme, plan)}


def places(scheme: Scheme, plan: Plan) -> list[Port]:
    """Where penstockd is attached; behind ports: at hosts, or where a dumbbell's link ends."""
    ports = plan.protected if scheme.agent else []
    if scheme.is_behind:
        to_hosts = [port for port in ports if not plan.namespaces[port.far_node].is_switch]
        ports = to_hosts or ports
    return [scheme.place(port) for port in ports]


def _counters(port: Port, namespace: str) -> dict[str, int]:
    status = ("status", port.interface, "--json", "--for", "1 ms", "--pins", str(_pins(port)))
    text = system.call(system.inside(namespace, build.find(build.AGENT), *status))
    return read_status(text, port.interface)


def read_status(text: str, interface: str) -> dict[str, int]:
    """The counters of an interface from `penstockd status --json` that a summary has.

    Raises:
        RunError: the interface is not listed.
    """
    ports: list[dict[str, Any]] = json.loads(text)
    for port in ports:
        if port["interface"] == interface:
            counters = port["counters"]
            credit = (port.get("credit") or {}).get("counters", {})
            credited = {name: credit[name] for name in metrics.CREDIT_COUNTERS if credit}
            return {name: counters[name] for name in metrics.PORT_COUNTERS} | credited
    message = f"lab: penstockd status does not list {interface}; is it still attached?"
    raise RunError(message)


def _pins(port: Port) -> Path:
    """A folder for each namespace: interfaces of the same name exist in several."""
    folder = system.PINS / port.node
    folder.mkdir(exist_ok=True)
    return folder
