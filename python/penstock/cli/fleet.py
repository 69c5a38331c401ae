# SPDX-License-Identifier: Apache-2.0
"""The commands `penstock fleet`."""

import math
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock import folders
from penstock.cli.options import Commands, print_json
from penstock.errors import RunError, ScenarioError
from penstock.fleet import sources

if TYPE_CHECKING:
    import polars as pl

    from penstock.fleet.canary import Canary

app = typer.Typer(
    cls=Commands,
    help="Collect and compare what the agents of many hosts observe.",
    epilog="Begin with: penstock fleet observe node1:9468 node2:9468",
    no_args_is_help=True,
    rich_markup_mode=None,
)


_LONGEST_S = 366 * 86_400
"""A year; the system cannot wait for any number of seconds."""


def _finite(number: float) -> float:
    """NaN passes every bound of an option."""
    if not math.isfinite(number):
        message = f"{number} is not a finite number"
        raise typer.BadParameter(message)
    return number


@app.callback()
def root() -> None:
    """Collect and compare what the agents of many hosts observe."""


@app.command(epilog="Example: penstock fleet observe node1:9468 node2:9468 --for 60")
def observe(
    hosts: Annotated[
        list[str],
        typer.Argument(
            metavar="HOSTS",
            help="Endpoints of penstockd, such as node7:9468, or files and folders of exported "
            "metrics.",
        ),
    ],
    seconds: Annotated[
        float,
        typer.Option(
            "--for",
            metavar="SECONDS",
            help="Read the endpoints twice, this long apart, and count what happened in between; "
            "0: read them once.",
            min=0,
            max=_LONGEST_S,
            callback=_finite,
        ),
    ] = 0.0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the page and ports.csv.")
    ] = Path("runs/fleet"),
    is_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Write a page on all ports of a fleet: which ports suffer, what would help, where to begin.

    The scheme `observe`, which changes no packet, is enough on the ports. A single reading counts
    from the time when a port was attached. Exported files need no access to the hosts. Endpoints
    that do not answer and incomplete files are left out and listed; the exit code is 1 only if no
    port is left.
    """
    from penstock.fleet import page, readings, verdict  # start-up: polars

    if seconds > 0:
        sources.require_endpoints(hosts)
    texts, failed = sources.collect(hosts)
    ports = readings.ports(texts)
    if seconds > 0 and texts:
        folders.check_file(out / page.PAGE)  # before the wait
        time.sleep(seconds)
        texts, failed = sources.again(hosts, texts)
        ports = readings.between(ports, readings.ports(texts))
    idle = sorted(set(texts) - set(ports["host"]))
    failed += [f"{host}: no ports; attach observe to some" for host in idle]
    if ports.is_empty():
        raise RunError(failed[0])
    ports = verdict.judged(ports)
    summary = verdict.summary(ports)
    written = page.write(ports, summary, failed, out)
    if is_json:
        print_json({**summary, "failed": failed, "page": str(written)})
        return
    for line in page.sentences(summary):
        typer.echo(line)
    for line in failed:
        typer.echo(f"not included: {line}", err=True)
    typer.echo(f"page: {written}")


@app.command(
    epilog="Example: penstock fleet canary node1:9468 node2:9468 --control node3:9468 --for 3600"
)
def canary(
    hosts: Annotated[
        list[str],
        typer.Argument(metavar="HOSTS", help="Endpoints of penstockd, such as node7:9468."),
    ],
    control: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Endpoint of a host without the scheme; may be repeated. Default: compare with "
            "the flows on HOSTS to which the scheme is not applied.",
        ),
    ] = None,
    interface: Annotated[
        str, typer.Option(metavar="PATTERN", help="Compare only these ports, such as eth*.")
    ] = "*",
    seconds: Annotated[
        float,
        typer.Option(
            "--for",
            metavar="SECONDS",
            help="Compare for this long, unless the canary is stopped before.",
            min=1,
            max=_LONGEST_S,
            callback=_finite,
        ),
    ] = 3600.0,
    every: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Length of an interval.",
            min=0.1,
            max=_LONGEST_S,
            callback=_finite,
        ),
    ] = 30.0,
    margin: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Accept a canary that is worse by up to this share of the control's value.",
            min=0,
            max=10,
            callback=_finite,
        ),
    ] = 0.1,
    act: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="At a stop, run this command for each host of HOSTS, such as "
            "'ssh {host} penstockd pause --all'.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the page.")] = Path(
        "runs/canary"
    ),
    is_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Compare flows or hosts under a scheme with a control, and stop if they do worse.

    After each interval the page shows goodput, retransmits, timeouts and the queue's 99th
    percentile of canary and control, their difference, and its confidence interval. The comparison
    ends with exit code 3 once the canary is shown to be worse than the margin allows. Intervals in
    which canary or control has no data are not compared; if none was compared, the exit code is 1.
    """
    from penstock.fleet import canary as comparison  # start-up: polars
    from penstock.fleet import canary_page  # start-up: polars

    control = control or []
    sources.require_apart([hosts, control])
    action = _command(act)
    silent: list[str] = []

    def read() -> "pl.DataFrame":
        texts, failed = sources.collect(hosts)
        others, missing = sources.collect(control)
        lines = [*failed, *missing]
        for line in lines:
            if line not in silent:  # once, not in each interval
                typer.echo(f"no answer: {line}", err=True)
        silent[:] = lines
        if control:
            return comparison.of_hosts(texts, others, interface)
        return comparison.of_flows(texts, interface)

    made = comparison.Canary(margin)
    before, begun = read(), time.monotonic()
    if not {comparison.CANARY, comparison.CONTROL} <= set(before["side"].unique()):
        reason = "no port has a canary" if not control else "a group has no port"
        reason += f" ({silent[0]})" if silent else ""
        message = f"{reason}; name hosts with one (penstockd attach --canary 10%), or --control"
        raise RunError(message)
    folders.check_file(out / canary_page.PAGE)  # before the first interval
    ended = begun
    while ended - begun < seconds and not made.is_stop():
        time.sleep(every)
        after, now = read(), time.monotonic()
        made.intervals.append(comparison.between(before, after, now - ended, now - begun))
        before, ended = after, now
        outcome = _outcome(made)
        if made.is_stop():  # first: a page that cannot be written must not keep it from acting
            outcome += _acted(action, hosts)
        page = canary_page.write(made, outcome, out)
    judgements = made.judgements()
    if is_json:
        measures = {one.measure.name: _as_json(one) for one in judgements}
        print_json(
            {
                "stop": made.is_stop(),
                "intervals": len(made.intervals),
                "compared": made.compared(),
                "measures": measures,
                "page": str(page),
            }
        )
    else:
        for line in (outcome, *canary_page.lines(judgements), f"page: {page}"):
            typer.echo(line)
    if made.is_stop():
        raise typer.Exit(3)
    if not made.compared():
        message = "nothing was compared: in no interval had both sides data; is there traffic?"
        raise RunError(message)


def _outcome(made: "Canary") -> str:
    count, compared = len(made.intervals), made.compared()
    if made.is_stop():
        return f"Stopped after {count} intervals, as the canary is worse; "
    missing = f" In {count - compared} of them a side had no data." if compared < count else ""
    if not compared:
        return f"After {count} intervals nothing was compared: a side had no data in any."
    return f"After {count} intervals nothing is shown to be worse than the margin allows.{missing}"


def _command(act: str | None) -> list[str]:
    """The words of an action, which must be right before it is needed."""
    try:
        words = shlex.split(act or "")
    except ValueError as error:
        message = f"--act: {error}: {act}"
        raise ScenarioError(message) from None
    if act is not None and not (words and shutil.which(words[0])):
        message = f"--act: no program {words[0] if words else repr(act)}"
        raise ScenarioError(message)
    return words


def _acted(action: list[str], hosts: list[str]) -> str:
    """Runs an action for each host, and what came of it."""
    if not action:
        return "no action was given."
    machines = list(dict.fromkeys(sources.machine(host) for host in hosts))
    failed = [machine for machine in machines if not _act(action, machine)]
    if not failed:
        return f"its action ran for {len(machines)} hosts."
    return f"its action FAILED for {', '.join(failed)}."


def _as_json(judgement: Any) -> dict[str, Any]:  # noqa: ANN401 (a Judgement; its import takes polars)
    names = ("intervals", "canary", "control", "difference", "half_width", "worse", "is_stop")
    return {name: getattr(judgement, name) for name in names}


def _act(action: list[str], machine: str) -> bool:
    """Runs an action for a host; a failure is one line, and the other hosts follow."""
    words = [word.replace("{host}", machine) for word in action]
    try:
        # To standard error, as its output must not mix with that of --json.
        done = subprocess.run(words, check=False, timeout=60, stdout=2)
        failure = f"exit code {done.returncode}" if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        failure = str(error)
    if failure:
        typer.echo(f"{shlex.join(words)}: {failure}", err=True)
    return not failure
