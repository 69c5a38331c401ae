# SPDX-License-Identifier: Apache-2.0
"""The laboratory: scenarios on real TCP in network namespaces of this machine (root).

`check` lists what it needs, and `run` is `penstock.run` there.
"""

from typing import Any

from penstock import api, terms
from penstock.execution import LABORATORY
from penstock.execution.lab import check as machine
from penstock.execution.lab import system
from penstock.execution.lab.check import Finding
from penstock.runs import Run
from penstock.scenario import Scenario

__all__ = ["Finding", "check", "clean", "run"]


@terms.of_api
def check() -> list[Finding]:
    """What the laboratory needs of this machine, and whether that is there, with remedies."""
    return machine.findings()


@terms.of_api
def clean() -> list[str]:
    """Removes the namespaces that killed runs left behind, and returns their names.

    Raises:
        RunError: this process is not root's.
    """
    system.need_root()
    left = system.leftovers()
    with system.locked():
        pass
    return left


@terms.of_api
def run(scenario: Scenario, **options: Any) -> Run:  # noqa: ANN401 (those of `penstock.run`)
    """Runs a scenario on real TCP; the arguments are those of `penstock.run`."""
    run_there = terms.of_api(api.run)
    made: Run = run_there(scenario, **{"on": LABORATORY, **options})
    return made
