# SPDX-License-Identifier: Apache-2.0
"""Holds claims and figures against the scenario: its schemes, traffic, ports and their numbers."""

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

from penstock import _native, api
from penstock.errors import RunError
from penstock.traces import to_csv
from penstock_papers import schema
from penstock_papers.experiment import COLUMNS, Experiment
from penstock_papers.measures import Measure

# Milliseconds of a block, and of flows of all sizes: it has every number that a run may have.
_SAMPLE = """
title = "Sample"
duration = "10 ms"
schemes = ["drop-tail"]
[fabric]
kind = "dumbbell"
senders = 2
receivers = 1
access = { rate = "1 Gb/s", delay = "5 us" }
bottleneck = { rate = "1 Gb/s", delay = "5 us", buffer = "50 packets" }
[tcp]
profile = "newreno-ns2"
[traffic.web]
kind = "incast"
flows = 2
block = "20 kB"
from = "senders"
to = "receiver1"
[traffic.sizes]
kind = "poisson"
flows = 20
size = "websearch"
load = "50 %"
from = "senders"
to = "receiver1"
[measure]
ports = ["bottleneck"]
sizes = { small = "1 GB" }
"""


def check(made: Experiment) -> None:
    """Refuses claims and figures about what the experiment's runs will not have.

    Raises:
        ScenarioError: the scenario or a run's overrides cannot be used.
        RunError: a claim or figure; one line with the file and the key.
    """
    if made.scenario is None:
        return
    has = {name: _numbers(made, name) for name in made.runs}
    for label, measure, is_column, runs in _measures(made):
        for run in runs:
            if run not in has:
                continue
            try:
                _check(measure, *has[run])
                if not is_column:
                    _check_field(measure)
            except ValueError as error:
                message = f"papers/{made.id}/claims.toml: {label}: {error}"
                raise RunError(message) from None


def _measures(made: Experiment) -> Iterator[tuple[str, Measure, bool, tuple[str, ...]]]:
    """Label, measure, whether its field is a column of the flows' table, and the runs."""
    for claim in made.claims:
        for key in ("measure", "against"):
            side = getattr(claim, key)
            if isinstance(side, Measure) and not side.analysis:
                runs = (side.run,) if side.run else made.runs_of(claim)
                is_column = bool(side.each) or side.quantile is not None
                yield f"claim {claim.id}: {key}", side, is_column, runs
    for figure in made.figures:
        if figure.kind != "analysis":
            label = f"figure {figure.name or figure.title}: measure"
            is_column = figure.kind in COLUMNS or bool(figure.measure.each)
            yield label, figure.measure, is_column, figure.runs or tuple(made.runs)


def _numbers(made: Experiment, run: str) -> tuple[set[str], set[str], set[str]]:
    """The names of schemes, groups and ports that a run will have."""
    assert made.scenario is not None
    text = api.resolved(made.scenario, overrides=made.runs[run])
    document = tomllib.loads(text)
    # Also those that the laboratory leaves out: claims about them are not judged.
    schemes = {*made.schemes, *document["schemes"]}
    groups = set(document["traffic"])
    for size in document.get("measure", {}).get("sizes", {}):
        groups |= {f"{name}/{size}" for name in document["traffic"]}
    layout = json.loads(_native.layout(text, str(made.scenario), to_csv))
    ports = {f"{port['from']}->{port['to']}" for port in layout["ports"] if port["is_measured"]}
    return schemes, groups, ports


def _check(measure: Measure, schemes: set[str], groups: set[str], ports: set[str]) -> None:
    if measure.scheme:
        schema.one_of("scheme", measure.scheme, schemes)
    if measure.group:
        schema.one_of("group", measure.group, groups)
    else:
        schema.one_of("port", measure.port, ports)


def _check_field(measure: Measure) -> None:
    kind = "groups" if measure.group else "ports"
    for path in filter(None, (measure.field, measure.per)):
        schema.one_of("field", path, _paths(kind))


@cache
def _paths(kind: str) -> tuple[str, ...]:
    """Every dotted path to a number that a group or port may have."""
    run = api.run(tomllib.loads(_SAMPLE))
    owners = run.summary["results"][0][kind]
    return tuple(dict.fromkeys(path for owner in owners.values() for path in _flat(owner)))


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key
