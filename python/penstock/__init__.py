# SPDX-License-Identifier: Apache-2.0
"""Penstock simulates what each remedy for TCP incast would do to your traffic.

>>> import penstock
>>> run = penstock.run("demo", schemes=["drop-tail", "hcf"])  # doctest: +SKIP
>>> run.flows.group_by("scheme", "traffic").agg(pl.col("fct_s").quantile(0.99))  # doctest: +SKIP

Modules, each importing only those above it:

    errors, units, stats, metrics   what can go wrong; units; statistics; every number's name
    folders, scenario               folders of results; scenarios as text
    execution/                      runs tasks: threads, Dask, laboratory
    tables, results                 rows of tasks as tables and a summary
    show/                           terminal, pages and figures
    runs, api                       a run with its folder; `run`, `prepare` and the like
    compare/, sweep/, tune/         two runs; a grid of runs; a search
    cli/                            the command `penstock`

Start with `api.run`. Public names are imported when first used (PEP 562): `import penstock` itself
loads neither polars nor the simulator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError, RunError, ScenarioError

if TYPE_CHECKING:
    from penstock.api import prepare, resolved, run, schemes, validate
    from penstock.runs import Run

__all__ = [
    "PenstockError",
    "Run",
    "RunError",
    "ScenarioError",
    "prepare",
    "resolved",
    "run",
    "schemes",
    "validate",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name)
    if name not in __all__:
        message = f"module 'penstock' has no attribute '{name}'"
        raise AttributeError(message)
    return getattr(import_module("penstock.api"), name)
