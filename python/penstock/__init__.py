# SPDX-License-Identifier: Apache-2.0
"""Penstock simulates what each cure for TCP incast would do to your traffic.

>>> import penstock
>>> run = penstock.run("demo", schemes=["drop-tail", "hcf"])  # doctest: +SKIP
>>> run.flows.group_by("scheme", "traffic").agg(pl.col("fct_s").quantile(0.99))  # doctest: +SKIP

Names are imported when first used: `import penstock` itself loads neither polars nor the simulator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError, RunError, ScenarioError

if TYPE_CHECKING:
    from penstock.api import resolved, run, schemes, validate
    from penstock.results import Run

__all__ = [
    "PenstockError",
    "Run",
    "RunError",
    "ScenarioError",
    "resolved",
    "run",
    "schemes",
    "validate",
]

_HOMES = {
    "Run": "penstock.results",
    "resolved": "penstock.api",
    "run": "penstock.api",
    "schemes": "penstock.api",
    "validate": "penstock.api",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name)
    if name not in _HOMES:
        message = f"module 'penstock' has no attribute '{name}'"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)
