# SPDX-License-Identifier: Apache-2.0
"""The command `penstock sweep`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock import folders, units
from penstock.cli.options import (
    Cluster,
    File,
    Format,
    Jobs,
    Json,
    On,
    Schemes,
    SeedList,
    Settings,
    check_form,
    number_names,
    pairs,
    print_json,
    seeds_of,
    setting_keys,
)
from penstock.errors import RunError


def sweep(
    file: File,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="KEY=VALUES",
            help="A key and its values: 1,2,5 or 1..9 or 0..1+0.25 or 8..256*2, with units "
            "(1ms..16ms*2); repeated: all combinations.",
            autocompletion=setting_keys,
        ),
    ] = None,
    schemes: Schemes = None,
    settings: Settings = None,
    seeds: SeedList = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            "--show",
            metavar="NUMBER",
            help="The number in table and figure, such as mice.fct.p99, elephants.goodput, "
            "bottleneck.drops; may be repeated. Default: the p99 FCT of the first traffic that "
            "finishes flows, or its goodput; of datagrams alone the drops of the port.",
            autocompletion=number_names,
        ),
    ] = None,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="The sweep's folder; default: runs/NAME-sweep."),
    ] = None,
    on: On = "sim",
    form: Format = "table",
) -> None:
    """Run a scenario at every combination of some values, under each scheme and seed.

    `--over scheme.alpha=...` sweeps the parameter alpha of every scheme of the run that has it;
    `--over scheme.fairq.window.alpha=...` that of one. Other keys are those of --set.

    The folder holds sweep.json (command and scenario), sweep.parquet (a row for each point, scheme
    and seed: the values, then every number of the summary), and report.html. Each run is
    kept as soon as it ends: after Ctrl-C, SIGTERM or a crash the same command goes on, and one with
    more values, schemes or seeds computes only the missing ones.

    A run that fails does not stop the others; it is listed at the end, and the exit code is 1.
    The table shows all that the folder holds. --json prints `folder`, `runs` (how many the command
    requested), `done` (how many of them the folder has), `failures`, and `tables`: a list of `show`
    and `points`, each with `over`, `scheme`, `mean`, `ci95`, `unfinished` (then the mean is null)
    and `seeds`: how many have the number.
    """
    check_form(form, as_json=as_json)
    overrides = pairs(settings)
    from penstock.sweeps import points  # start-up: the simulator

    plan = points.plan(
        file, over or (), schemes=schemes, overrides=overrides, seeds=seeds_of(seeds), on=on
    )
    points.check(show or (), plan)
    from penstock.show import terminal  # start-up: rich
    from penstock.sweeps import means, sweep_table, sweeping  # start-up: polars

    with terminal.Progress() as progress:
        result = sweeping.run(
            plan, numbers=show or (), jobs=jobs, cluster=cluster, out=out, progress=progress
        )
    for note in result.notes:
        typer.echo(note, err=True)
    if as_json:
        counts = {"runs": result.runs, "done": result.done, "failures": result.failures}
        tables = means.as_json(result.shown)
        print_json({"folder": str(result.folder), **counts, "tables": tables})
    elif form != "table":
        typer.echo(sweep_table.text(result.shown, form))
    else:
        typer.echo(f"{result.title}\n")
        for number in result.shown:
            sweep_table.show(number)
        if result.incomplete:
            typer.echo(f"{result.incomplete}\n")
        known = f" ({result.known} of {result.runs} runs were there already)"
        typer.echo(f"Sweep:  {result.folder}{known if result.known else ''}")
        typer.echo(f"Report: {result.folder / folders.SWEEP.page}")
    if failures := result.failures:
        for failure in failures[1:]:
            typer.echo(failure, err=True)
        message = f"{units.counted(len(failures), 'run')} failed; {failures[0]}"
        raise RunError(message)
