# SPDX-License-Identifier: Apache-2.0
"""Experiments of the papers, run again: what was published beside what is measured."""

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock import api, claims, results, source
from penstock.errors import ScenarioError
from penstock.results import Run
from penstock.terminal import Progress


@dataclass(frozen=True)
class Finding:
    """A claim, and what was found."""

    id: str
    text: str
    published: str | float
    measured: float | None
    holds: bool
    shown: str
    """The measured number as people read it."""


@dataclass(frozen=True)
class Reproduction:
    """One experiment, run again."""

    experiment: str
    title: str
    source: str
    folder: Path
    findings: tuple[Finding, ...]

    @property
    def held(self) -> int:
        """How many of the claims hold."""
        return sum(finding.holds for finding in self.findings)


def listed() -> list[tuple[str, str]]:
    """Id and title of every experiment that can be reproduced."""
    return [
        (name, source.title(folder / "scenario.toml")) for name, folder in _experiments().items()
    ]


def reproduce(
    experiment: str,
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    parent: Path | None = None,
) -> Reproduction:
    """Runs an experiment, writes its run's folder with the report and the findings.

    Args:
        experiment: its id, as `sicc-4`.
        seeds: instead of what the experiment says.
        jobs: threads; default: one a core.
        parent: where the run's folder is written, named by the id; default: a new one in `runs`.

    Raises:
        ScenarioError: no such experiment.
        RunError: the run, or a claim of it, could not be computed.
    """
    folder = find(experiment)
    published = claims.load(folder / "claims.toml")
    target = parent / experiment if parent else results.free_folder(experiment)
    results.check_target(target)
    with Progress() as progress:
        run = api.run(
            folder / "scenario.toml",
            seeds=seeds or published.seeds,
            jobs=jobs,
            progress=lambda done, scheme: progress(done, f"{experiment}: {scheme}"),
        )
    found = judge(run, published)
    run.info["findings"] = [asdict(finding) for finding in found]
    run.save(target, report=True)
    title = run.summary["scenario"]["title"]
    return Reproduction(experiment, title, published.source, target, found)


def judge(run: Run, published: claims.Claims) -> tuple[Finding, ...]:
    """Holds each claim against the run.

    Raises:
        RunError: a claim names a scheme or a value that the run does not have.
    """
    by_scheme = {result["scheme"]: result for result in run.summary["results"]}
    found = []
    for claim in published.claims:
        measured = claim.measure(by_scheme)
        found.append(
            Finding(
                claim.id,
                claim.text,
                claim.published,
                measured,
                claim.is_borne_out(measured),
                claim.show(measured),
            )
        )
    return tuple(found)


def as_json(done: Sequence[Reproduction]) -> dict[str, Any]:
    """What `penstock reproduce --json` prints."""
    claimed = [
        {"experiment": one.experiment, **asdict(finding)}
        for one in done
        for finding in one.findings
    ]
    for claim in claimed:
        del claim["shown"]
    return {
        "experiments": [
            {"id": one.experiment, "title": one.title, "source": one.source, "run": str(one.folder)}
            for one in done
        ],
        "held": sum(one.held for one in done),
        "claims": claimed,
    }


def show(done: Reproduction) -> None:
    """Prints an experiment's claims, published beside measured."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=100)
    table = Table(
        title=f"[bold]{done.experiment}[/]  {done.title}  [dim]{done.source}[/]",
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    table.add_column("claim", ratio=1)
    table.add_column("published", justify="right")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for finding in done.findings:
        verdict = "[green]holds[/]" if finding.holds else "[red]does not hold[/]"
        table.add_row(escape(finding.text), str(finding.published), finding.shown, verdict)
    console.print(table)
    console.print(f"[dim]{done.folder / 'report.html'}[/]\n", soft_wrap=True)


def find(experiment: str) -> Path:
    """The folder of an experiment.

    Raises:
        ScenarioError: there is none of this id.
    """
    known = _experiments()
    if experiment in known:
        return known[experiment]
    near = difflib.get_close_matches(experiment, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "see `penstock reproduce --list`"
    message = f"{experiment}: no such experiment; {hint}"
    raise ScenarioError(message)


def _experiments() -> dict[str, Path]:
    folders = sorted(path.parent for path in source.templates_dir().glob("papers/*/claims.toml"))
    return {folder.name: folder for folder in folders}
