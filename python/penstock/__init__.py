# SPDX-License-Identifier: Apache-2.0
"""Penstock simulates what each remedy for TCP incast would do to your traffic.

>>> import penstock
>>> run = penstock.run("demo", schemes=["drop-tail", "hcf"])  # doctest: +SKIP
>>> run.flows.group_by("scheme", "traffic").agg(pl.col("fct_s").quantile(0.99))  # doctest: +SKIP

Each module imports only those of lines above its own:

    errors                    what can go wrong, as one line each
    terms                     errors of the Python API in its own terms
    _native                   the simulator
    units, stats              numbers as people write them; means and their confidence
    metrics, columns          numbers of a summary: unit and meaning; columns of the tables of a run
    metric_names              finds these numbers by the names that people write
    missing                   what a number leaves out: unfinished flows, seeds without it
    folders                   folders of results
    papers                    the one link to penstock_papers
    scenario                  scenarios as text
    execution/                runs tasks: on threads, on Dask, in the laboratory
    provenance, tables        command and machine; polars tables of flows, queues, ports
    results                   the rows of a scenario's tasks as a summary and tables
    show/                     terminal, pages and figures
    runs                      results with their folder and report
    exports/                  recorded packets for Wireshark, and events as JSON
    api                       `run`, `prepare` and the like
    comparisons/, sweeps/, searches/   several runs; a grid of runs; a search
    lab                       the laboratory on this machine
    imports/                  recordings of other programs as scenarios
    fleet/                    what the agents of many hosts saw
    cli/                      the command `penstock`

Start with `api.run`. Public names are imported when first used (PEP 562): `import penstock` itself
loads neither polars nor the simulator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError, RunError, ScenarioError

if TYPE_CHECKING:
    from penstock import lab
    from penstock.api import prepare, resolved, run, schemes, validate
    from penstock.comparisons import compare
    from penstock.papers import reproduce
    from penstock.runs import Run
    from penstock.searches.tuning import tune
    from penstock.sweeps.sweeping import sweep

__all__ = [
    "PenstockError",
    "Run",
    "RunError",
    "ScenarioError",
    "compare",
    "lab",
    "prepare",
    "reproduce",
    "resolved",
    "run",
    "schemes",
    "sweep",
    "tune",
    "validate",
]
_MODULES = {
    "Run": "runs",
    "compare": "comparisons",
    "reproduce": "papers",
    "sweep": "sweeps.sweeping",
    "tune": "searches.tuning",
}
"""Where the public names are that are not in `api`."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name)
    if name == "lab":
        return import_module("penstock.lab")
    if name not in __all__:
        message = f"module 'penstock' has no attribute '{name}'"
        raise AttributeError(message)
    public = getattr(import_module(f"penstock.{_MODULES.get(name, 'api')}"), name)
    if not isinstance(public, type):
        public = import_module("penstock.terms").of_api(public)
        globals()[name] = public
    return public


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__"])
