# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock run` and `penstock demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock import folders
from penstock.cli.options import (
    Cluster,
    File,
    Format,
    Jobs,
    Json,
    On,
    Out,
    Schemes,
    SeedList,
    Settings,
    check_form,
    pairs,
    print_json,
    seeds_of,
)
from penstock.errors import InterruptedRunError, RunError

if TYPE_CHECKING:
    from penstock.runs import Run


def demo(
    schemes: Schemes = None,
    seeds: SeedList = None,
    jobs: Jobs = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Run the demo: each second 60 mice meet 20 elephants at 1 Gb/s, under eight schemes."""
    run("demo", schemes, None, seeds, jobs, None, as_json, out)


def run(
    file: File,
    schemes: Schemes = None,
    settings: Settings = None,
    seeds: SeedList = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    as_json: Json = False,
    out: Out = None,
    on: On = "sim",
    tools: Annotated[
        str | None,
        typer.Option(
            "--tools",
            metavar="CLIENT",
            help="With --on lab: traffic by iperf3, nginx, and ab or wrk, not penstock-traffic.",
        ),
    ] = None,
    no_report: Annotated[
        bool,
        typer.Option("--no-report", help="Draw no report; `penstock report` can do so later."),
    ] = False,
    form: Format = "table",
) -> None:
    """Run a scenario under each of its schemes; show a table and write the run's folder.

    The folder holds scenario.toml (as resolved, see `penstock validate --help`), run.json
    (version, commit, machine, command), summary.json (what --json prints), flows, queues and
    ports as Parquet, jobs, windows, packets and events if there are any, and report.html;
    `penstock report --pdf` adds its figures as SVG and PDF. Each finished scheme and seed is kept
    in it at once, in unfinished/: after Ctrl-C or a crash the same command computes only the
    others.

    --json prints one object: `scenario` (as resolved), `seeds`, and `results`, a list with
    `scheme`, `tcp`, `groups` and `ports` by name, `controller` where the scheme has one (reports
    received, queue reports, incasts, messages sent and lost, bytes to and from the controller, ACKs
    rewritten), `delayed_acks` (in the laboratory in `kernel`), `performance`, and `ci95`. With
    several seeds every number is the mean over them, and `ci95` holds `groups` and `ports` once
    more with the half-widths of the 95 % confidence intervals (Student's t); with one seed it is
    null. A group has `of_seeds` where its seeds differ in what they have: `cut_off` lists the
    percentiles that are unfinished in one of them, `fewer` how many have a number. With --json or
    --format csv|md, and without --out, no folder is written.
    """
    check_form(form, as_json=as_json)
    overrides = pairs(settings)
    if out is not None:
        folders.check_target(out, folders.RUN)
    from penstock import api  # start-up: the simulator
    from penstock.execution import unfinished  # start-up: likewise
    from penstock.show import terminal  # start-up: the summary tables

    prepared = api.prepare(
        file, schemes=schemes, overrides=overrides, seeds=seeds_of(seeds), on=on, tools=tools
    )
    is_piped = as_json or form != "table"
    if out is None and not is_piped:
        out = unfinished.folder_for(prepared.name, prepared.text)
    with terminal.Progress() as progress:
        result = prepared.run(out=out, jobs=jobs, cluster=cluster, progress=progress)
    if out is not None and not no_report:
        _report(result, out)
    if as_json:
        print_json(result.summary)
        return
    for note in result.notes:
        typer.echo(note, err=True)
    if form != "table":
        from penstock.show import plain  # start-up: only where it is asked for

        typer.echo(plain.summary(result.summary, form))
        return
    typer.echo(f"{result.summary['scenario']['title']}\n")
    terminal.show(result.summary)
    if out is not None:
        typer.echo(f"Run:    {out}")
        if not no_report:
            typer.echo(f"Report: {out / folders.RUN.page}")


def _report(result: "Run", folder: Path) -> None:
    """Writes the page; if that fails the run is in its folder all the same."""
    remedy = f"the run is in {folder}: `penstock report {folder}` draws its page"
    from penstock.show import run_page  # start-up: not needed to compute

    try:
        run_page.write(result, folder / folders.RUN.page)
    except KeyboardInterrupt:
        message = f"interrupted; {remedy}"
        raise InterruptedRunError(message) from None
    except OSError as error:
        message = f"{error.filename or folder}: cannot be written ({error.strerror}); {remedy}"
        raise RunError(message) from None
