# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock run` and `penstock demo`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock import folders
from penstock.cli.options import (
    Cluster,
    File,
    Jobs,
    Json,
    On,
    Out,
    Schemes,
    Seeds,
    Settings,
    pairs,
    print_json,
)


def demo(
    schemes: Schemes = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Run the demo: 20 elephants and 60 mice share a 1 Gb/s bottleneck under seven schemes."""
    run("demo", schemes, None, seeds, jobs, None, as_json, out)


def run(
    file: File,
    schemes: Schemes = None,
    settings: Settings = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
    out: Out = None,
    on: On = "sim",
    tools: Annotated[
        bool,
        typer.Option(
            "--tools", help="With --on lab: traffic by iperf3, nginx and ab instead of our own."
        ),
    ] = False,
) -> None:
    """Run a scenario under each of its schemes; show a table and write the run's folder.

    The folder holds scenario.toml (as resolved, see `penstock validate --help`), run.json
    (versions, command), summary.json (what --json prints), flows, queues and ports as Parquet,
    windows if the scenario samples any, report.html, and figures/ as SVG; `penstock report
    --pdf` adds them as PDF.

    --json prints one object: `scenario` (as resolved), `seeds`, and `results`, a list with
    `scheme`, `tcp`, `groups` and `ports` by name, `controller` where the scheme has one (reports
    received, queue reports, incasts, messages sent and lost, bytes to and from the controller,
    ACKs rewritten), `delayed_acks` (in the laboratory in `kernel`), `performance`, and `ci95`. With
    several seeds every number is the mean over them, and `ci95` holds `groups` and `ports` once
    more with the half-widths of the 95 % confidence intervals (Student's t); with one seed it is
    null. With --json and without --out no folder is written.
    """
    overrides = pairs(settings)
    if out is not None:
        folders.check_target(out, folders.RUN)
    from penstock import api  # start-up: the simulator
    from penstock.show import terminal  # start-up: the summary tables

    with terminal.Progress() as progress:
        result = api.run(
            file,
            schemes=schemes,
            overrides=overrides,
            seeds=seeds,
            jobs=jobs,
            cluster=cluster,
            progress=progress,
            on=on,
            tools=tools,
        )
    if as_json:
        if out is not None:
            result.save(out, report=True)
        print_json(result.summary)
        return
    for note in result.notes:
        typer.echo(note, err=True)
    typer.echo(f"{result.summary['scenario']['title']}\n")
    terminal.show(result.summary)
    folder: Path = result.save(out or folders.free(result.info["name"]), report=True)
    typer.echo(f"Run:    {folder}\nReport: {folder / folders.RUN.page}")
