# SPDX-License-Identifier: Apache-2.0
"""Builds a plan on this machine."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from penstock.lab import system
from penstock.lab.plan import Plan


@contextmanager
def built(plan: Plan) -> Iterator[str]:
    """The fabric while the block runs; gives the tag in the names of its namespaces.

    Only for whoever holds `system.locked`.

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
        yield tag
    finally:
        system.remove_all()


def _set_up(plan: Plan, node: str, tag: str) -> None:
    shell = system.inside(plan.name(node, tag), "sh", "-es")
    system.call(shell, plan.script(node) + "\n")
