# SPDX-License-Identifier: Apache-2.0
"""Experiments of the papers, run again: what was published beside what is measured."""

import difflib
import re
from collections.abc import Mapping, Sequence
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
    where: str
    published: str | float
    measured: float | None
    against: float | None
    """What the measured number was held against."""
    holds: bool
    shown: str
    """The measured number as people read it."""


@dataclass(frozen=True)
class Reproduction:
    """One experiment, run again."""

    experiment: str
    title: str
    folders: tuple[Path, ...]
    """Of its runs, with a report in each."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    """What to know of its runs: that the machine was busy, say."""

    @property
    def held(self) -> int:
        """How many of the claims hold."""
        return sum(finding.holds for finding in self.findings)


def listed() -> list[tuple[str, str]]:
    """Id and title of every experiment that can be reproduced."""
    return [(name, source.title(path / "scenario.toml")) for name, path in _experiments().items()]


def reproduce(
    experiment: str,
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    parent: Path | None = None,
    on: str = api.SIMULATOR,
) -> Reproduction:
    """Runs an experiment, judges its claims, and writes its runs' folders with their reports.

    Args:
        experiment: its id, as `sicc-4`.
        seeds: instead of what the experiment says.
        jobs: threads; default: one a core.
        on: the substrate, as `api.run` has it.
        parent: where the runs' folders are written, named by the id; default: new ones in `runs`.

    Raises:
        ScenarioError: no such experiment.
        RunError: a run, or a claim, could not be computed.
    """
    folder = find(experiment)
    published = claims.load(folder / "claims.toml")
    targets = {name: _target(experiment, name, parent) for name in published.runs}
    runs = {}
    for name, overrides in published.runs.items():
        with Progress(prefix=f"{experiment} {name}".strip() + ": ") as progress:
            runs[name] = api.run(
                folder / "scenario.toml",
                overrides=overrides,
                seeds=seeds,
                jobs=jobs,
                progress=progress,
                on=on,
            )
    found = judge({name: run.summary for name, run in runs.items()}, published)
    for name, run in runs.items():
        run.info["findings"] = [asdict(finding) for finding in found]
        run.save(targets[name], report=True)
    title = source.title(folder / "scenario.toml")
    return Reproduction(experiment, title, tuple(targets.values()), found, _notes(runs))


def _notes(runs: Mapping[str, Run]) -> tuple[str, ...]:
    from penstock.lab import substrate

    return tuple(
        f"{name}: {note}" if name else note
        for name, run in runs.items()
        for note in substrate.notes(run.info)
    )


def judge(runs: claims.Summaries, published: claims.Claims) -> tuple[Finding, ...]:
    """Holds each claim against the runs.

    Raises:
        RunError: a claim is about a scheme or a value that its run does not have.
    """
    found = []
    for claim in published.claims:
        measured, against = claim.measured_in(runs)
        found.append(
            Finding(
                claim.id,
                claim.text,
                claim.where,
                claim.published,
                measured,
                against,
                claim.is_borne_out(measured, against),
                claim.show(measured, against),
            )
        )
    return tuple(found)


def _target(experiment: str, run: str, parent: Path | None) -> Path:
    name = "-".join(part for part in (experiment, re.sub(r"[^\w.]+", "-", run)) if part)
    target = parent / name if parent else results.free_folder(name)
    results.check_target(target)
    return target


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
            {
                "id": one.experiment,
                "title": one.title,
                "runs": [str(path) for path in one.folders],
                "notes": list(one.notes),
            }
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
        title=f"[bold]{done.experiment}[/]  {escape(done.title)}",
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
        published = finding.published
        printed = published if isinstance(published, str) else f"{published:g}"
        table.add_row(escape(finding.text), escape(printed), finding.shown, verdict)
    console.print(table)
    for note in done.notes:
        console.print(escape(note))
    for folder in done.folders:
        console.print(f"Report: {folder / 'report.html'}", soft_wrap=True)
    console.print()


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
