# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock fleet`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import Commands, print_json
from penstock.errors import RunError

app = typer.Typer(
    cls=Commands,
    help="See what the agents of many hosts saw.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def root() -> None:
    """See what the agents of many hosts saw."""


@app.command()
def observe(
    hosts: Annotated[
        list[str],
        typer.Argument(
            metavar="HOSTS",
            help="Endpoints of penstockd, as node7:9468, or files and folders of their metrics.",
        ),
    ],
    seconds: Annotated[
        float,
        typer.Option(
            "--for", metavar="SECONDS", help="Time between two readings of endpoints; 0: one."
        ),
    ] = 0.0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the page and of ports.csv.")
    ] = Path("runs/fleet"),
    is_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Write one page on all ports of a fleet: which suffer, what helps, where to begin.

    The ports need only the scheme observe, which changes nothing. One reading counts since the
    ports were attached. Endpoints that do not answer are listed; files need no access to hosts.
    """
    from penstock.fleet import page, readings, sources, verdict  # start-up: polars

    texts, failed = sources.collect(hosts)
    ports = readings.ports(texts)
    if sources.pause(hosts, seconds):
        texts, failed = sources.collect(hosts)
        ports = readings.between(ports, readings.ports(texts))
    if ports.is_empty():
        reason = failed[0] if failed else "metrics have no ports; attach observe to some"
        raise RunError(reason)
    ports = verdict.judged(ports)
    summary = verdict.summary(ports)
    written = page.write(ports, summary, failed, out)
    if is_json:
        print_json({**summary, "failed": failed, "page": str(written)})
        return
    for line in page.sentences(summary):
        typer.echo(line)
    for line in failed:
        typer.echo(f"no answer: {line}", err=True)
    typer.echo(f"page: {written}")
