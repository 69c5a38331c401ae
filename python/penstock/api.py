# SPDX-License-Identifier: Apache-2.0
"""The Python API: the same as the command line, with polars frames."""

import json
import platform
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import _native, provenance, terms
from penstock.errors import ScenarioError
from penstock.execution import (
    SIMULATOR,
    Progress,
    Row,
    Rows,
    Task,
    execute,
    files_of,
    substrate_of,
    unfinished,
)
from penstock.folders import RUN
from penstock.scenario import (
    Overrides,
    Scenario,
    Settings,
    load,
    parsed,
    resolve,
    seeds_of,
    settings_of,
)

if TYPE_CHECKING:
    from penstock.runs import Run


def run(
    scenario: Scenario,
    *,
    schemes: Sequence[str] | None = None,
    overrides: Overrides | None = None,
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    on: str = SIMULATOR,
    tools: str | None = None,
) -> "Run":
    """Runs a scenario under each of its schemes and seeds: simulated, or on real TCP.

    Args:
        scenario: a TOML file, the name of a shipped template, or a dict of the same shape.
        schemes: instead of the scenario's own.
        overrides: values by dotted path, as `{"tcp.min_rto": "10 ms", "traffic.mice.flows": 120}`;
            a dict is a table.
        seeds: how many (1 to n), or which.
        jobs: threads; default: one per core. The results do not depend on it.
        cluster: the address of a Dask scheduler whose workers simulate.
        out: also write the run's folder here; what it has of an unfinished run is not run again.
        progress: called with (fraction done, "12 of 40 runs"), at least ten times a second.
        on: the substrate: `sim`, or `lab` for the laboratory (root; one run after another, and
            the seeds are repeats with arrivals and sizes of their own), or `ovs` for that with
            Open vSwitch and a controller.
        tools: in the laboratory, the traffic is that of iperf3, nginx, and this client: `ab` or
            `wrk`.

    Raises:
        ScenarioError: the scenario, a scheme or an override cannot be used; one line.
        RunError: a run could not be computed.
    """
    prepared = prepare(
        scenario, schemes=schemes, overrides=overrides, seeds=seeds, on=on, tools=tools
    )
    return prepared.run(out=out, jobs=jobs, cluster=cluster, progress=progress)


@dataclass(frozen=True)
class Prepared:
    """A scenario with all its settings, checked and ready to run."""

    text: str
    """As resolved, in TOML: its defaults written out, files by their full paths."""
    origin: str
    name: str
    """The name of its run's folder."""
    settings: Settings
    """The overrides: dotted path, value as TOML writes it."""
    tasks: tuple[Task, ...]
    """One for each scheme and seed, in the order of the run's tables."""

    @terms.of_arguments
    def run(
        self,
        *,
        out: str | Path | None = None,
        jobs: int | None = None,
        cluster: str | None = None,
        progress: Progress | None = None,
    ) -> "Run":
        """Runs the tasks; the arguments are those of `api.run`."""

        def collected(kept: Rows | None = None) -> "Run":
            options: dict[str, Any] = {"jobs": jobs, "cluster": cluster, "progress": progress}
            return self.collect(dict(execute(self.tasks, kept=kept, **options)))

        if out is None:
            return collected()
        with unfinished.kept(Path(out), self.text) as kept:
            result = collected(kept)
            result.save(out)
        return result

    def changed_files(self) -> list[str]:
        """Files that are no longer what they were in the run whose scenario this is."""
        try:
            document = json.loads((Path(self.origin).parent / RUN.file).read_text(encoding="utf-8"))
            before = dict(document.get("files", {}))
        except (OSError, ValueError, TypeError, AttributeError):
            return []
        now = files_of(self.text)
        return [path for path in now if path in before and before[path] != now[path]]

    def collect(self, rows: Mapping[Task, Row]) -> "Run":
        """The run of the tasks' rows; those of other tasks may be among them."""
        from penstock.runs import Run  # start-up: polars, not needed to report an error

        if missing := sum(task not in rows for task in self.tasks):
            message = f"rows: {missing} of {len(self.tasks)} tasks have none"
            raise ScenarioError(message)
        info = {
            "name": self.name,
            "substrate": self.tasks[0].on,
            **provenance.head(),
            "schemes": list(dict.fromkeys(task.scheme for task in self.tasks)),
            "seeds": list(dict.fromkeys(task.seed for task in self.tasks)),
            "overrides": dict(self.settings),
            "python": platform.python_version(),
        }
        if files := files_of(self.text):
            info["files"] = files
        if changed := self.changed_files():
            info["changed_files"] = changed
        return Run.collect(self.text, [rows[task] for task in self.tasks], info)


def prepare(
    scenario: Scenario,
    *,
    schemes: Sequence[str] | None = None,
    overrides: Overrides | None = None,
    seeds: int | Sequence[int] | None = None,
    on: str = SIMULATOR,
    tools: str | None = None,
) -> Prepared:
    """Checks a scenario and returns its tasks; `execution.execute` runs them.

    The arguments are those of `run`.

    Raises:
        ScenarioError: it cannot be used; one line.
    """
    substrate = substrate_of(on, tools=tools)
    source = load(scenario)
    settings = settings_of(overrides, schemes, seeds)
    try:
        text = resolve(source, settings)
    except ScenarioError as error:
        raise _of_options(error, schemes, seeds) from None
    document, origin = parsed(text), str(source.origin)
    tasks = [
        Task(text, origin, scheme, seed, substrate)
        for scheme in document["schemes"]
        for seed in seeds_of(document)
    ]
    return Prepared(text, origin, source.name, settings, tuple(tasks))


def _of_options(
    error: ScenarioError, schemes: Sequence[str] | None, seeds: int | Sequence[int] | None
) -> ScenarioError:
    """Names the option `--scheme` or `--seeds`, not the override that it becomes."""
    unknown = r'--set schemes=.*: schemes\[\d+\]: unknown scheme "(.*?)"; (.*)'
    if schemes and (match := re.fullmatch(unknown, str(error))):
        return ScenarioError(f"--scheme {match[1]}: no such scheme; {match[2]}")
    wrong = r"--set seeds=\[?(.*?)\]?: (?:seeds\[\d+\]: )?(.*)"
    if seeds is not None and (match := re.fullmatch(wrong, str(error))):
        return ScenarioError(f"--seeds {match[1].replace(', ', ',')}: {match[2]}")
    return error


def resolved(scenario: Scenario, *, overrides: Overrides | None = None) -> str:
    """The scenario with its defaults written out, in TOML.

    It lacks the values that follow from the TCP profile, or from a port's rate and buffer.

    Raises:
        ScenarioError: it cannot be used; one line.
    """
    return resolve(load(scenario), settings_of(overrides))


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
