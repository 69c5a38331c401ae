# SPDX-License-Identifier: Apache-2.0
"""Builds a plan on this machine."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from penstock.errors import RunError
from penstock.execution.lab import system
from penstock.execution.lab.plan import Plan


@contextmanager
def built(plan: Plan) -> Iterator[str]:
    """The fabric while the block runs; yields the tag in the names of its namespaces.

    Only while holding `system.locked`.

    Raises:
        RunError: a command failed; what stood is removed.
    """
    tag = str(os.getpid())
    system.remove_all()
    try:
        system.PINS.mkdir(parents=True)
        system.call(["mount", "-t", "bpf", "penstock", str(system.PINS)])
        system.call(["ip", "-batch", "-"], "\n".join(plan.creation(tag)) + "\n")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda node: _set_up(plan, node, tag), plan.namespaces))
        for node, space in plan.namespaces.items():
            if space.is_switch and not space.is_ovs:
                _wait(plan.name(node, tag))
        yield tag
    finally:
        system.remove_all()


def _set_up(plan: Plan, node: str, tag: str) -> None:
    shell = system.inside(plan.name(node, tag), "sh", "-es")
    system.call(shell, plan.script(node) + "\n")


def _wait(switch: str) -> None:
    """Waits until every port of a bridge forwards, which it does once it has seen its carrier."""
    for _ in range(500):
        ports = json.loads(system.call(system.inside(switch, "bridge", "-j", "link", "show")))
        if all(port["state"] == "forwarding" for port in ports):
            return
        time.sleep(0.01)
    message = f"lab: the ports of {switch} do not come up; see `ip netns exec {switch} bridge link`"
    raise RunError(message)
