# SPDX-License-Identifier: Apache-2.0
"""The command `penstock sweep`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.errors import RunError, ScenarioError
from penstock.options import (
    Cluster,
    File,
    Jobs,
    Json,
    Schemes,
    Seeds,
    Settings,
    print_json,
    setting,
)


def sweep(
    file: File,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="KEY=VALUES",
            help="A value and what it shall be: 1,2,5 or 1..9 or 0..1+0.25 or 8..256*2, with units "
            "(1ms..16ms*2); repeated: all combinations.",
        ),
    ] = None,
    schemes: Schemes = None,
    settings: Settings = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            "--show",
            metavar="NUMBER",
            help="What table and figure show, as mice.fct.p99, elephants.goodput, "
            "bottleneck.drops; may be repeated. Default: the p99 FCT of the first traffic that "
            "finishes flows, or its goodput.",
        ),
    ] = None,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The sweep's folder; default: runs/NAME-sweep."),
    ] = None,
) -> None:
    """Run a scenario at every combination of some values, under each scheme and seed.

    `--over scheme.alpha=...` sweeps the parameter alpha of every scheme of the run that has it;
    `--over scheme.fairq.window.alpha=...` that of one. Other keys are those of --set.

    The folder holds sweep.json (what was asked for), sweep.parquet (a row for each point, scheme
    and seed: the values, then every number of the summary), report.html, and figures/. Each run is
    kept as soon as it ends: after Ctrl-C or a crash the same command goes on, and one with more
    values, schemes or seeds computes only those that are not there.

    A run that fails does not stop the others; it is told at the end, and the exit code is 1.
    The table shows all that the folder holds. --json prints `folder`, `failures`, and `tables`: a
    list of `show` and `points`, each with `over`, `scheme`, `mean`, `ci95` and `unfinished`.
    """
    if not over:
        message = "--over: what shall be swept? as --over scheme.alpha=0.1,0.25,0.5"
        raise ScenarioError(message)
    overrides = [setting(text) for text in settings or ()]
    from penstock import terminal
    from penstock.sweep import run
    from penstock.sweep import show as showing

    with terminal.Progress() as progress:
        found = run.sweep(
            file,
            over,
            schemes=schemes,
            overrides=overrides,
            seeds=seeds,
            numbers=show or (),
            jobs=jobs,
            cluster=cluster,
            out=out,
            progress=progress,
        )
    if as_json:
        tables = showing.as_json(found.shown)
        said = {"folder": str(found.folder), "failures": found.failures, "tables": tables}
        print_json(said)
    else:
        typer.echo(f"{found.title}\n")
        for one in found.shown:
            showing.show(one)
        known = f" ({found.known} of {found.runs} runs were there already)" if found.known else ""
        typer.echo(f"Sweep:  {found.folder}{known}\nReport: {found.folder / 'report.html'}")
    if failures := found.failures:
        for failure in failures[1:]:
            typer.echo(failure, err=True)
        count = "1 run" if len(failures) == 1 else f"{len(failures)} runs"
        message = f"{count} failed; {failures[0]}"
        raise RunError(message)
