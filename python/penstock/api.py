# SPDX-License-Identifier: Apache-2.0
"""The Python API: the same as the command line, with polars frames."""

import json
import platform
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import _native, provenance, source, stats, tables
from penstock.errors import ScenarioError
from penstock.execution import NAMING_FILES, Row, Task, execute, parsed
from penstock.results import Run, check_target
from penstock.source import Source
from penstock.traces import to_csv

Scenario = str | Path | Mapping[str, Any]
Overrides = Mapping[str, object] | Sequence[tuple[str, str]]

SIMULATOR, LABORATORY = "sim", "lab"
SUBSTRATES = (SIMULATOR, LABORATORY)
"""Where a scenario can run."""


def run(
    scenario: Scenario,
    *,
    schemes: Sequence[str] | None = None,
    overrides: Overrides | None = None,
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[float, str], object] | None = None,
    on: str = SIMULATOR,
    tools: bool = False,
) -> Run:
    """Runs a scenario under each of its schemes and seeds: simulated, or on real TCP.

    Args:
        scenario: a TOML file, the name of a shipped template, or a dict of the same shape.
        schemes: instead of the scenario's own.
        overrides: values by dotted path, as `{"tcp.min_rto": "10 ms", "traffic.mice.flows": 120}`.
        seeds: how many (1 to n), or which.
        jobs: threads; default: one a core. The results do not depend on it.
        out: also write the run's folder here.
        progress: called with (fraction done, "12 of 40 runs"), at least ten times a second.
        on: the substrate: `sim`, or `lab` for the laboratory (root; one run after another, and
            the seeds are repeats with arrivals and sizes of their own).
        tools: in the laboratory, the traffic is that of iperf3, nginx and ab.

    Raises:
        ScenarioError: the scenario, a scheme or an override cannot be used; one line.
        RunError: a run could not be computed.
    """
    if on not in SUBSTRATES:
        message = f"on: no substrate '{on}'; allowed: {', '.join(SUBSTRATES)}"
        raise ScenarioError(message)
    if out is not None:
        check_target(Path(out))
    prepared = prepare(scenario, schemes=schemes, overrides=overrides, seeds=seeds)
    if on == LABORATORY:
        from penstock.lab import run as lab

        pairs = [(task.scheme, task.seed) for task in prepared.tasks]
        origin = Path(prepared.origin)
        rows, substrate = lab.run(prepared.text, origin, pairs, progress, with_tools=tools)
        result = prepared.collect(dict(zip(prepared.tasks, rows, strict=True)))
        result.info.update(substrate)
    else:
        result = prepared.collect(dict(execute(prepared.tasks, jobs=jobs, progress=progress)))
    if out is not None:
        result.save(out)
    return result


@dataclass(frozen=True)
class Prepared:
    """A scenario with all its settings, checked and ready to be simulated."""

    text: str
    """As resolved, in TOML: its defaults written out, files by their full paths."""
    origin: str
    name: str
    """What its run's folder is called."""
    settings: tuple[tuple[str, str], ...]
    """The overrides: dotted path, value as TOML writes it."""
    tasks: tuple[Task, ...]
    """One for each scheme and seed, in the order of the run's tables."""

    def collect(self, rows: Mapping[Task, Row]) -> Run:
        """The run that the tasks' rows make; those of other tasks may be among them."""
        return _collect(self, [rows[task] for task in self.tasks])


def prepare(
    scenario: Scenario,
    *,
    schemes: Sequence[str] | None = None,
    overrides: Overrides | None = None,
    seeds: int | Sequence[int] | None = None,
) -> Prepared:
    """Checks a scenario and tells the simulations it takes; `execution.execute` runs them.

    The arguments are those of `run`.

    Raises:
        ScenarioError: it cannot be used; one line.
    """
    loaded = source.load(scenario)
    settings = _overrides(overrides, schemes, seeds)
    try:
        text = _resolved(loaded, settings)
    except ScenarioError as error:
        raise _about_schemes(error) if schemes else error from None
    document, origin = parsed(text), str(loaded.origin)
    tasks = [Task(text, origin, name, s) for name in document["schemes"] for s in _seeds(document)]
    return Prepared(text, origin, loaded.name, tuple(settings), tuple(tasks))


def resolved(scenario: Scenario, *, overrides: Overrides | None = None) -> str:
    """The scenario with its defaults written out, in TOML.

    Left open is what follows from the TCP profile, or from a port's rate and buffer.

    Raises:
        ScenarioError: it cannot be used; one line.
    """
    return _resolved(source.load(scenario), _overrides(overrides, None, None))


def validate(scenario: Scenario, *, overrides: Overrides | None = None) -> dict[str, Any]:
    """The scenario with its defaults written out, as a dict; see `resolved` for those left open.

    Raises:
        ScenarioError: it cannot be used; one line.
    """
    return tomllib.loads(resolved(scenario, overrides=overrides))


def schemes() -> list[dict[str, Any]]:
    """The built-in schemes: name, title, source and parts of each."""
    listed: dict[str, dict[str, Any]] = json.loads(_native.schemes())
    return [{"name": name, **scheme} for name, scheme in listed.items()]


def _resolved(loaded: Source, settings: list[tuple[str, str]]) -> str:
    """The scenario in TOML; the files it names by their full paths, so that it runs anywhere."""
    origin = str(loaded.origin)
    text = _native.validate(loaded.text, origin, settings, to_csv)
    found = [
        (f"traffic.{name}.{key}", json.dumps(str(path.resolve())))
        for name, traffic in parsed(text)["traffic"].items()
        for key in NAMING_FILES
        if isinstance(traffic.get(key), str)
        and (path := loaded.origin.parent / traffic[key]).is_file()
    ]
    return _native.validate(text, origin, found, to_csv) if found else text


def _about_schemes(error: ScenarioError) -> ScenarioError:
    """Names the option that was given, not the override that it becomes."""
    unknown = r'--set schemes=.*: schemes\[\d+\]: unknown scheme "(.*?)"; (.*)'
    if found := re.fullmatch(unknown, str(error)):
        return ScenarioError(f"--scheme {found[1]}: no such scheme; {found[2]}")
    return error


def _overrides(
    overrides: Overrides | None,
    schemes: Sequence[str] | None,
    seeds: int | Sequence[int] | None,
) -> list[tuple[str, str]]:
    """All settings as (dotted path, value as TOML writes it)."""
    items = overrides.items() if isinstance(overrides, Mapping) else overrides or ()
    settings = [
        (key, value if isinstance(value, str) else json.dumps(value)) for key, value in items
    ]
    if schemes:
        settings.append(("schemes", json.dumps(list(schemes))))
    if seeds is not None:
        if seeds == 0 or (not isinstance(seeds, int) and not seeds):
            message = "seeds: at least one is needed"
            raise ScenarioError(message)
        settings.append(("seeds", json.dumps(seeds if isinstance(seeds, int) else list(seeds))))
    return settings


def _collect(prepared: Prepared, rows: Sequence[Row]) -> Run:
    """The simulator's rows as one run: seeds combined, tables stacked."""
    document = tomllib.loads(prepared.text)
    seeds = _seeds(document)
    read = [(scheme, seed, json.loads(text)) for scheme, seed, text, _, _ in rows]
    results = [
        _result(scheme, [summary for of, _, summary in read if of == scheme])
        for scheme in document["schemes"]
    ]
    queues = (
        tables.read_queues(row[4], list(summary["ports"]), scheme, seed)
        for row, (scheme, seed, summary) in zip(rows, read, strict=True)
    )
    return Run(
        summary={"scenario": document, "seeds": seeds, "results": results},
        flows=tables.stack(tables.read(row[3], tables.FLOWS, row[0], row[1]) for row in rows),
        queues=tables.stack(queues),
        ports=tables.ports((scheme, seed, summary["ports"]) for scheme, seed, summary in read),
        scenario=prepared.text,
        info={
            "name": prepared.name,
            "substrate": SIMULATOR,
            "penstock": _native.__version__,
            "schemes": document["schemes"],
            "seeds": seeds,
            "overrides": dict(prepared.settings),
            "command": provenance.command(),
            "machine": provenance.machine(),
            "python": platform.python_version(),
        },
    )


def _seeds(document: dict[str, Any]) -> list[int]:
    """The seeds of a scenario, which has their number or a list."""
    seeds: int | list[int] = document["seeds"]
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else seeds


def _result(scheme: str, seeds: list[dict[str, Any]]) -> dict[str, Any]:
    measured = [{"groups": seed["groups"], "ports": seed["ports"]} for seed in seeds]
    return {
        "scheme": scheme,
        **stats.mean_of(seeds),
        "ci95": stats.ci95_of(measured) if len(seeds) > 1 else None,
    }
