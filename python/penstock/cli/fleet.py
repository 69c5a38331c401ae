# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock fleet`."""

import shlex
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.options import Commands, print_json
from penstock.errors import RunError

if TYPE_CHECKING:
    import polars as pl

app = typer.Typer(
    cls=Commands,
    help="Collect and compare what the agents of many hosts observe.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def root() -> None:
    """Collect and compare what the agents of many hosts observe."""


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


@app.command()
def canary(
    hosts: Annotated[
        list[str],
        typer.Argument(metavar="HOSTS", help="Endpoints of penstockd, as node7:9468."),
    ],
    control: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Host without the scheme; repeat it. None: the flows that HOSTS hold out.",
        ),
    ] = None,
    interface: Annotated[
        str, typer.Option(metavar="PATTERN", help="Ports to compare, as eth*.")
    ] = "*",
    seconds: Annotated[
        float, typer.Option("--for", metavar="SECONDS", help="How long to compare.", min=1)
    ] = 3600.0,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Length of an interval.", min=0.1)
    ] = 30.0,
    margin: Annotated[
        float,
        typer.Option(metavar="SHARE", help="How much worse is still good.", min=0, max=10),
    ] = 0.1,
    act: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command at a stop, for each host, as 'ssh {host} penstockd pause --all'.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the page.")] = Path(
        "runs/canary"
    ),
    is_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Compare flows or hosts under a scheme with a control, and stop where they are worse.

    Each interval adds to one page: goodput, retransmits, timeouts and the queue's 99th percentile,
    the difference and its confidence. A measure that is shown to be worse by more than the margin
    ends the comparison with exit code 3.
    """
    from penstock.fleet import canary as comparison  # start-up: polars
    from penstock.fleet import canary_page, sources  # start-up: polars

    def read() -> "pl.DataFrame":
        texts, failed = sources.collect(hosts)
        others, silent = sources.collect(control or [])
        for line in (*failed, *silent):
            typer.echo(f"no answer: {line}", err=True)
        if control:
            return comparison.of_hosts(texts, others, interface)
        return comparison.of_flows(texts, interface)

    made = comparison.Canary(margin)
    before, begun = read(), time.monotonic()
    if set(before["side"].unique()) != {comparison.CANARY, comparison.CONTROL}:
        reason = "no port has a canary" if not control else "a group has no port"
        message = f"{reason}; name hosts with one (penstockd attach --canary 10%), or --control"
        raise RunError(message)
    ended, outcome = begun, "No interval yet."
    while ended - begun < seconds and not made.is_stop():
        time.sleep(every)
        after, now = read(), time.monotonic()
        made.intervals.append(comparison.between(before, after, now - ended, now - begun))
        before, ended = after, now
        outcome = _outcome(made.is_stop(), len(made.intervals), act)
        page = canary_page.write(made, outcome, out)
    if made.is_stop() and act:
        for host in hosts:
            _act(act, host)
    judgements = made.judgements()
    if is_json:
        measures = {one.measure.name: _as_json(one) for one in judgements}
        print_json({"stop": made.is_stop(), "measures": measures, "page": str(page)})
    else:
        for line in (outcome, *canary_page.lines(judgements), f"page: {page}"):
            typer.echo(line)
    if made.is_stop():
        raise typer.Exit(3)


def _outcome(is_stop: bool, intervals: int, act: str | None) -> str:
    if is_stop:
        done = "its action runs" if act else "no action was given"
        return f"Stopped after {intervals} intervals, as the canary is worse; {done}."
    return f"After {intervals} intervals nothing is shown to be worse than the margin allows."


def _as_json(judgement: Any) -> dict[str, Any]:  # noqa: ANN401 (a Judgement; its import takes polars)
    names = ("intervals", "canary", "control", "difference", "half_width", "worse", "is_stop")
    return {name: getattr(judgement, name) for name in names}


def _act(command: str, host: str) -> None:
    """Runs a command for a host; a failure is one line, and the other hosts follow."""
    name = host.rpartition("://")[2].partition("/")[0].rpartition(":")[0] or host
    words = [word.replace("{host}", name) for word in shlex.split(command)]
    try:
        done = subprocess.run(words, check=False, timeout=60)
        failure = f"exit code {done.returncode}" if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        failure = str(error)
    if failure:
        typer.echo(f"{shlex.join(words)}: {failure}", err=True)
